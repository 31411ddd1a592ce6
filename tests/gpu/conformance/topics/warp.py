# SPDX-License-Identifier: Apache-2.0
"""Instructions across the lanes of a warp.

Section names are those of the PTX ISA.
"""

from __future__ import annotations

from tests.gpu.conformance.question import Question, data, out

SHUFFLE = """
extern "C" __global__ void question(u32* out) {{
  u32 lane = threadIdx.x, at = 0;
  for (u32 c : {{0x1fu, 0x0fu, 0x00u, 0x07u, 0x1c1fu, 0x181fu, 0x1800u, 0x1e1fu, 0x1c03u, 0xffffffffu}})
    for (u32 b : {{0u, 1u, 3u, 5u, 8u, 17u, 31u, 32u, 33u, 0xfffffffeu}}) {{
      u32 value, valid;
      asm volatile("{{\\n.reg .pred p;\\nshfl.sync.{mode}.b32 %0|p, %2, %3, %4, 0xffffffff;\\n"
                   "selp.u32 %1, 1, 0, p;\\n}}"
                   : "=r"(value), "=r"(valid) : "r"(lane * 16), "r"(b), "r"(c));
      out[at++ * 32 + lane] = value << 1 | valid;
    }}
}}
"""


def shuffle(mode: str) -> Question:
    """Every mix of ten bounds and ten offsets."""
    return Question(
        f"shfl-{mode}",
        f"Which lane does shfl.{mode} read, and when is it in range, for any clamp, segment and offset?",
        "shfl.sync: pseudocode",
        SHUFFLE.format(mode=mode),
        (out(3200),),
        policies=("eager",),
    )


