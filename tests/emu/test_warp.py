# SPDX-License-Identifier: Apache-2.0
"""Instructions across the lanes of a warp."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.emu.ptx import LANE, lanes, words

STORE = "st.global.u32 [%rd41], %r5;\n"
VALUE = "mul.lo.u32 %r2, %r0, 7;\nadd.u32 %r2, %r2, 3;\n"


def source(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """Source lane and predicate, as the PTX ISA's pseudocode of shfl.sync says."""
    segment, clamp = c >> 8 & 31, c & 31
    highest = (lane & segment) | (clamp & ~segment & 31)
    lowest = lane & segment
    j = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": lowest | (b & ~segment & 31)}[mode]
    ok = j >= highest if mode == "up" else j <= highest
    return (j if ok else lane), ok


@pytest.mark.parametrize("mode", ["idx", "up", "down", "bfly"])
@pytest.mark.parametrize("b", [0, 1, 5, 16, 31])
@pytest.mark.parametrize("width", [32, 8])
def test_shuffle(mode: str, b: int, width: int) -> None:
    c = (32 - width) << 8 | (0 if mode == "up" else 31)
    body = (
        LANE
        + VALUE
        + f"shfl.sync.{mode}.b32 %r3|%p1, %r2, {b}, {c}, -1;\nselp.u32 %r4, 1000, 0, %p1;\nadd.u32 %r5, %r3, %r4;\n"
        + STORE
    )
    assert words(body) == lanes(lambda i: source(mode, i, b, c)[0] * 7 + 3 + 1000 * source(mode, i, b, c)[1])


def test_shuffle_with_a_source_lane_per_lane() -> None:
    body = LANE + VALUE + "xor.b32 %r6, %r0, 21;\nshfl.sync.idx.b32 %r5, %r2, %r6, 31, -1;\n" + STORE
    assert words(body) == lanes(lambda i: (i ^ 21) * 7 + 3)


VOTES: dict[str, Callable[[int], int]] = {
    "ballot": lambda mask: mask, "any": lambda mask: int(mask != 0), "all": lambda mask: int(mask == 0xFFFFFFFF),
    "uni": lambda mask: int(mask in (0, 0xFFFFFFFF)),
}  # fmt: skip


@pytest.mark.parametrize("mode", list(VOTES))
@pytest.mark.parametrize("limit", [0, 9, 32])
def test_vote(mode: str, limit: int) -> None:
    if mode == "ballot":
        vote = "vote.sync.ballot.b32 %r5, %p1, -1;\n"
    else:
        vote = f"vote.sync.{mode}.pred %p2, %p1, -1;\nselp.u32 %r5, 1, 0, %p2;\n"
    body = LANE + f"setp.lt.u32 %p1, %r0, {limit};\n" + vote + STORE
    assert words(body) == [VOTES[mode]((1 << limit) - 1)] * 32


