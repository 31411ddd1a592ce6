# SPDX-License-Identifier: Apache-2.0
"""A .cu's own host program, unmodified, with its kernels on the emulator."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tmagen.check.dependents import Dependents
from tmagen.check.finding import Finding, Findings, Severity
from tmagen.check.kernels import plain_name
from tmagen.check.places import Place, explained
from tmagen.check.report import CaseReport, LaunchRecord, Report, Verdict, together, verdict_of
from tmagen.check.run import Runner, completions
from tmagen.check.subject import load
from tmagen.check.variables import Variables
from tmagen.emu import GlobalMemory, Launch, Module, Tracing
from tmagen.emu.policy import POLICIES
from tmagen.errors import Diagnostic, SpecError
from tmagen.hostrun import Ended, LiveProgram, Program, build_program
from tmagen.hostrun.refusal import why_launch, why_map
from tmagen.hostrun.tensor_map import from_event
from tmagen.toolchain import Nvcc
from tmagen.verify.progress import NoProgress, Progress

_SHOWN_LINES = 20


def run_host(
    sources: Sequence[Path | str],
    *,
    call: str | None = None,
    arguments: Sequence[str] = (),
    completion: str | Sequence[str] | None = None,
    thorough: bool = False,
    seed: int = 0,
    jobs: int | None = None,
    target: str = "sm_100a",
    nvcc: Nvcc | Path | str | None = None,
    nvcc_flags: Sequence[str] = (),
    strict: bool = False,
    save_ptx: Path | None = None,
    progress: Progress | None = None,
    tracing: Tracing | None = None,
) -> Report:
    """Builds a host program of .cu and C++ files and runs it once under each execution policy.

    `call` is a C function, `int call(void)`, to run in place of main; `arguments` are the program's. Each launch is
    emulated when the program makes it; memory from cudaMalloc is the emulator's. The run fails where a kernel does, and
    where the program ends with an exit status other than 0. The first run looks for races and other broken rules too;
    `strict` looks for formal ones as well, which then fail.

    Raises TmagenError where there is nothing to run: files that cannot be read or do not compile, device code that does
    not parse.
    """
    orders = completions(completion, thorough)
    files = [Path(source) for source in sources]
    missing = [Diagnostic(f"cannot read {str(path)!r}: there is no such file") for path in files if not path.is_file()]
    if missing:
        raise SpecError(*missing)
    started = time.perf_counter()
    with build_program(files, call=call, target=target, nvcc=nvcc, flags=nvcc_flags) as program:
        kernels = _Kernels(program)
        seconds = time.perf_counter() - started
        if save_ptx is not None:
            kernels.save(save_ptx)
        runner = Runner(seed, jobs, strict, progress or NoProgress(), tracing)
        cases: list[CaseReport] = []
        notes: list[str] = []
        for order in orders:
            runs: list[CaseReport] = []
            seeds = _seeds(order, seed, cases) if thorough else (seed,)
            for number, each in enumerate(seeds):
                runner.at(each, number, len(seeds))
                checked = not cases and not runs
                runs.append(_Session(program, kernels, runner, order, checked=checked).run(arguments))
                if runs[-1].verdict is not Verdict.PASSED:
                    break
            cases.append(together(runs))
            if cases[-1].verdict is Verdict.NOT_JUDGED and len(cases) < len(orders):
                notes.append("what is not judged in one order is not judged in another: the rest were not run")
                break
        runner.progress.close()
        return Report(tuple(map(str, files)), str(program.nvcc), tuple(notes), tuple(cases), seconds)


def _seeds(policy: str, first: int, cases: Sequence[CaseReport]) -> tuple[int, ...]:
    """All seeds that can make a difference to one of the launches that were made before; at least `first`."""
    launches = {(record.block, record.cluster) for case in cases for record in case.launches}
    found = [POLICIES[policy].seeds_from(first, Launch("", (1, 1, 1), *one)) for one in launches]
    return max(found, key=len, default=(first,))


class _Kernels:
    """The modules of a program, and which of them holds a kernel."""

    def __init__(self, program: Program) -> None:
        self.texts = [unit.ptx for unit in program.units]
        self.modules = [load(unit.source, ptx=unit.ptx).module for unit in program.units]

    def module_of(self, kernel: str, unit: int, units: int) -> Module | None:
        """The module of a launched kernel: that of its translation unit, by its place in the order of linking."""
        with_kernels = [module for module in self.modules if module.entries]
        if len(with_kernels) == units and kernel in with_kernels[unit].entries:
            return with_kernels[unit]
        found = [module for module in self.modules if kernel in module.entries]
        return found[0] if len(found) == 1 else None

    def save(self, path: Path) -> None:
        """Writes the PTX of the program's only .cu."""
        if len(self.texts) != 1:
            message = f"--save-ptx takes a program of one .cu, not of {len(self.texts)}"
            raise SpecError(Diagnostic(message))
        try:
            path.write_text(self.texts[0], encoding="utf-8")
        except OSError as error:
            raise SpecError(Diagnostic(f"cannot write {str(path)!r}: {error.strerror or error}")) from None


