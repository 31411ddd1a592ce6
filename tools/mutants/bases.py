# SPDX-License-Identifier: Apache-2.0
"""The kernels that are broken, compiled once, and a checked run of their PTX or of a changed one."""

from __future__ import annotations

import atexit
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tmagen.emit import emit
from tmagen.emu import Deadlock, EmulatorError, GlobalMemory, Launch, parse, run
from tmagen.emu.checks import Finding
from tmagen.hostrun import Arguments, HostProgram, build
from tmagen.ir import Gemm, Shape
from tmagen.plan import plan
from tmagen.toolchain import find_nvcc
from tmagen.verify.buffers import allocate
from tmagen.verify.compare import compare
from tmagen.verify.host import Host
from tmagen.verify.inputs import integer_inputs
from tmagen.verify.reference import exact_reference
from tmagen.verify.shapes import default_leading_dims


@dataclass(frozen=True)
class Outcome:
    """What came of one run: rules by severity, how it ended, whether D is right."""

    findings: tuple[Finding, ...]
    ended: str  # "", "deadlock", or the message of a fault
    rule: str | None  # of the fault
    wrong: bool

    @property
    def errors(self) -> set[str]:
        """Rules of severity E that fired."""
        return {finding.rule for finding in self.findings if finding.level == "E"} | (
            {self.rule} if self.rule else set()
        )

    @property
    def others(self) -> set[str]:
        """Rules of severity W and R that fired."""
        return {finding.rule for finding in self.findings if finding.level != "E"}


class Base:
    """One compiled kernel, and runs of its PTX as it is or changed."""

    def __init__(self, spec: Gemm) -> None:
        self.spec = spec
        self.name = plan(spec).name

    @cached_property
    def program(self) -> HostProgram:
        """The kernel with its host part; removed when the process ends."""
        with tempfile.TemporaryDirectory(prefix="tmagen-mutants-") as folder:
            path = Path(folder) / f"{self.name}.cu"
            path.write_text(emit(plan(self.spec)), encoding="utf-8")
            program = build(path, nvcc=find_nvcc(None, arch=self.spec.target.value), target=self.spec.target)
        atexit.register(program.close)
        return program

    def run(self, ptx: str, shape: Shape, *, completion: str = "eager", seed: int = 0, strict: bool = True) -> Outcome:
        """A checked run of `ptx` on integer input."""
        elements = self.program.elements
        lds = default_leading_dims(shape, elements)
        memory = GlobalMemory()
        a = allocate(memory, "A", elements[0], shape.m, shape.k, lds.a)
        b = allocate(memory, "B", elements[1], shape.n, shape.k, lds.b)
        d = allocate(memory, "D", elements[2], shape.m, shape.n, lds.d)
        inputs = integer_inputs(shape, elements[:2], seed)
        a.write(inputs.a)
        b.write(inputs.b)
        d.fill_poison()
        arguments = Arguments(a.address, b.address, d.address, shape.m, shape.n, shape.k, lds.a, lds.b, lds.d)
        with Host(self.program) as host:
            calls = host.launch(arguments).launches
        findings: tuple[Finding, ...] = ()
        try:
            module = parse(ptx, filename=self.name)
            for call in calls:
                launch = Launch(call.kernel, call.grid, call.block, call.cluster, call.dynamic_smem_bytes, call.params)
                result = run(module, launch, memory, completion=completion, seed=seed, checks=True, strict=strict)
                findings += result.findings
        except EmulatorError as error:
            ended = "deadlock" if isinstance(error, Deadlock) else f"{error.kind}: {error.message}"
            return Outcome(findings + error.findings, ended, error.rule, True)
        wrong = compare(d, exact_reference(inputs, elements[2])).mismatch is not None
        return Outcome(findings, "", None, wrong or bool(d.stray_writes()))
