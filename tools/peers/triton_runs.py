# SPDX-License-Identifier: Apache-2.0
"""Triton beside the project: installed, its kernels compiled in a process of their own, and tried in all ways."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from tmagen import emu
from tmagen.emu import EmulatorError, GlobalMemory, Launch, Module
from tmagen.emu.module import Entry
from tools.peers.outcome import Outcome, Ways

ROOT = Path(__file__).resolve().parents[2]
VERSION = "3.9.0"
FOLDER = ROOT / "build" / "peers"
PACKAGES = FOLDER / f"triton-{VERSION}"


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


R = TypeVar("R", bound=Request)


def compiled(cases: Iterable[R], pattern: str) -> tuple[R, ...]:
    """The cases whose name holds `pattern`, compiled."""
    chosen = tuple(case for case in cases if pattern in case.name)
    install()
    compile_all(chosen)
    return chosen


class Run(NamedTuple):
    """A launch with memory of its own; `wrong` says what is not right in it when the kernel has ended, or None."""

    launch: Launch
    memory: GlobalMemory
    wrong: Callable[[], str | None]


Given = tuple[str, Callable[[], Run]]
"""What a kernel is tried on: its name, and how each run of it begins."""


def tried(name: str, ways: Ways, given: Callable[[dict[str, Any], Module], Iterable[Given]]) -> Outcome:
    """One kernel, all that it is given, in all ways. `given` takes what the compiling process noted, and the module."""
    outcome = Outcome(f"triton {VERSION}", name)
    record = json.loads((FOLDER / "ptx" / f"{name}.json").read_text())
    if "error" in record:
        outcome.refused = record["error"]
        return outcome
    path = FOLDER / "ptx" / f"{name}.ptx"
    module = emu.parse(path.read_text(), path.name)
    start = time.perf_counter()
    for title, begin in given(record, module):
        for policy, seed, checks in ways.runs(begin().launch):
            where = f"{title} {policy}, seed {seed}".lstrip()
            run = begin()
            try:
                result = emu.run(module, run.launch, run.memory, completion=policy, seed=seed, checks=checks)
            except EmulatorError as error:
                outcome.problems.append(f"{where}: {error.report()}")
                continue
            outcome.judge(where, result.findings, run.wrong())
    outcome.seconds = time.perf_counter() - start
    return outcome


def packed(entry: Entry, values: Sequence[int | bytes]) -> bytes:
    """The parameter block of a kernel."""
    block = bytearray(entry.param_bytes)
    for param, value in zip(entry.params, values, strict=True):
        raw = value if isinstance(value, bytes) else value.to_bytes(param.size, "little")
        block[param.offset : param.offset + param.size] = raw
    return bytes(block)
