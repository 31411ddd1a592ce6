# SPDX-License-Identifier: Apache-2.0
"""Lanes that part: what one of them tells for the others, and what each may tell of itself."""

from __future__ import annotations

import pytest

from tests.emu.checks.kernels import COMMIT, FENCE, FILL, INIT, READ, STORE, SYNC, USE, check, one, rules, wait, warp

OTHER = "xor.b32 %r95, %r94, 512;\nld.shared.b32 %r5, [%r95];\n"  # what a thread of the other warp wrote
WRITE_OTHER = "xor.b32 %r95, %r94, 512;\nst.shared.b32 [%r95], %r0;\n"
MEET = "bar.warp.sync -1;\n"
FIRST = "ld.shared.b32 %r5, [%r90];\n"  # what thread 0 wrote, or reads first
ARRIVE = "mbarrier.arrive.shared.b64 _, [%r91];\n"
ELECTED = "{\n.reg .pred E;\nelect.sync _|E, -1;\n@E mbarrier.arrive.shared.b64 _, [%r91];\n}\n"
WAIT_READ = "cp.async.bulk.wait_group.read 0;\n"
SHUFFLE = "shfl.sync.idx.b32 %r7, %r5, 0, 31, -1;\n"
MATRIX = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r8}, [%r94];\n"
PRODUCT = (
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r5, %r5, %r5, %r5}, {%r5, %r5}, "
    "{%f0, %f1, %f2, %f3};\n"
)


def handed_over(first: str, then: str, *, count: int = 1) -> str:
    """Warp 0 does something and arrives, warp 1 waits and goes on."""
    init = INIT.replace("[%r91], 1;", f"[%r91], {count};")
    return init + SYNC + warp(first, 4) + warp(wait(name="W") + then, 5, index=1)


@pytest.mark.parametrize("arrive", [one(ARRIVE, 1), one(ARRIVE, 1, thread=31), ELECTED], ids=["0", "31", "elect"])
@pytest.mark.parametrize(("access", "then"), [(FILL, OTHER), (READ + USE, WRITE_OTHER)], ids=["writes", "reads"])
def test_an_arrive_of_one_lane_tells_of_what_the_others_did_before_they_met(
    access: str, then: str, arrive: str
) -> None:
    assert rules(handed_over(access + arrive, then)) == {"RC-01"}
    assert rules(handed_over(access + MEET + arrive, then)) == set()
    assert rules(handed_over(MEET + access + arrive, then)) == {"RC-01"}
    assert rules(handed_over(access + MEET + access + arrive, then)) == {"RC-01"}
    for finding in check(handed_over(access + arrive, then)):
        assert "MB-31" in finding.hints[0] and "bar.warp.sync" in finding.hints[0]


@pytest.mark.parametrize(
    ("between", "fired"),
    [
        (SHUFFLE, set()),
        ("vote.sync.ballot.b32 %r7, %p9, -1;\n", set()),
        ("redux.sync.add.u32 %r7, %r5, -1;\n", set()),
        (PRODUCT, set()),
        (MATRIX, set()),
        ("bar.sync 2, 32;\n", set()),
        ("bar.arrive 2, 64;\n", set()),
        ("bar.warp.sync 0xffff;\n", {"RC-01"}),
        ("membar.cta;\n", {"RC-01"}),
        (USE, {"RC-01"}),
        ("{\n.reg .pred E;\nelect.sync _|E, -1;\n}\n", {"RC-01"}),
    ],
)
def test_what_brings_lanes_together(between: str, fired: set[str]) -> None:
    if "0xffff" in between:  # half the warp meets
        between = "setp.gt.u32 %p6, %r0, 15;\n@%p6 bra $upper;\n" + between + "$upper:\n"
    if "bar.arrive" in between:
        between += "bar.sync 3, 32;\n"
        other = wait(name="W") + "bar.sync 2, 64;\n" + WRITE_OTHER
        body = INIT + SYNC + warp(READ + "bar.arrive 2, 64;\n" + one(ARRIVE, 1), 4) + warp(other, 5, index=1)
        assert rules(body) == fired
        return
    assert rules(handed_over(READ + between + one(ARRIVE, 1), WRITE_OTHER)) == fired


def test_a_collective_load_is_of_the_whole_warp() -> None:
    assert rules(handed_over(MATRIX + one(ARRIVE, 1), WRITE_OTHER)) == set()
    assert rules(handed_over(MATRIX + READ + one(ARRIVE, 1), WRITE_OTHER)) == {"RC-01"}


def test_a_lane_tells_of_its_own_part() -> None:
    """The other warp touches what the lane that arrives did, or what another one did."""
    for thread in (0, 3):
        mine = f"ld.shared.b32 %r5, [%r90+{16 * thread}];\n"
        for lane in (0, 3, 31):
            fired = set() if lane == thread else {"RC-01"}
            assert rules(handed_over(FILL + one(ARRIVE, 1, thread=lane), mine)) == fired


