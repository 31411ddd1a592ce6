# SPDX-License-Identifier: Apache-2.0
"""A file of the form that `tmagen emit` writes, edited or not, launched by its own host part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tmagen.diff.code import Code
from tmagen.diff.problem import Elements, Problem
from tmagen.diff.sides import Side
from tmagen.emu import Launch
from tmagen.errors import Diagnostic, SpecError
from tmagen.hostrun import Arguments, HostProgram, HostSession, LaunchCall
from tmagen.ir import Shape
from tmagen.verify.shapes import default_leading_dims

Addresses = Mapping[str, int]


class FileHost:
    """The host part of a file, asked for launches."""

    def __init__(self, program: HostProgram) -> None:
        self.program = program
        self.session: HostSession = program.start()

    def call(self, problem: Problem, at: Addresses) -> LaunchCall:
        """The one launch for a problem. Raises SpecError where the file launches nothing, or several kernels."""
        shape, lds = problem.shape, problem.lds
        arguments = Arguments(at.get("A", 0), at.get("B", 0), at["D"], shape.m, shape.n, shape.k, lds.a, lds.b, lds.d)
        outcome = self.session.launch(arguments)
        if not outcome.result.ok or len(outcome.launches) != 1:
            said = outcome.result.last_error or outcome.result.error
            raise SpecError(
                Diagnostic(f"launch() of {self.program.namespace} made {len(outcome.launches)} launches: {said}")
            )
        return outcome.launches[0]

    def is_persistent(self, elements: Elements) -> bool:
        """Whether the grid stops growing with the problem."""
        grids = [self._ctas(Shape(m, 4096, 512), elements) for m in (65536, 131072)]
        return grids[0] == grids[1]

    def _ctas(self, shape: Shape, elements: Elements) -> int:
        problem = Problem(shape, elements, default_leading_dims(shape, elements))
        x, y, z = self.call(problem, {"A": 1 << 40, "B": 2 << 40, "D": 3 << 40}).grid
        return x * y * z


def host_side(path: Path, host: FileHost, code: Code, *, reduced: bool) -> Side:
    """The side. `reduced`: in the trial a persistent grid is so small that its CTAs take several tiles."""
    program = host.program
    shrinks = reduced and None in program.static_mnk and host.is_persistent(program.elements)

    def launch(problem: Problem, at: Addresses) -> Launch:
        call = host.call(problem, at)
        return Launch(
            kernel=code.entry.name,
            grid=call.grid,
            block=call.block,
            cluster=call.cluster,
            dynamic_smem_bytes=call.dynamic_smem_bytes,
            params=call.params,
        )

    def trial_launch(problem: Problem, at: Addresses) -> Launch:
        found = launch(problem, at)
        x, y, z = found.grid
        return replace(found, grid=(max(1, x // 3), 1, 1)) if shrinks and y == z == 1 else found

    return Side(path.name, str(path), code, code, launch, trial_launch)
