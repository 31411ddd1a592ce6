# SPDX-License-Identifier: Apache-2.0
"""Small kernels, each broken in one way that eager completion does not show, and the policy that shows it.

They copy words from %rd2 (the input) to %rd1 (the output), in shared memory by the way. What goes through is compared
with the input; no check is on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tmagen.emu import EmulatorError, GlobalMemory, Launch, Module, parse, run

TILE = 256  # bytes, and 64 words

HEAD = """.version 8.8
.target sm_100a
.address_size 64
.shared .align 8 .b64 bars[8];
.shared .align 8 .b32 word[2];
.shared .align 128 .b8 tile[1024];
.visible .entry k(.param .u64 out, .param .u64 in)
{
.reg .pred %p<20>;
.reg .b32 %r<60>;
.reg .b64 %rd<20>;
ld.param.u64 %rd1, [out];
ld.param.u64 %rd2, [in];
mov.u32 %r1, %tid.x;
shr.u32 %r2, %r1, 5;
and.b32 %r3, %r1, 31;
shl.b32 %r4, %r3, 2;
cvt.u64.u32 %rd3, %r4;
mov.u32 %r5, bars;
mov.u32 %r6, tile;
mov.u32 %r7, word;
add.u32 %r8, %r6, %r4;
add.s64 %rd4, %rd1, %rd3;
"""
# %r2 warp, %r3 lane, %r4 4 * lane, %r5 barriers, %r6 tile, %r7 a word, %r8 the lane's place in it, %rd4 in the output.


def init(*counts: int) -> str:
    """mbarriers of these counts, by thread 0, and a barrier of the CTA."""
    made = "".join(f"mbarrier.init.shared::cta.b64 [%r5+{8 * i}], {count};\n" for i, count in enumerate(counts))
    return f"setp.ne.u32 %p1, %r1, 0;\n@%p1 bra $ready;\n{made}$ready:\nbar.sync 0;\n"


def load(stage: int, source: int, barrier: int) -> str:
    """A tile of the input into a stage."""
    return (
        f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5+{8 * barrier}], {TILE};\n"
        f"add.u32 %r20, %r6, {TILE * stage};\nadd.u32 %r21, %r5, {8 * barrier};\n"
        f"add.s64 %rd10, %rd2, {TILE * source};\n"
        f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r20], [%rd10], {TILE}, [%r21];\n"
    )


class Labels:
    """Fresh names of labels."""

    def __init__(self) -> None:
        self._count = 0

    def wait(self, barrier: int, parity: int) -> str:
        self._count += 1
        return (
            f"$w{self._count}:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r5+{8 * barrier}], {parity};\n"
            f"@!%p2 bra $w{self._count};\n"
        )

    def role(self, warp: int, text: str) -> str:
        """What one warp does, all of its lanes."""
        self._count += 1
        name = f"$r{self._count}"
        return f"setp.ne.u32 %p3, %r2, {warp};\n@%p3 bra {name};\n{text}{name}:\n"

    def thread(self, warp: int, text: str) -> str:
        """What lane 0 of a warp does."""
        self._count += 1
        name = f"$t{self._count}"
        return self.role(warp, f"setp.ne.u32 %p4, %r3, 0;\n@%p4 bra {name};\n{text}{name}:\n")


def arrive(barrier: int) -> str:
    """By lane 0."""
    return f"setp.eq.u32 %p5, %r3, 0;\n@%p5 mbarrier.arrive.shared::cta.b64 _, [%r5+{8 * barrier}];\n"


def copy(stage: int, place: int) -> str:
    """32 words of a stage to the output, one by each lane."""
    return f"ld.shared.u32 %r30, [%r8+{TILE * stage}];\nst.global.u32 [%rd4+{128 * place}], %r30;\n"


@dataclass(frozen=True)
class Case:
    """`right` and `wrong` are bodies; `tiles` says which tile's first 32 words each part of the output must hold."""

    policy: str
    mutation: str
    right: str
    wrong: str
    tiles: tuple[int, ...]
    warps: int = 1
    any_leader: bool = False
    same: bool = False  # all tiles of the input hold the same


@lru_cache(maxsize=64)
def _module(body: str) -> Module:
    return parse(f"{HEAD}{body}ret;\n}}\n")


def outcome(case: Case, body: str, policy: str, seed: int) -> str:
    """What a run comes to: "" where it is right, "wrong values", or what ends it."""
    memory = GlobalMemory()
    words = np.arange(1, 64 * 8 + 1, dtype=np.uint32)
    if case.same:
        words = np.tile(words[:64], 8)
    source, out = memory.allocate(words.nbytes), memory.allocate(128 * len(case.tiles))
    source.data[:] = words.view(np.uint8)
    params = b"".join(each.address.to_bytes(8, "little") for each in (out, source))
    launch = Launch("k", (1, 1, 1), (32 * case.warps, 1, 1), params=params)
    try:
        run(_module(body), launch, memory, completion=policy, seed=seed, any_leader=case.any_leader)
    except EmulatorError as error:
        return error.kind
    wanted: npt.NDArray[np.uint32] = np.concatenate([words[64 * tile : 64 * tile + 32] for tile in case.tiles])
    return "" if np.array_equal(out.data.view(np.uint32), wanted) else "wrong values"


def launch_of(case: Case) -> Launch:
    """For the seeds of a policy."""
    return Launch("k", (1, 1, 1), (32 * case.warps, 1, 1))


# --- the kernels ------------------------------------------------------------------------------------------------------


def _one_load(wait: bool) -> str:
    names = Labels()
    return init(1) + names.thread(0, load(0, 0, 0)) + (names.wait(0, 0) if wait else "") + copy(0, 0) + names.wait(0, 0)


def _two_loads(first: int) -> str:
    names = Labels()
    both = names.thread(0, load(0, 0, 0) + load(1, 1, 1))
    ending = names.wait(0, 0) + names.wait(1, 0)
    return init(1, 1) + both + names.wait(first, 0) + copy(0, 0) + names.wait(1, 0) + copy(1, 1) + ending


def _ring(*, waits_for_empty: bool, counts: int = 1, consumers: int = 1, arrives: tuple[int, ...] = (1,)) -> str:
    """Warp 0 loads six tiles into two stages, and sees each arrive; the other warps copy them out."""
    names = Labels()
    produce = consume = ""
    for tile in range(6):
        stage, lap = tile % 2, tile // 2
        if lap and waits_for_empty:
            produce += names.wait(2 + stage, (lap - 1) & 1)
        produce += load(stage, tile, stage) + names.wait(stage, lap & 1)
    body = init(1, 1, counts, counts) + names.thread(0, produce)
    for warp in range(1, 1 + consumers):
        consume = ""
        for tile in range(6):
            stage, lap = tile % 2, tile // 2
            consume += names.wait(stage, lap & 1) + copy(stage, tile * consumers + warp - 1)
            consume += arrive(2 + stage) if warp in arrives else ""
        body += names.role(warp, consume)
    return body


def _factor(waits: bool) -> str:
    """Warp 0 loads a tile, and then writes a word that warp 1 adds to it; barrier 1 says that it is there."""
    names = Labels()
    make = load(0, 0, 0) + names.wait(0, 0) + "mov.u32 %r31, 0;\nst.shared.u32 [%r7], %r31;\n" + arrive(1)
    use = names.wait(0, 0) + (names.wait(1, 0) if waits else "")
    use += "ld.shared.u32 %r32, [%r7];\nld.shared.u32 %r30, [%r8];\nadd.u32 %r30, %r30, %r32;\n"
    return init(1, 1) + names.thread(0, make) + names.role(1, use + "st.global.u32 [%rd4], %r30;\n") + names.wait(1, 0)


def _store_and_look(read: str) -> str:
    """Thread 0 stores a tile to the first half of the output; the lanes copy what they find there to the second."""
    names = Labels()
    store = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r6], 128;\ncp.async.bulk.commit_group;\n"
    store += f"cp.async.bulk.wait_group{read} 0;\n"
    look = "bar.sync 0;\nld.global.u32 %r30, [%rd4];\nst.global.u32 [%rd4+128], %r30;\n"
    finish = names.thread(0, "cp.async.bulk.wait_group 0;\n")
    return init(1) + names.thread(0, load(0, 0, 0)) + names.wait(0, 0) + names.thread(0, store) + look + finish