QUESTIONS = (
    Question(
        "elect-lowest",
        "Which member lane does elect.sync elect?",
        "elect.sync: a leader from the threads of membermask",
        """
static __device__ u32 elect(u32 mask) {
  u32 lane, leads;
  asm volatile("{\\n.reg .pred p;\\nelect.sync %0|p, %2;\\nselp.u32 %1, 1, 0, p;\\n}"
               : "=r"(lane), "=r"(leads) : "r"(mask));
  return lane << 1 | leads;
}
extern "C" __global__ void question(u32* out) {
  u32 t = threadIdx.x;
  u32 masks[6] = {0xffffffff, 0xffff0000, 0x80000000, 0xaaaaaaaa, 0x00000100, 0x7ffffffe};
  for (u32 i = 0; i < 6; ++i) {
    out[32 * i + t] = 0;
    if (masks[i] >> t & 1) out[32 * i + t] = elect(masks[i]);
    __syncwarp();
  }
}
""",
        (out(192),),
        policies=("eager",),
        shows="leader << 1 | leads of lane 31 or 8, six masks: {w[31]} {w[63]} {w[95]} {w[127]} {w[136]} {w[190]}",
    ),
    Question(
        "elect-after-exit",
        "Does elect.sync elect among the lanes that are left when lane 0 has exited?",
        "elect.sync",
        """
extern "C" __global__ void question(u32* out) {
  u32 t = threadIdx.x, lane, leads;
  if (t < 5) return;
  asm volatile("{\\n.reg .pred p;\\nelect.sync %0|p, 0xffffffe0;\\nselp.u32 %1, 1, 0, p;\\n}"
               : "=r"(lane), "=r"(leads));
  out[t] = lane << 1 | leads;
}
""",
        (out(32),),
        policies=("eager",),
        shows="lane 5: {w[5]}, lane 6: {w[6]}",
    ),
    *map(shuffle, ("up", "down", "bfly", "idx")),
    Question(
        "shfl-members-only",
        "What does shfl.sync give where members of two masks shuffle in two branches?",
        "shfl.sync: membermask",
        """
extern "C" __global__ void question(u32* out) {
  u32 t = threadIdx.x, got;
  if (t & 4)
    got = __shfl_xor_sync(0xf0f0f0f0, t + 50, 1);
  else
    got = __shfl_sync(0x0f0f0f0f, t + 90, 1);
  out[t] = got;
}
""",
        (out(32),),
        shows="lane 0 {w[0]}, lane 4 {w[4]}, lane 31 {w[31]}",
    ),
    Question(
        "vote-part",
        "What do vote.all, any, uni and ballot give over part of a warp?",
        "vote.sync: over the threads of membermask",
        """
extern "C" __global__ void question(u32* out) {
  u32 t = threadIdx.x, mask = 0x0ff0ff00, all, any, uni, ballot, none;
  out[t] = 0;
  if (mask >> t & 1) {
    asm volatile(
        "{\\n.reg .pred p, q, a, o, u, n;\\nsetp.ge.u32 p, %5, 12;\\nsetp.lt.u32 q, %5, 8;\\n"
        "vote.sync.all.pred a, p, %6;\\nvote.sync.any.pred o, p, %6;\\nvote.sync.uni.pred u, q, %6;\\n"
        "vote.sync.ballot.b32 %3, p, %6;\\nvote.sync.any.pred n, !p, %6;\\n"
        "selp.u32 %0, 1, 0, a;\\nselp.u32 %1, 1, 0, o;\\nselp.u32 %2, 1, 0, u;\\nselp.u32 %4, 1, 0, n;\\n}"
        : "=r"(all), "=r"(any), "=r"(uni), "=r"(ballot), "=r"(none) : "r"(t), "r"(mask));
    out[t] = all | any << 1 | uni << 2 | none << 3 | (ballot ^ 0x0ff00000);
  }
}
""",
        (out(32),),
        shows="lane 8: {w[8]:#x}, lane 0: {w[0]:#x}",
    ),
    Question(
        "match-any",
        "Which lanes does match.any give over part of a warp, for 32 and 64 bits?",
        "match.sync",
        """
extern "C" __global__ void question(u32* out) {
  u32 t = threadIdx.x, mask = 0xfffff0ff;
  out[t] = out[32 + t] = 0;
  if (mask >> t & 1) {
    out[t] = __match_any_sync(mask, t % 5);
    out[32 + t] = __match_any_sync(mask, static_cast<u64>(t % 3) << 40 | t % 2);
  }
}
""",
        (out(64),),
        shows="lane 0: {w[0]:#x} and {w[32]:#x}",
    ),
    Question(
        "match-all",
        "What does match.all give where all members hold one value, and where they do not?",
        "match.sync: 0 where not all are equal",
        """
extern "C" __global__ void question(u32* out) {
  u32 t = threadIdx.x, mask = 0x00ffff00;
  for (u32 i = 0; i < 4; ++i) out[32 * i + t] = 0;
  if (mask >> t & 1) {
    int same;
    out[t] = __match_all_sync(mask, 77u, &same);
    out[32 + t] = same;
    out[64 + t] = __match_all_sync(mask, t / 23, &same);
    out[96 + t] = same;
  }
}
""",
        (out(128),),
        shows="equal: {w[8]:#x}, {w[40]}; unequal: {w[72]:#x}, {w[104]}",
    ),
    Question(
        "redux",
        "What do redux.sync add, min, max, and, or and xor give over part of a warp?",
        "redux.sync: over the threads of membermask",
        """
extern "C" __global__ void question(u32* out, const u32* in) {
  u32 t = threadIdx.x, mask = 0xf0ff0ff7;
  for (u32 i = 0; i < 9; ++i) out[32 * i + t] = 0;
  if (mask >> t & 1) {
    u32 u = in[t];
    s32 s = static_cast<s32>(u);
    out[t] = __reduce_add_sync(mask, u);
    out[32 + t] = __reduce_add_sync(mask, s);
    out[64 + t] = __reduce_min_sync(mask, u);
    out[96 + t] = __reduce_min_sync(mask, s);
    out[128 + t] = __reduce_max_sync(mask, u);
    out[160 + t] = __reduce_max_sync(mask, s);
    out[192 + t] = __reduce_and_sync(mask, u | 0x10);
    out[224 + t] = __reduce_or_sync(mask, u & 0xff00);
    out[256 + t] = __reduce_xor_sync(mask, u);
  }
}
""",
        (out(288), data(32, fill="random")),
    ),
    Question(
        "activemask-branch",
        "Does activemask give the lanes that took the branch, right after a branch on the lane?",
        "activemask",
        """
extern "C" __global__ void question(u32* out) {
  u32 t = threadIdx.x, mask;
  if (t >= 28) return;
  asm volatile("activemask.b32 %0;" : "=r"(mask));
  out[t] = mask;
}
""",
        (out(32),),
        shows="after lanes 28 to 31 exited: {w[0]:#x}",
    ),
    Question(
        "lane-masks",
        "What do the lanemask registers hold?",
        "Special Registers: %lanemask_lt and others",
        """
extern "C" __global__ void question(u32* out) {
  u32 t = threadIdx.x;
  asm volatile("mov.u32 %0, %%lanemask_eq;" : "=r"(out[t]));
  asm volatile("mov.u32 %0, %%lanemask_le;" : "=r"(out[32 + t]));
  asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(out[64 + t]));
  asm volatile("mov.u32 %0, %%lanemask_ge;" : "=r"(out[96 + t]));
  asm volatile("mov.u32 %0, %%lanemask_gt;" : "=r"(out[128 + t]));
}
""",
        (out(160),),
        shows="lane 3: {w[3]:#x} {w[35]:#x} {w[67]:#x} {w[99]:#x} {w[131]:#x}",
    ),
    Question(
        "masks-of-tiles",
        "What do shfl, vote, match and redux give where the lanes of one instruction name masks of tiles of their own?",
        "membermask: the threads that take part, the same in all of them",
        """
extern "C" __global__ void question(u32* out, const u32* in) {
  u32 t = threadIdx.x, size = t < 8 ? 8 : t < 16 ? 4 : 16, first = t / size * size;
  u32 mask = (size == 32 ? ~0u : (1u << size) - 1) << first, value = in[t];
  out[t] = __shfl_xor_sync(mask, value, 1);
  out[32 + t] = __ballot_sync(mask, value & 1);
  out[64 + t] = __any_sync(mask, value % 7 == 0) << 1 | __all_sync(mask, value & 3);
  out[96 + t] = __match_any_sync(mask, value & 3);
  out[128 + t] = __reduce_add_sync(mask, value);
  out[160 + t] = __reduce_max_sync(mask, value);
  __syncwarp(mask);
  out[192 + t] = mask;
}
""",
        (out(224), data(32, fill="random")),
        shows="sums of lanes 0, 8, 12 and 16: {w[128]:#x} {w[136]:#x} {w[140]:#x} {w[144]:#x}",
    ),
    Question(
        "fns",
        "Which bit does fns find, for any base and offset, forwards and backwards?",
        "fns: find the n-th set bit",
        """
extern "C" __global__ void question(u32* out, const u32* in) {
  u32 t = threadIdx.x, at = 0;
  for (u32 i = 0; i < 8; ++i)
    for (s32 offset : {0, 1, 2, 5, 16, 31, 32, 33, -1, -2, -7, -32})
      asm volatile("fns.b32 %0, %1, %2, %3;"
                   : "=r"(out[at++ * 32 + t]) : "r"(i ? in[i] & in[i + 8] : ~0u), "r"(t), "r"(offset));
}
""",
        (out(3072), data(32, fill="random")),
        policies=("eager",),
    ),
)