def test_every_lane_tells_for_itself() -> None:
    assert rules(handed_over(FILL + ARRIVE, OTHER, count=32)) == set()
    # one at a time: the last one ends the phase
    each = "".join(one(ARRIVE, 10 + lane, thread=lane) for lane in range(32))
    assert rules(handed_over(FILL + each, OTHER, count=32)) == set()
    but_one = "".join(one(ARRIVE, 10 + lane, thread=lane) for lane in range(31))
    assert rules(handed_over(FILL + but_one, OTHER, count=31)) == {"RC-01"}
    # halves
    halves = "setp.gt.u32 %p6, %r0, 15;\n@%p6 bra $upper;\n" + ARRIVE + "$upper:\n@!%p6 bra $lower;\n" + ARRIVE
    assert rules(handed_over(FILL + halves + "$lower:\n", OTHER, count=32)) == set()


def test_the_larger_side_does_not_know_the_smaller_one_either() -> None:
    """All but lane 0 arrive."""
    rest = "setp.eq.u32 %p6, %r0, 0;\n@%p6 bra $zero;\n" + ARRIVE + "$zero:\n"
    assert rules(handed_over(FILL + rest, OTHER, count=31)) == {"RC-01"}
    assert rules(handed_over(FILL + rest, FIRST, count=31)) == {"RC-01"}
    assert rules(handed_over(FILL + rest, "ld.shared.b32 %r5, [%r90+16];\n", count=31)) == set()
    # the lane that is left alone arrives, whichever side the checks hear of first
    spin = "setp.eq.u32 %p6, %r0, 0;\n@%p6 bra $zero;\nst.shared.b32 [%r93], 1;\n$zero:\n"
    assert rules(handed_over(FILL + spin + one(ARRIVE, 1), OTHER)) == {"RC-01"}


def test_parts_of_parts() -> None:
    """Lanes 0-3 leave the others, then lane 0 leaves those."""
    four = "setp.gt.u32 %p6, %r0, 3;\n@%p6 bra $rest;\nst.shared.b32 [%r93], 1;\n{}$rest:\n"
    alone = "setp.ne.u32 %p8, %r0, 0;\n@%p8 bra $not;\n" + ARRIVE + "$not:\n"
    second = "ld.shared.b32 %r5, [%r90+16];\n"
    fourth = "ld.shared.b32 %r5, [%r90+64];\n"
    assert rules(handed_over(FILL + four.format(alone), second)) == {"RC-01"}
    assert rules(handed_over(FILL + four.format("bar.warp.sync 15;\n" + alone), second)) == set()
    assert rules(handed_over(FILL + four.format("bar.warp.sync 15;\n" + alone), fourth)) == {"RC-01"}
    assert rules(handed_over(FILL + four.format("") + MEET + one(ARRIVE, 1), OTHER)) == set()
    # they part again and again
    again = "".join(one("st.shared.b32 [%r93], 2;\n", 20 + n, thread=n) + MEET + FILL for n in range(5))
    assert rules(handed_over(again + MEET + one(ARRIVE, 1), OTHER)) == set()
    assert rules(handed_over(again + one(ARRIVE, 1), OTHER)) == {"RC-01"}


def test_a_bulk_store_of_one_lane() -> None:
    """The bytes of warp 0 alone."""
    store = STORE.replace("1024", "512") + COMMIT + WAIT_READ
    assert rules(FILL + FENCE + one(store, 1), threads=32) == {"RC-01"}
    assert rules(FILL + FENCE + MEET + one(store, 1), threads=32) == set()
    assert rules(FILL + MEET + FENCE + one(store, 1), threads=32) == set()
    assert rules(FILL + MEET + one(store, 1), threads=32) == {"PX-01"}
    own = store.replace("512", "16")
    assert rules(FILL + FENCE + one(own, 1), threads=32) == set()
    assert rules(FILL + one(FENCE + own, 1), threads=32) == set()
    assert rules(FILL + one(own, 1), threads=32) == {"PX-01"}
    assert rules(FILL + FENCE + FILL + one(own, 1), threads=32) == {"PX-01"}
    # both sides fence after they have parted, and meet
    apart = one(FENCE, 2) + "@!%p8 bra $one;\n" + FENCE + "$one:\n"
    assert rules(FILL + apart + MEET + one(store, 1), threads=32) == set()
    assert rules(FILL + one(FENCE, 2, thread=3) + MEET + one(store, 1), threads=32) == {"PX-01"}


def test_all_lanes_store_the_same_to_one_place() -> None:
    """The lane that arrives has stored it too."""
    assert rules(handed_over("st.shared.b32 [%r90], 7;\n" + one(ARRIVE, 1), FIRST)) == set()
    # but all of them read it, and one of them says so
    assert rules(handed_over(FIRST + USE + one(ARRIVE, 1), "st.shared.b32 [%r90], 7;\n")) == {"RC-01"}


