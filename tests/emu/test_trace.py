# SPDX-License-Identifier: Apache-2.0
"""Traces: what every one has to be, what it says of a run, and how a run that breaks off is told."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.emu import test_cluster, traces, warpgroup
from tests.emu.ptx import LANE, module
from tests.emu.test_async import DATA, LOAD, POLICIES, SHARED, START, STORE, WAIT, one
from tests.emu.test_deadlock import KERNEL
from tests.emu.traces import Event, row, slices
from tmagen.emu import Deadlock, EmulatorError, Fault, GlobalMemory, Launch, Trace, Tracing, parse, run
from tmagen.emu.compile import compile_entry
from tmagen.emu.observe import chrome

TILE = LANE + START + one(1, LOAD) + WAIT + one(2, STORE + "cp.async.bulk.wait_group 0;\n")


def traced(
    body: str, completion: str = "eager", *, trace: Trace | None = None, grid: int = 1, checks: bool = False
) -> tuple[str, EmulatorError | None]:
    """The trace of a kernel that copies a tile in and out, and how the run ended."""
    trace = trace or Trace()
    memory = GlobalMemory()
    out, source = memory.allocate(4096), memory.allocate(256)
    source.data[:] = DATA.view(np.uint8)
    params = out.address.to_bytes(8, "little") + source.address.to_bytes(8, "little")
    kernel = module(body, pointers=2, declarations=SHARED)
    launch = Launch("k", (grid, 1, 1), (64, 1, 1), params=params)
    failure = None
    try:
        run(kernel, launch, memory, completion=completion, trace=trace, checks=checks)
    except EmulatorError as error:
        failure = error
    text = chrome.text(trace)
    traces.check(traces.load(text))
    return text, failure


def arrows(events: list[Event], kind: str) -> list[tuple[str, str]]:
    """(row, row) of each arrow of a kind."""
    named = traces.rows(events)
    ends: dict[int, dict[str, str]] = {}
    for event in events:
        if event["ph"] in "sf" and event["cat"] == kind:
            ends.setdefault(event["id"], {})[event["ph"]] = named[event["pid"], event["tid"]]
    return [(pair["s"], pair["f"]) for pair in ends.values()]


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("completion", POLICIES)
def test_a_tile_in_and_out(completion: str, checks: bool) -> None:
    text, failure = traced(TILE, completion, checks=checks)
    assert failure is None
    events = traces.load(text)
    bar = f"mbarrier at shared {0x400:#x} (loads of stage 0)"
    (load,) = slices(events, cat="load")
    assert (load["args"]["bytes"], load["args"]["stage"], load["args"]["k"]) == (256, 0, 0)
    assert load["args"]["instruction"].startswith("cp.async.bulk.shared::cluster")
    (store,) = slices(events, cat="store")
    assert store["args"]["bytes"] == 256
    first, second = slices(events, cat="phase")
    assert (first["args"]["phase"], second["args"]["phase"], second["args"]["open"][:5]) == (0, 1, "still")
    assert [e["args"]["tx bytes"] for e in slices(events, cat="arrival")] == [256, 0]
    # load issue -> load -> barrier -> the wait that it releases -> the next operation of the thread
    assert ("warp 0 lane 0", "TMA loads") in arrows(events, "issue")
    assert ("warp 0 lane 0", "TMA stores") in arrows(events, "issue")
    assert arrows(events, "tells") == [("warp 0 lane 0", bar), ("TMA loads", bar)]
    assert {target for source, target in arrows(events, "releases") if source == bar} >= {"warp 1"}
    assert arrows(events, "then")


def test_each_wait_ends_when_its_phase_does() -> None:
    events = traces.load(traced(TILE, "timed")[0])
    end = slices(events, cat="phase")[0]
    waits = [e for e in slices(events, cat="wait") if "mbarrier" in e["name"]]
    assert len(waits) == 2
    released = [e for e in slices(events, cat="released") if "mbarrier" in e["args"]]
    for wait, child in zip(waits, released, strict=True):
        assert child["ts"] == end["ts"] + end["dur"], "released at the end of the phase"
        assert child["ts"] + child["dur"] == wait["ts"] + wait["dur"]


@pytest.mark.parametrize("completion", ["lazy", "timed"])
def test_warpgroups(completion: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = Trace()
    monkeypatch.setattr(warpgroup, "run", lambda *args, **options: run(*args, **options, trace=trace))
    image = warpgroup.Image()
    a = image.put("f16", warpgroup.integers(0, 64, 16))
    b = image.put("f16", warpgroup.integers(1, 8, 16))
    text = warpgroup.mma("m64n8k16.f32.f16.f16", warpgroup.vector("d", 4), a, b, "0", "1, 1, 0, 0")
    body = warpgroup.FENCE + text + warpgroup.COMMIT + warpgroup.wait() + warpgroup.store(4)
    warpgroup.execute(body, image, words=4, completion=completion)
    events = traces.load(chrome.text(trace))
    traces.check(events)
    (mma,) = slices(events, cat="wgmma")
    assert mma["args"]["shape"] == "64x8x16"
    assert len([pair for pair in arrows(events, "releases") if pair[0] == "tensor core"]) == 4, "each warp waits"


def test_a_cluster_has_a_process_for_each_cta() -> None:
    body = (
        test_cluster.one("init", "mbarrier.init.shared::cta.b64 [%r91], 1;\n") + test_cluster.SYNC
        + "xor.b32 %r82, %r80, 1;\nmapa.shared::cluster.u32 %r83, %r91, %r82;\n"
        + test_cluster.one("told", "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r83];\n")
        + test_cluster.wait("it") + test_cluster.SYNC
    )  # fmt: skip
    for completion in test_cluster.POLICIES:
        trace = Trace()
        kernel = module(test_cluster.START + body, pointers=2, declarations=test_cluster.SHARED)
        launch = Launch("k", (4, 1, 1), (32, 1, 1), (2, 1, 1), params=bytes(16))
        run(kernel, launch, GlobalMemory(), completion=completion, trace=trace)
        events = traces.load(chrome.text(trace))
        traces.check(events)
        assert {e["pid"] for e in events} == {0, 1, 2, 3}
        ends: dict[int, set[int]] = {}
        for event in events:
            if event["ph"] in "sf" and event["cat"] == "tells":
                ends.setdefault(event["id"], set()).add(event["pid"])
        assert {0, 1} in ends.values() and {2, 3} in ends.values(), "an arrow to the barrier of the other CTA"


# --- which CTAs, and how much -----------------------------------------------------------------------------------------


def test_the_first_ctas_unless_others_are_asked_for() -> None:
    kept = {e["pid"] for e in traces.load(traced(TILE, grid=6)[0])}
    assert kept == {0, 1, 2, 3}
    kept = {e["pid"] for e in traces.load(traced(TILE, grid=6, trace=Trace(ctas=(5, 2)))[0])}
    assert kept == {2, 5}


def test_a_cluster_keeps_so_many_slices() -> None:
    text, _ = traced(TILE, trace=Trace(max_slices=20))
    assert len(slices(traces.load(text))) == 20
    assert "more than 20 slices" in json.loads(text)["otherData"]["cut"]


def test_a_run_without_a_trace_has_no_observer() -> None:
    kernel = module(TILE, pointers=2, declarations=SHARED)
    assert "observer" not in compile_entry(kernel, "k").source
    assert "observer" in compile_entry(kernel, "k", observed=True).source


def test_one_process_alone() -> None:
    with pytest.raises(ValueError, match="a trace hears one process alone"):
        run(module(TILE, pointers=2), Launch("k", (2, 1, 1), (32, 1, 1)), GlobalMemory(), jobs=2, trace=Trace())


# --- runs that break off ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("completion", POLICIES)
def test_a_deadlock(completion: str) -> None:
    trace = Trace()
    with pytest.raises(Deadlock):
        run(
            parse(KERNEL), Launch("k", (3, 1, 1), (64, 1, 1), dynamic_smem_bytes=64), GlobalMemory(),
            completion=completion, trace=trace,
        )  # fmt: skip
    events = traces.load(chrome.text(trace))
    traces.check(events)
    (instant,) = [e for e in events if e["ph"] == "i"]
    assert instant["name"].startswith("deadlock: 2 groups of threads wait") and instant["s"] == "g"
    assert "tx bytes 4,096" in instant["args"]["report"]
    stuck = [e for e in slices(events, cat="wait") if "never released" in e["args"]]
    assert {e["ts"] + e["dur"] for e in stuck} == {instant["ts"]}, "they wait to the end"
    assert any("waits for the phase of parity 0" in e["args"]["never released"] for e in stuck)
    assert all(e["args"]["source"].startswith("kernel.cu:") for e in stuck)
    (phase,) = slices(events, cat="phase")
    assert (phase["args"]["pending arrivals"], phase["args"]["tx bytes"]) == (2, 4096)


def test_the_cta_of_a_fault_is_there_whichever_were_asked_for() -> None:
    fault = "mov.u32 %r7, %ctaid.x;\nsetp.ne.u32 %p5, %r7, 4;\n@%p5 bra $fine;\ntrap;\n$fine:\n"
    text, failure = traced(LANE + fault, grid=6, trace=Trace(ctas=(1,)))
    assert isinstance(failure, Fault)
    events = traces.load(text)
    assert {e["pid"] for e in events} == {1, 4}
    (instant,) = [e for e in events if e["ph"] == "i"]
    assert instant["pid"] == 4 and "the kernel executed trap" in instant["name"]


def test_of_many_runs_the_first_that_fails_is_kept() -> None:
    tracing = Tracing()

    def case(name: str, body: str, launches: int = 1) -> None:
        tracing.begin(name)
        failures = [traced(body, trace=tracing.trace())[1] for _ in range(launches)]
        tracing.end(failed=failures[-1] is not None)

    case("right", TILE)
    assert tracing.text() is not None and tracing.label == "right"
    case("wrong", TILE.replace("[%rd2], 256", "[%rd2], 512"), launches=2)
    case("wrong too", TILE.replace("[%rd2], 256", "[%rd2], 512"))
    assert tracing.label == "wrong"
    events: list[Any] = traces.load(tracing.text() or "")
    assert next(e["name"] for e in events if e["ph"] == "i").startswith("fault: ")
    assert row(events, "warp 0") == 1
