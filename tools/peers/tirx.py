# SPDX-License-Identifier: Apache-2.0
"""TVM's CUDA text for the kernels of the TIRx chapter, where the chapter and TVM are there."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests import tirx_text
from tmagen import emu
from tmagen.emu import Deadlock, EmulatorError, Launch, TensorMap
from tmagen.emu.tensormap import DataType, Interleave, L2Promotion, OobFill, SwizzleMode
from tmagen.toolchain import compile_ptx, find_nvcc
from tools.peers.outcome import Outcome, Ways
from tools.peers.problem import Problem

SOURCE = "TVM 0.26"
SHAPES = ((256, 256, 256), (512, 384, 256))
STEPS = (4, 5, 6)
# All four warps of these kernels watch barriers that one thread of warp 0 drives, and which nobody else arrives on: it
# may come two phases ahead of a warp that is late, which then waits for ever. No false alarm, and no failure of ours.
LAPPING = ("starve", "producer-first")


def run_all(pattern: str, ways: Ways) -> Iterator[Outcome]:
    """Every step whose name holds `pattern`."""
    names = [f"chapter step {step}" for step in STEPS]
    if not any(pattern in name for name in names):
        return
    reason = tirx_text.missing()
    if reason is not None:
        yield Outcome(SOURCE, "chapter", refused=reason)
        return
    texts = tirx_text.lowered(tuple((step, *shape) for step in STEPS for shape in SHAPES))
    for step, name in zip(STEPS, names, strict=True):
        if pattern not in name:
            continue
        outcome = Outcome(SOURCE, name)
        start = time.perf_counter()
        for shape in SHAPES:
            _run_shape(outcome, texts[(step, *shape)], shape, ways)
        outcome.seconds = time.perf_counter() - start
        yield outcome


def _run_shape(outcome: Outcome, kernel: dict[str, Any], shape: tuple[int, int, int], ways: Ways) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.cu"
        source.write_text(kernel["text"], encoding="utf-8")
        module = emu.parse(compile_ptx(find_nvcc(), source, flags=tirx_text.FLAGS))
    shell = Launch(
        kernel["kernel"],
        tuple(kernel["grid"]),
        tuple(kernel["block"]),
        dynamic_smem_bytes=kernel["dynamic_smem_bytes"],
    )
    for completion, seed, checks in ways.runs(shell):
        problem = Problem(("fp16", "fp16", "fp16"), shape)
        where = f"{'x'.join(map(str, shape))} {completion}, seed {seed}"
        launch = replace(shell, params=b"".join(_map(problem, fields).encode() for fields in kernel["maps"]))
        try:
            result = emu.run(module, launch, problem.memory, completion=completion, seed=seed, checks=checks)
        except EmulatorError as error:
            found = outcome.known if completion in LAPPING and _is_lapped(error) else outcome.problems
            found.append(f"{where}: {error.report()}")
            outcome.runs += 1
            continue
        outcome.judge(where, result.findings, problem.wrong())


def _is_lapped(error: EmulatorError) -> bool:
    """Whether warp 0 has come to the end of the loop, and some of the others wait for an mbarrier for ever."""
    late: list[str] = []
    warps = ""
    for line in error.detail:
        who = re.search(r"warps? ([\d, ]+) lanes", line)
        warps = who[1] if who else warps
        late += warps.split(", ") if "of the mbarrier at" in line else []
    return isinstance(error, Deadlock) and bool(late) and "0" not in late


def _map(problem: Problem, fields: dict[str, Any]) -> TensorMap:
    return TensorMap(
        data_type=DataType.FLOAT16,
        rank=fields["rank"],
        address=problem.address(fields["buffer"].lower()) + fields["offset"],
        dims=tuple(fields["dims"]),
        strides=tuple(fields["strides"]),
        box=tuple(fields["box"]),
        element_strides=tuple(fields["element_strides"]),
        interleave=Interleave(fields["interleave"]),
        swizzle=SwizzleMode(fields["swizzle"]),
        l2_promotion=L2Promotion(fields["l2_promotion"]),
        oob_fill=OobFill(fields["oob_fill"]),
    )