@dataclass
class _Session:
    """One run of the program."""

    program: Program
    kernels: _Kernels
    runner: Runner
    completion: str
    checked: bool

    def __post_init__(self) -> None:
        self.memory = GlobalMemory()
        self.variables = Variables(self.memory)
        self.findings = Findings()
        self.launches: list[LaunchRecord] = []
        self.places: dict[int, Place] = {}  # freed memory too
        self.dependents = Dependents(self.memory)
        self.allowed: dict[str, dict[int, int]] = {}  # by kernel, what cudaFuncSetAttribute set, by attribute

    def run(self, arguments: Sequence[str]) -> CaseReport:
        started = time.perf_counter()
        tracing = self.runner.tracing
        if tracing is not None:
            tracing.begin(f"{self.program.path}, {self.completion}")
        with LiveProgram(self.program, arguments) as live:
            for event in live.events():
                self._event(event, live)
            ended = live.ended()
        self._judge(ended)
        if tracing is not None:
            tracing.end(failed=verdict_of(self.findings, strict=self.runner.strict) is not Verdict.PASSED)
        return CaseReport(
            completion=self.completion,
            seed=self.runner.seed,
            seconds=time.perf_counter() - started,
            launches=tuple(self.launches),
            findings=tuple(self.findings),
            checked=self.checked,
            strict=self.runner.strict,
            output=_last_lines(ended),
        )

    def _event(self, event: dict[str, Any], live: LiveProgram) -> None:
        if "not_modelled" in event:
            message = f"the host program uses {event['not_modelled']}, which the stand-in runtime lacks"
            self.findings.add(Finding("not-judged", Severity.NOT_JUDGED, message))
            return
        match event["event"]:
            case "allocate":
                pages = live.map(event["offset"], event["bytes"])
                data = np.frombuffer(pages, np.uint8)[len(pages) - event["bytes"] :]
                self.memory.attach(event["address"], data)
                name = f"allocation {len(self.places) + 1}"
                self.places[event["address"]] = Place(name, event["address"], event["bytes"])
            case "free":
                self.memory.detach(event["address"])
                freed = self.places[event["address"]]
                self.places[freed.address] = replace(freed, name=f"{freed.name}, which was freed")
            case "host_touched":
                message = f"host code accessed device memory at {event['address']:#x}"
                whose = explained(message, self.places.values())
                self.findings.add(Finding("host-touches-device-memory", Severity.ERROR, message, whose))
            case "launch" if event["error"] != 0:
                message = f"the launch of {plain_name(event['kernel'])} was refused: {event['error_name']}"
                detail = f"grid {event['grid']}, block {event['block']}, cluster {event['cluster']}"
                smem = f"{event['dynamic_smem_bytes']:,} bytes of dynamic shared memory"
                why = why_launch(
                    event["grid"], event["block"], event["cluster"], event["dynamic_smem_bytes"],
                    self.allowed.get(event["kernel"], {}),
                )  # fmt: skip
                details = (f"{detail}, {smem}", *((why,) if why else ()))
                self.findings.add(Finding("refused-call", Severity.REVIEW, message, details))
            case "set_attribute" if event["error"] == 0:
                self.allowed.setdefault(event["kernel"], {})[event["attribute"]] = event["value"]
            case "launch" if not event["captured"]:
                if self._launch(event):
                    live.go()
                else:
                    live.stop()
            case "encode" if event["error"] != 0:
                message = f"cuTensorMapEncodeTiled refused a map of dims {event['dims']}, strides {event['strides']}"
                fields = from_event(event)
                detail = f"box {event['box']}, swizzle {fields.swizzle}, address {event['address']:#x}"
                why = why_map(fields, event["map"])
                details = (detail, *((why,) if why else ()))
                self.findings.add(Finding("refused-call", Severity.REVIEW, message, details))
            case _:
                pass

    def _launch(self, event: dict[str, Any]) -> bool:
        """Emulates a launch; whether the program can go on."""
        kernel = event["kernel"]
        module = self.kernels.module_of(kernel, event["unit"], event["units"])
        if module is None:
            message = f"which file's {plain_name(kernel)} is launched is not known"
            self.findings.add(Finding("not-judged", Severity.NOT_JUDGED, message))
            return False
        stale = self.variables.changed_before(module, kernel)
        if stale is not None:
            message = f"{plain_name(kernel)} reads {stale}, which an earlier launch wrote"
            detail = ("variables of a module start anew at each launch on the emulator",)
            self.findings.add(Finding("not-judged", Severity.NOT_JUDGED, message, detail))
            return False
        x, y, z = event["grid"]
        bx, by, bz = event["block"]
        cx, cy, cz = event["cluster"]
        smem, params = event["dynamic_smem_bytes"], bytes.fromhex(event["params"])
        before = self.dependents.before(event)
        launch = Launch(kernel, (x, y, z), (bx, by, bz), (cx, cy, cz), smem, params, predecessor=before)
        self.dependents.starts(module.entries[kernel])
        record = self.runner.emulate(
            module, launch, self.memory, self.completion, self.findings, self.places.values(), checked=self.checked
        )
        self.variables.after(module, kernel)
        self.dependents.ended(event)
        self.launches.append(record)
        return not self.findings.ended_early

    def _judge(self, ended: Ended) -> None:
        """What the program's end says, where nothing before it says more."""
        if self.findings.ended_early or verdict_of(self.findings) is not Verdict.PASSED:
            return
        if ended.status < 0:
            message = f"the host program ended with {signal.Signals(-ended.status).name}"
            self.findings.add(Finding("host-crash", Severity.ERROR, message))
        elif ended.status > 0:
            message = f"the host program ended with exit status {ended.status}"
            self.findings.add(Finding("host-exit", Severity.ERROR, message, self.findings.hints))
        elif not self.launches:
            message = "the host program launched no kernel: there is nothing to judge"
            self.findings.add(Finding("not-judged", Severity.NOT_JUDGED, message))


def _last_lines(ended: Ended) -> tuple[str, ...]:
    lines = [line.rstrip() for text in (ended.stdout, ended.stderr) for line in text.splitlines()]
    left = len(lines) - _SHOWN_LINES
    return (f"({left} lines before this)", *lines[left:]) if left > 0 else tuple(lines)