def _last_word(waits: bool) -> str:
    """The tile is there when its last word is, or so it is thought."""
    names = Labels()
    spin = f"$last:\nld.volatile.shared.u32 %r33, [%r6+{TILE - 4}];\nsetp.ne.u32 %p6, %r33, 64;\n@%p6 bra $last;\n"
    there = names.wait(0, 0) if waits else spin
    return init(1) + names.thread(0, load(0, 0, 0)) + there + copy(0, 0) + names.wait(0, 0)


def _one_look(loops: bool) -> str:
    """A tile that is not there at the first look is left out."""
    names = Labels()
    look = "mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r5], 0;\n@!%p7 bra $skip;\n"
    ending = copy(0, 0) + "$skip:\n" + names.wait(0, 0)
    return init(1) + names.thread(0, load(0, 0, 0)) + (names.wait(0, 0) + copy(0, 0) if loops else look + ending)


def _elected(lane_0: bool) -> str:
    """The elected lane stores a word that each lane has made, or lane 0 alone."""
    make = "mov.u32 %r40, 0;\n" + ("setp.eq.u32 %p8, %r3, 0;\n@%p8 " if lane_0 else "") + "mov.u32 %r40, 1;\n"
    store = "elect.sync _|%p9, 0xffffffff;\n@%p9 st.shared.u32 [%r7], %r40;\nbar.warp.sync 0xffffffff;\n"
    return make + store + "ld.shared.u32 %r41, [%r7];\nadd.u32 %r41, %r41, %r3;\nst.global.u32 [%rd4], %r41;\n"


