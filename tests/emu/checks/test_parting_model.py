# SPDX-License-Identifier: Apache-2.0
"""Random accesses, fences, meetings and arrivals of parts of a warp, against a model in which every lane is a thread
with a clock of its own.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from tests.emu.checks.kernels import COMMIT, FENCE, SYNC, rules, wait, warp

LANES = 32
PROGRAMS = 8
ALL = (1 << LANES) - 1
LOAD_IT, STORE_IT = "ld.shared.b32 %r5, [%r60];\n", "st.shared.b32 [%r60], %r0;\n"
COPY_IT = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r60], 16;\n" + COMMIT + "cp.async.bulk.wait_group 0;\n"


@dataclass(frozen=True)
class Step:
    """What the lanes of `mask` do: "touch" their own 16 bytes, "fence" for the asynchronous proxy, "meet" at
    bar.warp.sync, or "arrive".
    """

    what: str
    mask: int


def program(rng: random.Random) -> list[Step]:
    """Masks come from few, so that lanes part and meet in parts that nest and overlap."""
    steps: list[Step] = []
    for _ in range(rng.choice((1, 2))):
        halves = rng.getrandbits(LANES)
        some = halves & rng.getrandbits(LANES)
        masks = [ALL, ALL, ALL, 1, 1 << rng.randrange(LANES), halves, ALL & ~halves, some, 15]
        kinds = ("touch", "touch", "meet", "meet", "fence", "arrive")
        steps += [Step(rng.choice(kinds), rng.choice(masks) or ALL) for _ in range(11)]
    return [*steps, Step("arrive", rng.choice(masks) or ALL)]


def model(steps: list[Step]) -> tuple[set[int], set[int]]:
    """The lanes of which every access is known to who waits for all arrivals, and of which it is fenced too."""
    nothing = [0] * LANES
    known, fenced = ([list(nothing) for _ in range(LANES)] for _ in range(2))
    told = [nothing, nothing]
    for step in steps:
        lanes = [lane for lane in range(LANES) if step.mask >> lane & 1]
        for lane in lanes:
            if step.what == "touch":
                known[lane][lane] += 1
            elif step.what == "fence":
                fenced[lane] = [max(pair) for pair in zip(fenced[lane], known[lane], strict=True)]
        for number, clocks in enumerate((known, fenced)):
            joined = [max(clocks[lane][of] for lane in lanes) for of in range(LANES)]
            if step.what == "meet":
                for lane in lanes:
                    clocks[lane] = list(joined)
            elif step.what == "arrive":
                told[number] = [max(pair) for pair in zip(told[number], joined, strict=True)]
    last = [known[lane][lane] for lane in range(LANES)]
    ordered, visible = ({lane for lane in range(LANES) if vector[lane] == last[lane]} for vector in told)
    return ordered, visible


def text(steps: list[Step], access: str) -> tuple[str, int]:
    """The instructions of warp 0, and how many arrivals there are."""
    lines, arrivals = [], 0
    for number, step in enumerate(steps):
        arrivals += step.mask.bit_count() if step.what == "arrive" else 0
        body = {
            "touch": access,
            "fence": FENCE,
            "meet": f"bar.warp.sync {step.mask:#x};\n",
            "arrive": "mbarrier.arrive.shared.b64 _, [%r91];\n",
        }[step.what]
        lines.append(
            f"mov.u32 %r70, {step.mask:#x};\nshr.u32 %r70, %r70, %r0;\nand.b32 %r70, %r70, 1;\n"
            f"setp.eq.u32 %p6, %r70, 0;\n@%p6 bra $step{number};\n{body}$step{number}:\n"
        )
    return "".join(lines), arrivals


def kernel(steps: list[Step], first: str, second: str, lane: int) -> str:
    """Warp 0 does the steps; a thread of warp 1 waits, and touches what a lane of warp 0 has touched."""
    body, arrivals = text(steps, first)
    init = f"setp.ne.u32 %p9, %r0, 0;\n@%p9 bra $ready;\nmbarrier.init.shared::cta.b64 [%r91], {arrivals};\n$ready:\n"
    start = init + SYNC + warp(body, 90) + "setp.lt.u32 %p5, %r0, 32;\n@%p5 bra $end;\n" + wait(name="W")
    return f"{start}setp.ne.u32 %p5, %r0, 32;\n@%p5 bra $end;\nadd.u32 %r60, %r90, {16 * lane};\n{second}$end:\n"


@pytest.mark.parametrize(
    ("first", "second"),
    [("st.shared.b32 [%r94], %r0;\n", LOAD_IT),
     ("ld.shared.b32 %r5, [%r94];\n", STORE_IT),
     ("st.shared.b32 [%r94], %r0;\n", COPY_IT)],
    ids=["written", "read", "copied"],
)  # fmt: skip
@pytest.mark.parametrize("seed", range(6))
def test_random_steps(first: str, second: str, seed: int) -> None:
    rng = random.Random(f"parting {seed}")
    for _ in range(PROGRAMS):
        steps = program(rng)
        ordered, visible = model(steps)
        for lane in rng.sample(range(LANES), 3):
            right = set() if lane in ordered else {"RC-01"}
            if second is COPY_IT and lane in ordered and lane not in visible:
                right = {"PX-01"}
            assert rules(kernel(steps, first, second, lane)) == right, (steps, lane)


def test_the_steps_lead_to_every_outcome() -> None:
    rng = random.Random("outcomes")
    found = [model(program(rng)) for _ in range(50)]
    assert all(any(part(*each) for each in found) for part in (
        lambda ordered, visible: visible,
        lambda ordered, visible: ordered - visible,
        lambda ordered, visible: set(range(LANES)) - ordered,
    ))  # fmt: skip
