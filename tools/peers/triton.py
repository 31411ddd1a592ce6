# SPDX-License-Identifier: Apache-2.0
"""Triton's kernels: installed beside the project, compiled in a process of their own, launched as Triton launches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tmagen import emu
from tmagen.emu import EmulatorError, Launch, Module, TensorMap
from tmagen.emu.module import Entry
from tmagen.emu.tensormap import DataType, SwizzleMode
from tools.peers.cases import TRITON, Shape, TritonCase
from tools.peers.outcome import USUAL_WAYS, Outcome, Ways
from tools.peers.problem import TYPES, Problem

ROOT = Path(__file__).resolve().parents[2]
VERSION = "3.9.0"
FOLDER = ROOT / "build" / "peers"
PACKAGES = FOLDER / f"triton-{VERSION}"
# Element types of tensor maps as Triton (and tensormap.replace) numbers them.
_ELEMENTS = {0: DataType.UINT8, 6: DataType.FLOAT16, 7: DataType.FLOAT32, 10: DataType.BFLOAT16}
_PROGRAMS = 3  # of a persistent kernel


class Request(Protocol):
    """Something to compile."""

    @property
    def name(self) -> str:
        """Unique, and the name of its files."""

    def request(self) -> dict[str, Any]:
        """What the compiling process is told."""


def install() -> None:
    """Install Triton where nothing else sees it. It needs no CUDA, no GPU and, to compile, no PyTorch."""
    if (PACKAGES / "triton").is_dir():
        return
    print(f"installing triton {VERSION} into {PACKAGES.relative_to(ROOT)}", flush=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--target", PACKAGES, f"triton=={VERSION}"], check=True)


def compile_all(cases: Sequence[Request]) -> None:
    """PTX of all cases that have none yet, in FOLDER/ptx."""
    folder = FOLDER / "ptx"
    folder.mkdir(parents=True, exist_ok=True)
    missing = [case.request() for case in cases if not (folder / f"{case.name}.json").exists()]
    if not missing:
        return
    print(f"compiling {len(missing)} kernels", flush=True)
    request = folder / "request.json"
    request.write_text(json.dumps(missing))
    environment = {**os.environ, "PYTHONPATH": f"{PACKAGES}{os.pathsep}{ROOT}", "TRITON_DEFAULT_FP_FUSION": "1"}
    environment["TRITON_CACHE_DIR"] = str(FOLDER / "cache")
    command = [sys.executable, "-m", "tools.peers.triton_compile", str(request), str(folder)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"Triton's process failed:\n{done.stderr[-4000:]}")


def run_all(pattern: str = "", ways: Ways = USUAL_WAYS) -> Iterator[Outcome]:
    """Every case whose name holds `pattern`."""
    cases = tuple(case for case in TRITON if pattern in case.name)
    install()
    compile_all(cases)
    for case in cases:
        yield run_case(case, ways)


def run_case(case: TritonCase, ways: Ways) -> Outcome:
    """One kernel: all of its shapes under every policy."""
    outcome = Outcome(f"triton {VERSION}", case.name)
    record = json.loads((FOLDER / "ptx" / f"{case.name}.json").read_text())
    if "error" in record:
        outcome.refused = record["error"]
        return outcome
    path = FOLDER / "ptx" / f"{case.name}.ptx"
    module = emu.parse(path.read_text(), path.name)
    start = time.perf_counter()
    for shape in case.shapes:
        block = (module.entries[record["kernel"]].directives["reqntid"][0], 1, 1)
        shell = Launch(record["kernel"], (record["ctas"], 1, 1), block, (record["ctas"], 1, 1))
        for completion, seed, checks in ways.runs(shell):
            problem = Problem(case.types, shape, kn=case.kernel.endswith("_kn"))
            where = f"{'x'.join(map(str, shape))} {completion}, seed {seed}"
            try:
                launch = launch_of(case, record, module, problem, shape)
                result = emu.run(module, launch, problem.memory, completion=completion, seed=seed, checks=checks)
            except EmulatorError as error:
                outcome.problems.append(f"{where}: {error.report()}")
                continue
            # A row of a box is stored in whole chunks of 16 bytes; the last row of D may reach past its end.
            outcome.judge(where, result.findings, problem.wrong(0 if case.kernel == "pointers" else 16))
    outcome.seconds = time.perf_counter() - start
    return outcome


def launch_of(case: TritonCase, record: dict[str, Any], module: Module, problem: Problem, shape: Shape) -> Launch:
    """How Triton launches a kernel for a shape; `record` is what the compiling process noted."""
    entry = module.entries[record["kernel"]]
    m, n, _ = shape
    tiles = -(-m // case.tile[0]), -(-n // case.tile[1])
    programs = (_PROGRAMS, 1) if case.kernel == "persistent" else tiles
    grid = (programs[0] * record["ctas"], programs[1], 1)
    scratch = problem.memory.allocate(max(16, record["scratch"] * programs[0] * programs[1] * record["ctas"]))
    return Launch(
        record["kernel"],
        grid,
        (entry.directives["reqntid"][0], 1, 1),
        (record["ctas"], 1, 1),
        record["shared"],
        _params(case, record, entry, problem, shape, scratch.address),
    )


def _params(
    case: TritonCase, record: dict[str, Any], entry: Entry, problem: Problem, shape: Shape, scratch: int
) -> bytes:
    """The parameter block: a map with its extents and strides, or a pointer, for each matrix; m, n, k; scratch."""
    m, n, k = shape
    extents = {"a": (m, k), "b": (k, n) if case.kernel.endswith("_kn") else (n, k), "d": (m, n)}
    values: list[int | bytes] = []
    for index, (name, (rows, columns)) in enumerate(extents.items()):
        if record["maps"]:
            values += [_map(case, record["maps"][index], problem, name, rows, columns), rows, columns, columns, 1]
        else:
            values.append(problem.address(name))
    values += [m, n, k, scratch, 0]
    out = bytearray(entry.param_bytes)
    for param, value in zip(entry.params, values, strict=True):
        raw = value if isinstance(value, bytes) else value.to_bytes(param.size, "little")
        out[param.offset : param.offset + param.size] = raw
    return bytes(out)


def _map(case: TritonCase, facts: list[Any], problem: Problem, name: str, rows: int, columns: int) -> bytes:
    swizzle, element, box = facts
    nbytes = np.dtype(TYPES[case.types["abd".index(name)]][0]).itemsize
    tmap = TensorMap(
        _ELEMENTS[element],
        2,
        problem.address(name),
        (columns, rows),
        (columns * nbytes,),
        tuple(reversed(box)),
        (1, 1),
        swizzle=SwizzleMode(swizzle),
    )
    return tmap.encode()