def _tensor_memory(base: str) -> str:
    names = Labels()
    alloc = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r7], 32;\nbar.sync 0;\n"
    alloc += "ld.shared.u32 %r42, [%r7];\n"
    there = f"ld.shared.u32 %r30, [%r8];\ntcgen05.st.sync.aligned.32x32b.x1.b32 [{base}], {{%r30}};\n"
    there += f"tcgen05.wait::st.sync.aligned;\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r31}}, [{base}];\n"
    there += "tcgen05.wait::ld.sync.aligned;\nst.global.u32 [%rd4], %r31;\n"
    free = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r42, 32;\n"
    return init(1) + alloc + "mov.u32 %r43, 0;\n" + names.thread(0, load(0, 0, 0)) + names.wait(0, 0) + there + free


def _again(waits: bool) -> str:
    """A stage is filled twice, the second time with what it holds already."""
    names = Labels()
    second = names.thread(0, load(0, 1, 0)) + (names.wait(0, 1) if waits else "")
    first = names.thread(0, load(0, 0, 0)) + names.wait(0, 0) + copy(0, 0)
    return init(1) + first + "bar.warp.sync 0xffffffff;\n" + second + copy(0, 1) + names.wait(0, 1)


def _kept_phase(initial: bool) -> str:
    """The phase to wait for lies in shared memory."""
    names = Labels()
    start = "mov.u32 %r44, 0xffffffff;\nst.shared.u32 [%r7], %r44;\n" if initial else ""
    phase = "ld.shared.u32 %r45, [%r7];\nnot.b32 %r45, %r45;\nand.b32 %r45, %r45, 1;\n"
    spin = "$kept:\nmbarrier.try_wait.parity.shared::cta.b64 %p10, [%r5], %r45;\n@!%p10 bra $kept;\n"
    return start + init(1) + phase + names.thread(0, load(0, 0, 0)) + spin + copy(0, 0) + names.wait(0, 0)


SECOND = "of two loads, the second is waited for in place of the first"

CASES = (
    Case("lazy", "the wait for a load is left out", _one_load(True), _one_load(False), (0,)),
    Case("newest-first", SECOND, _two_loads(0), _two_loads(1), (0, 1)),
    Case("random", SECOND, _two_loads(0), _two_loads(1), (0, 1)),
    Case(
        "producer-first",
        "the producer of a ring does not wait for its stages to be empty",
        _ring(waits_for_empty=True),
        _ring(waits_for_empty=False),
        (0, 1, 2, 3, 4, 5),
        warps=2,
    ),
    Case(
        "consumer-first",
        "a word that the producer writes is read with no wait for it",
        _factor(True),
        _factor(False),
        (0,),
        warps=2,
    ),
    Case(
        "late-read",
        "wait_group.read before the output is read back",
        _store_and_look(""),
        _store_and_look(".read"),
        (0, 0),
    ),
    Case("split", "a spin on the last word of a tile in place of the wait", _last_word(True), _last_word(False), (0,)),
    Case("adversarial", "one look at the mbarrier, and no loop", _one_look(True), _one_look(False), (0,)),
    Case(
        "adversarial",
        "the elected lane stores what lane 0 alone has made",
        _elected(False),
        _elected(True),
        (0,),
        any_leader=True,
    ),
    Case(
        "adversarial",
        "tensor memory taken to begin at column 0",
        _tensor_memory("%r42"),
        _tensor_memory("%r43"),
        (0,),
    ),
    Case(
        "poison",
        "no wait for a load that brings what the stage holds already",
        _again(True),
        _again(False),
        (0, 0),
        same=True,
    ),
    Case("poison", "a phase kept in shared memory is never set", _kept_phase(True), _kept_phase(False), (0,)),
    Case(
        "starve",
        "of two consumers of a ring, one does not say that it has read",
        _ring(waits_for_empty=True, counts=2, consumers=2, arrives=(1, 2)),
        _ring(waits_for_empty=True, counts=1, consumers=2, arrives=(1,)),
        (0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5),
        warps=3,
    ),
)