def test_elect_takes_the_lowest_member_once() -> None:
    body = LANE + "mov.u32 %r5, 0;\nelect.sync %r3|%p1, 0xfffffff0;\n@%p1 add.u32 %r5, %r3, 100;\n" + STORE
    body = (
        LANE
        + "mov.u32 %r5, 0;\nsetp.lt.u32 %p3, %r0, 4;\n@%p3 bra $end;\n"
        + body[len(LANE) + len("mov.u32 %r5, 0;\n") : -len(STORE)]
        + "$end:\n"
        + STORE
    )
    assert words(body) == lanes(lambda i: 104 if i == 4 else 0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mask", [0xFFFFFFFF, 0xFFFFFFF0, 0x80000001, 0x00000100])
def test_elect_takes_another_member_where_any_may_lead(mask: int, seed: int) -> None:
    member = [bool(mask >> lane & 1) for lane in range(32)]
    body = LANE + "mov.u32 %r5, 0;\nmov.u32 %r7, %laneid;\nshl.b32 %r6, 1, %r7;\n"
    body += f"and.b32 %r6, %r6, {mask};\nsetp.eq.u32 %p2, %r6, 0;\n@%p2 bra $out;\n"
    # Each time the same one; the threads of a second warp too.
    for _ in range(3):
        body += f"elect.sync %r3|%p1, {mask};\nselp.u32 %r4, 1, 0, %p1;\nadd.u32 %r5, %r5, %r4;\n"
    body += "$out:\n" + STORE
    found = words(body, count=64, threads=64, completion="random", seed=seed, any_leader=True)
    assert found[:32] == found[32:]
    (leader,) = (lane for lane in range(32) if found[lane])
    assert found[leader] == 3
    assert member[leader]
    lowest = member.index(True)
    assert (leader != lowest) == (sum(member) > 1)
    highest = 31 - member[::-1].index(True)
    for completion, lane in (("eager", lowest), ("lazy", lowest), ("newest-first", highest)):
        assert words(body, threads=64, completion=completion, any_leader=True)[lane] == 3
    assert words(body, threads=64, completion="random", seed=seed)[lowest] == 3


def test_elected_lane_runs_alone_and_comes_back() -> None:
    body = LANE + (
        "mov.u32 %r5, 0;\n{\n.reg .pred P;\nelect.sync _|P, 0xffffffff;\n@!P bra SKIP;\nadd.u32 %r5, %r0, 9;\n"
        "SKIP:\n}\n"
        "shfl.sync.idx.b32 %r5, %r5, 0, 31, -1;\n" + STORE
    )
    assert words(body) == [9] * 32


def test_match_redux_activemask() -> None:
    body = LANE + "and.b32 %r2, %r0, 3;\nmatch.any.sync.b32 %r5, %r2, -1;\n" + STORE
    assert words(body) == lanes(lambda i: sum(1 << j for j in range(32) if j % 4 == i % 4))
    for name, want in {"add": 31 * 16, "min": 0, "max": 31, "or": 31, "xor": 0, "and": 0}.items():
        kind = "b32" if name in ("or", "xor", "and") else "u32"
        assert words(LANE + f"redux.sync.{name}.{kind} %r5, %r0, -1;\n" + STORE) == [want] * 32
    body = LANE + "setp.lt.u32 %p1, %r0, 5;\n@!%p1 bra $e;\nactivemask.b32 %r5;\n" + STORE + "$e:\n"
    assert words(body)[:6] == [31] * 5 + [0]


@pytest.mark.parametrize("completion", ["eager", "random"])
@pytest.mark.parametrize("tile", [2, 8, 16])
def test_tiles_of_a_warp_name_masks_of_their_own(tile: int, completion: str) -> None:
    """As the tiles of cooperative groups do: each group of lanes executes the instruction on its own."""
    mask = (
        f"div.u32 %r1, %r0, {tile};\nmul.lo.u32 %r1, %r1, {tile};\nmov.u32 %r2, {(1 << tile) - 1};\n"
        "shl.b32 %r2, %r2, %r1;\n"
    )
    start = LANE + mask + "and.b32 %r3, %r0, 1;\nsetp.ne.u32 %p1, %r3, 0;\n"
    odd = 0xAAAAAAAA

    def named(i: int) -> int:
        return ((1 << tile) - 1) << i // tile * tile

    for text, want in (
        ("redux.sync.add.u32 %r5, %r0, %r2;\n", lambda i: sum(j for j in range(32) if j // tile == i // tile)),
        ("vote.sync.ballot.b32 %r5, %p1, %r2;\n", lambda i: odd & named(i)),
        ("match.any.sync.b32 %r5, %r3, %r2;\n", lambda i: (odd if i & 1 else ~odd & 0xFFFFFFFF) & named(i)),
        ("shfl.sync.bfly.b32 %r5, %r0, 1, 31, %r2;\n", lambda i: i ^ 1),
        ("elect.sync %r5|%p2, %r2;\n", lambda i: i // tile * tile),
        ("bar.warp.sync %r2;\nmov.u32 %r5, %r2;\n", named),
    ):
        assert words(start + text + STORE, completion=completion) == lanes(want), text
    # Lanes of one tile that come by another way are waited for.
    late = "setp.lt.u32 %p3, %r0, 3;\n@%p3 bra $way;\nadd.u32 %r0, %r0, 0;\n$way:\n"
    body = start + late + "redux.sync.max.u32 %r5, %r0, %r2;\n" + STORE
    assert words(body, completion=completion) == lanes(lambda i: i // tile * tile + tile - 1)


def test_lane_masks() -> None:
    body = LANE + "mov.u32 %r5, %lanemask_lt;\nmov.u32 %r6, %lanemask_ge;\nadd.u32 %r5, %r5, %r6;\n" + STORE
    assert words(body) == [0xFFFFFFFF] * 32
    assert words(LANE + "mov.u32 %r5, %lanemask_le;\n" + STORE) == lanes(lambda i: (2 << i) - 1)
