# SPDX-License-Identifier: Apache-2.0
"""Launches: checks of the arguments, processes, progress, errors from workers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.emu.ptx import LANE, module
from tmagen.emu import EmulatorError, Fault, GlobalMemory, Launch, run

BODY = (
    "mov.u32 %r0, %ctaid.x;\nmul.wide.u32 %rd40, %r0, 4;\nadd.s64 %rd41, %rd1, %rd40;\nadd.u32 %r5, %r0, 5;\n"
    "st.global.u32 [%rd41], %r5;\n"
)


def launch(memory: GlobalMemory, grid: int = 7) -> tuple[Launch, np.ndarray]:
    out = memory.allocate(4 * grid)
    return Launch("k", (grid, 1, 1), (32, 1, 1), params=out.address.to_bytes(8, "little")), out.data.view(np.uint32)


@pytest.mark.parametrize("jobs", [1, 2, 3, 20])
def test_processes_share_the_work_and_the_memory(jobs: int) -> None:
    memory = GlobalMemory()
    what, out = launch(memory)
    calls: list[tuple[int, int]] = []
    result = run(module(BODY), what, memory, jobs=jobs, progress=lambda done, total: calls.append((done, total)))
    assert out.tolist() == list(range(5, 12))
    assert (result.ctas, result.jobs) == (7, min(jobs, 7))
    assert calls[-1] == (7, 7) and calls == sorted(calls)


def test_more_ctas_than_portions() -> None:
    memory = GlobalMemory()
    what, out = launch(memory, 4100)
    run(module(BODY), what, memory, jobs=2)
    assert out.tolist() == list(range(5, 4105))


@pytest.mark.parametrize("bad", [0, 1, 6])
@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_an_error_in_any_process_is_the_runs_error(bad: int, jobs: int) -> None:
    memory = GlobalMemory()
    what, _ = launch(memory)
    text = BODY + f"setp.eq.u32 %p1, %r0, {bad};\n@%p1 trap;\n"
    with pytest.raises(Fault, match="trap") as caught:
        run(module(text), what, memory, jobs=jobs)
    assert f"CTA ({bad}, 0, 0)" in caught.value.report()
    assert caught.value.instruction == "@%p1 trap" and caught.value.ptx_line is not None


def test_global_atomics_stay_in_one_process() -> None:
    memory = GlobalMemory()
    what, out = launch(memory, 40)
    assert run(module("red.global.add.u32 [%rd1], 1;\n"), what, memory, jobs=2).jobs == 1
    assert out[0] == 40 * 32


def test_memory_outlives_a_process() -> None:
    memory = GlobalMemory()
    what, out = launch(memory)
    run(module(BODY), what, memory, jobs=2)
    run(module("ld.global.u32 %r1, [%rd1+24];\nst.global.u32 [%rd1], %r1;\n"), what, memory, jobs=1)
    assert out[0] == 11


CHANGES = {
    "kernel": ({"kernel": "other"}, "not in the module"),
    "grid": ({"grid": (0, 1, 1)}, "at least 1"),
    "grid x": ({"grid": (1 << 31, 1, 1)}, r"grid \(2147483648, 1, 1\): at most 2,147,483,647, 65,535 and 65,535 CTAs"),
    "grid y": ({"grid": (1, 70000, 1)}, "65,535"),
    "grid z": ({"grid": (1, 1, 65536)}, "65,535"),
    "CTAs": ({"grid": (4097, 4096, 1)}, "16,781,312 CTAs: at most 16,777,216 are emulated"),
    "block": ({"block": (2048, 1, 1)}, "1024"),
    "params": ({"params": b""}, "0 bytes of parameters"),
    "shared": ({"dynamic_smem_bytes": 300_000}, "shared memory"),
}


@pytest.mark.parametrize("name", list(CHANGES))
def test_launches_that_cannot_be(name: str) -> None:
    memory = GlobalMemory()
    what, _ = launch(memory)
    change, message = CHANGES[name]
    with pytest.raises(EmulatorError, match=message):
        run(module(BODY), replace(what, **change), memory)  # type: ignore[arg-type]


def test_directives_bound_the_block() -> None:
    memory = GlobalMemory()
    what, _ = launch(memory)
    with pytest.raises(Fault, match="maxntid"):
        run(module(LANE, directives=".maxntid 16"), what, memory)
    with pytest.raises(Fault, match="reqntid"):
        run(module(LANE, directives=".reqntid 64"), what, memory)
    run(module(LANE, directives=".maxntid 8, 4"), what, memory)


def test_wrong_arguments() -> None:
    memory = GlobalMemory()
    what, _ = launch(memory)
    with pytest.raises(ValueError, match="completion"):
        run(module(BODY), what, memory, completion="later")
    with pytest.raises(ValueError, match="jobs"):
        run(module(BODY), what, memory, jobs=0)


def test_a_listener_hears_accesses_and_barriers_and_changes_nothing() -> None:
    memory = GlobalMemory()
    what, out = launch(memory)
    heard: list[tuple[str, tuple[int, int, int], int]] = []
    text = "bar.sync 0;\n" + BODY
    run(module(text), what, memory, listener=lambda kind, cta, frag, args: heard.append((kind, cta.ctaid, frag.mask)))
    assert out.tolist() == list(range(5, 12))
    kinds = [kind for kind, ctaid, _ in heard if ctaid == (3, 0, 0)]
    assert kinds == ["load", "barrier", "store"]
    assert all(mask == 0xFFFFFFFF for _, _, mask in heard)
    with pytest.raises(ValueError, match="jobs"):
        run(module(text), what, memory, jobs=2, listener=print)
