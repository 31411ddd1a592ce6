# SPDX-License-Identifier: Apache-2.0
"""Our own kernels: emitted, compiled by nvcc, launched as their host part says."""

from __future__ import annotations

import atexit
import tempfile
from functools import cached_property
from pathlib import Path

from tmagen.emit import emit
from tmagen.emu import GlobalMemory, Launch
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
from tools.mutants.base import Base, Prepared

# The first: two tiles, one of them a tail, and several rounds of the ring; one CTA runs both where it is persistent.
SHAPES = (
    Shape(200, 128, 328), Shape(128, 128, 64), Shape(129, 136, 72), Shape(64, 300, 200), Shape(256, 256, 128),
    Shape(131, 133, 40), Shape(300, 128, 520),
)  # fmt: skip


class Emitted(Base):
    """The kernel of a spec."""

    cases = len(SHAPES)

    def __init__(self, name: str, spec: Gemm) -> None:
        self.name = name
        self.spec = spec
        self.about = f"ours: `{plan(spec).name}`"
        self._launches: dict[Arguments, list[Launch]] = {}

    @cached_property
    def program(self) -> HostProgram:
        """The kernel with its host part; removed when the process ends."""
        with tempfile.TemporaryDirectory(prefix="tmagen-mutants-") as folder:
            path = Path(folder) / f"{plan(self.spec).name}.cu"
            path.write_text(emit(plan(self.spec)), encoding="utf-8")
            program = build(path, nvcc=find_nvcc(None, arch=self.spec.target.value), target=self.spec.target)
        atexit.register(program.close)
        return program

    def text(self, case: int) -> str:
        return self.program.ptx

    def prepare(self, case: int, seed: int) -> Prepared:
        shape, elements = SHAPES[case], self.program.elements
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

        def wrong() -> bool:
            return compare(d, exact_reference(inputs, elements[2])).mismatch is not None or bool(d.stray_writes())

        return Prepared(memory, self._launched(arguments), wrong)

    def _launched(self, arguments: Arguments) -> list[Launch]:
        found = self._launches.get(arguments)
        if found is None:
            with Host(self.program) as host:
                calls = host.launch(arguments).launches
            found = self._launches[arguments] = [
                Launch(call.kernel, call.grid, call.block, call.cluster, call.dynamic_smem_bytes, call.params)
                for call in calls
            ]
        return found
