# SPDX-License-Identifier: Apache-2.0
"""Timed completion: the table and where it comes from, the units against published and measured figures, and that a run
is the same each time.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.emu.ptx import LANE, execute, module
from tests.emu.test_async import DATA, LOAD, SHARED, START, WAIT, one
from tests.emu.test_trace import TILE, traced
from tmagen.emu import GlobalMemory, Launch, RunResult, run, table_for
from tmagen.emu.observe.work import Work
from tmagen.emu.timing.cost import Clock, cost_of
from tmagen.emu.timing.units import Units

BLACKWELL, HOPPER = table_for("sm_100a"), table_for("sm_90a")


def instruction(text: str):
    """One instruction, parsed."""
    return next(i for i in module(LANE + text).entries["k"].body if i.text.startswith(text.split()[0].rstrip(";")))


# --- the table --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [BLACKWELL, HOPPER], ids=["sm_100a", "sm_90a"])
def test_every_figure_has_a_source_or_is_an_assumption(table) -> None:
    text = "\n".join(table.text())
    assert "a model, not a measurement" in text
    for row in table.rows:
        assert row.value > 0 and row.unit in ("cycles", "B/cycle", "MAC/cycle")
        assert row.what in text and row.source in text
        assert any(word in row.source for word in ("measured", "published", "assumption"))
    assert len({row.key for row in table.rows}) == len(table.rows)


def test_targets() -> None:
    assert table_for("sm_90a") is table_for("sm_80") is HOPPER
    assert table_for("sm_100a") is table_for("sm_103a") is table_for("sm_120") is BLACKWELL


# Cycles from one tcgen05.mma of f16 or bf16 inputs to the next, as published for a B200 (SemiAnalysis,
# microbench-blackwell, umma_latency/fit_results.csv): (A from shared memory, M, N) -> cycles.
PUBLISHED = {
    (True, 64, 64): 32, (True, 64, 80): 40, (True, 64, 96): 48, (True, 64, 128): 64, (True, 64, 256): 128,
    (True, 128, 64): 48, (True, 128, 80): 52, (True, 128, 96): 56, (True, 128, 112): 60, (True, 128, 128): 64,
    (True, 128, 256): 128, (False, 64, 64): 32, (False, 128, 64): 32, (False, 128, 80): 40, (False, 128, 256): 128,
}  # fmt: skip


@pytest.mark.parametrize(("case", "cycles"), PUBLISHED.items())
def test_mma_rates_are_the_published_ones(case: tuple[bool, int, int], cycles: int) -> None:
    reads_a, m, n = case
    assert Units(BLACKWELL).mma_cycles(Work("mma", shape=(m, n, 16), reads_a=reads_a)) == cycles


def test_one_mma_takes_as_long_as_published() -> None:
    """Issue to the end of the wait for its commit: 200 cycles for 128 x 128, 264 for 128 x 256."""
    for n, published in ((128, 200), (256, 264)):
        units = Units(BLACKWELL)
        issue = BLACKWELL["mma_issue"]
        units.schedule(Work("mma", shape=(128, n, 16)), issue, (0, 0))
        _, arrived = units.schedule(Work("commit"), 2 * issue, (0, 0))
        assert abs(arrived + BLACKWELL["mbarrier_wake"] - published) <= 8


@pytest.mark.parametrize(("count", "measured"), [(1, 130), (2, 183), (4, 310), (8, 566), (16, 1079)])
def test_wgmma_takes_as_long_as_measured(count: int, measured: int) -> None:
    """m64n128k16 on an H200, issue to the end of wait_group 0 (benchmarks/latencies.cu)."""
    units, now, end = Units(HOPPER), 0, 0
    for _ in range(count):
        now += HOPPER["mma_issue"]
        _, end = units.schedule(Work("wgmma", shape=(64, 128, 16)), now, (0, 0))
    assert abs(end + HOPPER["group_wake"] - measured) <= 0.1 * measured


@pytest.mark.parametrize(("count", "measured"), [(1, 563), (2, 624), (4, 1015), (8, 1556)])
def test_tma_loads_take_as_long_as_measured(count: int, measured: int) -> None:
    """Boxes of 16 KiB on an H200, issue to the end of the wait (benchmarks/latencies.cu)."""
    units, now, end = Units(HOPPER), 0, 0
    for _ in range(count):
        now += HOPPER["tma_issue"]
        _, end = units.schedule(Work("load", nbytes=16384), now, (0, 0))
    assert abs(end + HOPPER["mbarrier_wake"] - measured) <= 0.15 * measured


@pytest.mark.parametrize(("count", "measured"), [(1, 573), (2, 1086), (4, 2101)])
def test_tma_stores_take_as_long_as_measured(count: int, measured: int) -> None:
    units, now, end = Units(HOPPER), 0, 0
    for _ in range(count):
        now += HOPPER["tma_issue"]
        _, end = units.schedule(Work("store", nbytes=16384), now, (0, 0))
    assert abs(end + HOPPER["group_wake"] - measured) <= 0.05 * measured


# --- instructions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "issue", "use"),
    [
        ("st.shared.v4.b32 [%r90], {%r0, %r0, %r0, %r0};", 4, 4),  # an H200: 32 of them in 128 cycles
        ("ld.shared.u32 %r5, [%r90];", 1, 23),
        ("add.u32 %r5, %r0, 1;", 1, 4),
        ("bar.sync 0;", 1, 4),
        ("fence.proxy.async.shared::cta;", 13, 13),
    ],
)
def test_costs(text: str, issue: int, use: int) -> None:
    assert cost_of(instruction(text), HOPPER) == (issue, use)


def test_an_instruction_issues_when_its_sources_are_there() -> None:
    clock = Clock(HOPPER)
    assert clock.issue(instruction("ld.shared.u32 %r5, [%r90];"), ("%r90",), ("%r5",)) == (0, 1)
    assert clock.issue(instruction("add.u32 %r7, %r0, 1;"), ("%r0",), ("%r7",)) == (1, 1)
    assert clock.issue(instruction("add.u32 %r6, %r5, 1;"), ("%r5",), ("%r6",))[0] == 23


# --- runs -------------------------------------------------------------------------------------------------------------


def cycles(body: str, *, grid: int = 1, jobs: int = 1, threads: int = 64) -> RunResult:
    memory = GlobalMemory()
    out, source = memory.allocate(4096), memory.allocate(256)
    source.data[:] = DATA.view(np.uint8)
    params = out.address.to_bytes(8, "little") + source.address.to_bytes(8, "little")
    launch = Launch("k", (grid, 1, 1), (threads, 1, 1), params=params)
    kernel = module(body, pointers=2, declarations=SHARED)
    return run(kernel, launch, memory, completion="timed", jobs=jobs)


def test_the_same_each_time_and_in_every_process() -> None:
    first = cycles(TILE, grid=5).cycles
    assert first is not None and first[0] == first[1] > 500
    assert cycles(TILE, grid=5).cycles == cycles(TILE, grid=5, jobs=2).cycles == first
    assert traced(TILE, "timed", grid=3)[0] == traced(TILE, "timed", grid=3)[0]


def test_other_completions_have_no_cycles() -> None:
    kernel = module(LANE, pointers=1)
    assert run(kernel, Launch("k", (1, 1, 1), (32, 1, 1), params=bytes(8)), GlobalMemory()).cycles is None


def test_a_wait_takes_as_long_as_the_load() -> None:
    """The clock that a kernel reads is the model's: 326 cycles to the first byte, 256 bytes at 120 a cycle."""
    read = "mov.u64 %rd50, %clock64;\n"
    after = (
        "mov.u64 %rd51, %clock64;\nsub.s64 %rd52, %rd51, %rd50;\ncvt.u32.u64 %r5, %rd52;\nst.global.u32 [%rd41], %r5;\n"
    )
    told = execute(LANE + START + one(1, read + LOAD + WAIT + after), DATA, declarations=SHARED, completion="timed")
    took = int(told.view(np.uint32)[0])
    assert 326 + 3 <= took <= 326 + 3 + 200


def test_lanes_that_look_again_and_again() -> None:
    """A wait that is no loop of its own blocks nobody; time passes all the same."""
    look = (
        "mov.u32 %r20, 0;\n$look:\nadd.u32 %r20, %r20, 1;\nst.global.u32 [%rd41], %r20;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 %p4, [%r91], 0;\n@!%p4 bra $look;\n"
    )
    told = execute(LANE + START + one(1, LOAD) + look, DATA, declarations=SHARED, completion="timed")
    assert 2 <= int(told.view(np.uint32)[5]) <= 60