def test_a_wait_for_what_all_lanes_have_released() -> None:
    """Every lane arrives and every lane waits: each knows of all."""
    body = FILL + ARRIVE + wait(name="V") + one("mbarrier.arrive.shared.b64 _, [%r92];\n", 1)
    init = INIT.replace("[%r91], 1;", "[%r91], 32;")
    take = warp(wait(barrier="%r92", name="W") + OTHER, 5, index=1)
    assert rules(init + SYNC + warp(body, 4) + take) == set()


def test_a_wait_by_all_lanes_is_one_of_each() -> None:
    """What the other warp has told all lanes, each of them knows after they part."""
    write = warp(FILL + MEET + one(ARRIVE, 1), 2, index=1)
    read = wait(name="W") + "st.shared.b32 [%r94], %r0;\n" + one("ld.shared.b32 %r5, [%r90+512];\n", 3)
    assert rules(INIT + SYNC + write + warp(read, 4)) == set()


def test_a_store_to_global_memory() -> None:
    """Told by a flag of one lane, in another CTA and in another warp."""
    self = "mov.u32 %r50, %ctaid.x;\nsetp.ne.u32 %p5, %r50, 0;\n"
    mine = "mul.wide.u32 %rd30, %r0, 4;\nadd.s64 %rd31, %rd1, %rd30;\n"
    ask = "$look:\nld.acquire.gpu.global.b32 %r40, [%rd1+4096];\nsetp.eq.u32 %p4, %r40, 0;\n@%p4 bra $look;\n"
    tell = one("st.release.gpu.global.b32 [%rd1+4096], 1;\n", 1)
    write, read = "st.global.b32 [%rd31], %r0;\n", "ld.global.b32 %r5, [%rd31];\n"

    def body(before: str, read: str = read, tell: str = tell) -> str:
        return f"{mine}{self}@%p5 bra $other;\n{write}{before}{tell}ret;\n$other:\n{ask}{read}"

    assert rules(body(MEET), grid=2, threads=32) == set()
    assert rules(body(""), grid=2, threads=32) == {"RC-02"}
    assert rules(body("", "ld.global.b32 %r5, [%rd1];\n"), grid=2, threads=32) == set()
    assert rules(body("", "ld.global.b32 %r5, [%rd1+4];\n"), grid=2, threads=32) == {"RC-02"}
    # a fence of each lane, and a flag by one
    relaxed = one("st.relaxed.gpu.global.b32 [%rd1+4096], 1;\n", 1)
    fence = "fence.acq_rel.gpu;\n"
    assert rules(body(fence + MEET, tell=relaxed), grid=2, threads=32) == set()
    assert rules(body(fence, tell=relaxed), grid=2, threads=32) == {"RC-02"}
    assert rules(body(fence, "ld.global.b32 %r5, [%rd1];\n", relaxed), grid=2, threads=32) == set()
    inside = mine + INIT + SYNC + warp("{}" + one(ARRIVE, 1), 4)
    take = warp(wait(name="W") + "ld.global.b32 %r5, [%rd31+-128];\n", 5, index=1)
    assert rules(inside.format(write) + take) == {"RC-02"}
    assert rules(inside.format(write + MEET) + take) == set()


def test_an_acquire_by_all_lanes_of_what_another_cta_told() -> None:
    """Each lane has looked at the flag itself, so what it brought stays when they part."""
    self = "mov.u32 %r50, %ctaid.x;\nsetp.ne.u32 %p5, %r50, 0;\n"
    write = "st.global.b32 [%rd1], %r0;\nst.release.gpu.global.b32 [%rd1+4096], 1;\n"
    ask = "$look:\nld.acquire.gpu.global.b32 %r40, [%rd1+4096];\nsetp.eq.u32 %p4, %r40, 0;\n@%p4 bra $look;\n"
    body = self + "@%p5 bra $other;\n" + one(write, 1) + "ret;\n$other:\n" + ask + FILL
    assert rules(body + one("ld.global.b32 %r5, [%rd1];\n", 2), grid=2, threads=32) == set()


def test_registers_used_before_one_lane_releases() -> None:
    """A lane's own use counts for what it overwrites itself."""
    load = one("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r90], [%rd2], 16, [%r92];\n", 1)
    load = load.replace("cp.async", "mbarrier.arrive.expect_tx.shared.b64 _, [%r92], 16;\ncp.async")
    end = wait(barrier="%r92", name="Z")
    assert rules(INIT + SYNC + READ + USE + load + end, threads=32) == set()
    assert rules(INIT + SYNC + READ + FENCE + load + USE + end, threads=32, level="R") == set()
