# SPDX-License-Identifier: Apache-2.0
"""setmaxnreg: the pool of a CTA's registers, and what the warps of a warpgroup do together."""

from __future__ import annotations

import pytest

from tests.emu.checks.kernels import SYNC, check, rules
from tmagen.emu import Deadlock, EmulatorError, Fault

LIMIT = ".reqntid 384"  # 65,536 / 384, rounded down to 8: 168 registers for each thread


def change(direction: str, count: int) -> str:
    return f"setmaxnreg.{direction}.sync.aligned.u32 {count};\n"


def groups(*texts: str) -> str:
    """A text for each warpgroup."""
    body = "shr.u32 %r80, %r0, 7;\n"
    for number, text in enumerate(texts):
        body += f"setp.ne.u32 %p7, %r80, {number};\n@%p7 bra $next{number};\n{text}bra $joined;\n$next{number}:\n"
    return body + "$joined:\n"


def three(*counts: tuple[str, int]) -> str:
    return groups(*(change(*count) for count in counts))


def fault(body: str, **options: object) -> EmulatorError:
    with pytest.raises(EmulatorError) as caught:
        check(body, **options)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize(
    ("counts", "rule"),
    [
        ((("dec", 40), ("inc", 232), ("inc", 232)), None),
        ((("dec", 24), ("inc", 240), ("inc", 240)), None),
        ((("dec", 40), ("inc", 240), ("inc", 240)), "SR-05"),
        ((("dec", 96), ("inc", 232), ("inc", 232)), "SR-05"),
        ((("dec", 40), ("inc", 160), ("inc", 232)), "SR-03"),
        ((("dec", 176), ("inc", 232), ("inc", 232)), "SR-03"),
        ((("dec", 40), ("inc", 236), ("inc", 232)), "SR-01"),
        ((("dec", 16), ("inc", 232), ("inc", 232)), "SR-01"),
    ],
)
def test_three_warpgroups_share_168_for_each_thread(counts: tuple[tuple[str, int], ...], rule: str | None) -> None:
    assert rules(three(*counts), threads=384, directives=LIMIT) == ({rule} if rule else set())
    assert rules(three(*counts), "W", threads=384, directives=LIMIT) == set()


def test_who_waits_for_registers_is_told_with_the_sum() -> None:
    error = fault(three(("dec", 40), ("inc", 240), ("inc", 240)), threads=384, directives=LIMIT)
    assert isinstance(error, Deadlock) and error.rule == "SR-05"
    text = error.report()
    assert "setmaxnreg.inc waits for 2,304 registers, to have 240 for each thread instead of 168" in text
    assert "the CTA has 64,512 (168 for each thread, of .reqntid 384)" in text


def test_registers_are_handed_over_when_another_warpgroup_gives_them_back() -> None:
    late = groups(change("inc", 232), change("inc", 232), SYNC.replace(" 0", " 1, 128") + change("dec", 40))
    assert rules(late, threads=384, directives=LIMIT) == set()


@pytest.mark.parametrize(
    ("directives", "registers", "largest", "rule"),
    [
        (".reqntid 256", None, 232, None),  # 256 for each thread, but no more than the largest inc
        (".reqntid 256", 168, 232, None),  # 2 x 168 = 40 + 296
        (".reqntid 256", 128, 232, "SR-05"),
        (".maxnreg 128", None, 232, "SR-05"),
        (".maxnreg 136", None, 232, None),
        (".reqntid 256\n.minnctapersm 2", None, 232, "SR-05"),  # 128 for each thread
        (".maxntid 256", 232, 224, "SR-03"),
    ],
)
def test_where_the_count_at_launch_comes_from(
    directives: str, registers: int | None, largest: int, rule: str | None
) -> None:
    body = three(("dec", 40), ("inc", largest))
    assert rules(body, threads=256, directives=directives, registers=registers) == ({rule} if rule else set())


def test_without_a_limit_the_instruction_is_ignored() -> None:
    body = three(("dec", 96), ("inc", 232), ("inc", 232))
    assert rules(body, threads=384) == set()
    assert rules(body, "W", threads=384) == {"SR-04"}


ONE_WARP = "shr.u32 %r81, %r0, 5;\nsetp.eq.u32 %p6, %r81, 2;\n@%p6 bra $left;\n{}$left:\n"


def test_a_warp_that_leaves_it_out() -> None:
    body = ONE_WARP.format(change("dec", 40))
    error = fault(body, threads=128, directives=".reqntid 128")
    assert isinstance(error, Fault) and error.rule == "SR-02"
    assert "warp 2 did not execute setmaxnreg.dec 40, which others of warpgroup 0 did" in error.message


def test_different_counts_in_a_warpgroup_are_a_formal_matter() -> None:
    body = ONE_WARP.format(change("dec", 40) + "bra $end;\n") + change("dec", 24) + "$end:\n"
    assert rules(body, threads=128, directives=".reqntid 128") == set()
    assert rules(body, "W", threads=128, directives=".reqntid 128") == {"SR-02"}


def test_the_warpgroup_comes_together_between_two() -> None:
    first, second = change("dec", 64), change("inc", 96)
    assert rules(first + second, threads=128, directives=".reqntid 128") == set()  # Triton's roles leave it out
    assert rules(first + second, "W", threads=128, directives=".reqntid 128") == {"SR-02"}
    assert rules(first + SYNC + second, "W", threads=128, directives=".reqntid 128") == set()
    (found,) = (f for f in check(first + second, threads=128, directives=".reqntid 128") if f.level == "W")
    assert "setmaxnreg.inc.sync.aligned.u32 96" in found.instruction
    assert "nothing orders it after the setmaxnreg before it of warp" in found.message


@pytest.mark.parametrize("completion", ["lazy", "newest-first", "random"])
def test_any_order_of_completion(completion: str) -> None:
    body = three(("dec", 40), ("inc", 232), ("inc", 232))
    assert rules(body, threads=384, directives=LIMIT, completion=completion) == set()
