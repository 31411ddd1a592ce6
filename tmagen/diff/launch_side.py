# SPDX-License-Identifier: Apache-2.0
"""A file launched as a launch file says: the form that `tmagen check` takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tmagen.bind import LeadingDims
from tmagen.check.kernels import choose, parameter_block
from tmagen.check.read_maps import tensor_map
from tmagen.check.run import fitted, read_launch
from tmagen.check.spec import BufferSpec, LaunchSpec, ParamSpec, Pointer, Struct
from tmagen.diff.code import Code
from tmagen.diff.problem import Elements, Problem
from tmagen.diff.sides import Addresses, Side
from tmagen.emu import Launch, Module
from tmagen.errors import Diagnostic, SpecError
from tmagen.ir import DType, Shape

OPERANDS = ("A", "B", "D")
_HINT = (
    "buffers A of shape [m, k], B of [n, k] and D of [m, n], types f16, bf16 or f32: D = A * B^T is what is compared"
)


@dataclass(frozen=True, slots=True)
class LaunchFile:
    """A launch file of a GEMM."""

    path: Path
    spec: LaunchSpec
    problem: Problem

    def symbol(self, module: Module) -> str:
        """The kernel that it is for. Raises SpecError."""
        return choose(module, self.spec.kernel).name


def launch_file(path: Path) -> LaunchFile:
    """Reads a launch file, and the problem off its buffers. Raises SpecError where it is not that of such a GEMM."""
    spec, _, source = read_launch(path)
    found = {buffer.name: buffer for buffer in spec.buffers}
    missing = [name for name in OPERANDS if name not in found]
    others = [name for name in found if name not in OPERANDS]
    problems = []
    if missing:
        problems.append(Diagnostic(f"{source}: there is no buffer {' and no buffer '.join(missing)}", hint=_HINT))
    if others:
        problems.append(Diagnostic(f"{source}: a comparison has no buffer {', '.join(others)}", hint=_HINT))
    if any(_points_at_map(param) for param in spec.params):
        problems.append(Diagnostic(f"{source}: a comparison takes tensor maps by value, not in global memory"))
    if problems:
        raise SpecError(*problems)
    shape = _shape(*(found[name] for name in OPERANDS), source=source)
    return LaunchFile(path, spec, Problem(shape, _elements(found, source), _rows(found, source)))


def _points_at_map(param: ParamSpec) -> bool:
    if isinstance(param, Struct):
        return any(_points_at_map(member) for member in param.members)
    return isinstance(param, Pointer) and param.is_map


def _shape(a: BufferSpec, b: BufferSpec, d: BufferSpec, *, source: str) -> Shape:
    shapes = [buffer.shape for buffer in (a, b, d)]
    if any(len(shape) != 2 for shape in shapes) or (a.shape[0], b.shape[0]) != d.shape or a.shape[1] != b.shape[1]:
        told = ", ".join(f"{buffer.name} {list(buffer.shape)}" for buffer in (a, b, d))
        raise SpecError(Diagnostic(f"{source}: {told} are not those of D = A * B^T", hint=_HINT))
    if 0 in (*a.shape, *d.shape):
        raise SpecError(Diagnostic(f"{source}: every extent is at least 1"))
    return Shape(a.shape[0], b.shape[0], a.shape[1])


def _elements(found: Mapping[str, BufferSpec], source: str) -> Elements:
    known = {dtype.value: dtype for dtype in DType}
    names = [found[name].element.name for name in OPERANDS]
    if any(name not in known for name in names):
        raise SpecError(Diagnostic(f"{source}: elements of {', '.join(names)} are not compared", hint=_HINT))
    of_a, of_b, of_d = (known[name] for name in names)
    return of_a, of_b, of_d


def _rows(found: Mapping[str, BufferSpec], source: str) -> LeadingDims:
    strides = [found[name].strides for name in OPERANDS]
    if any(inner != 1 for _, inner in strides):
        raise SpecError(Diagnostic(f"{source}: elements of a row have to lie side by side", hint=_HINT))
    return LeadingDims(*(outer for outer, _ in strides))


class _Placed:
    """Where everything lies for one launch."""

    def __init__(self, spec: LaunchSpec, at: Addresses) -> None:
        self._at = at
        self.maps: Mapping[str, bytes] = {
            one.name: tensor_map(one, self.address(one.buffer)).encode() for one in spec.maps
        }

    def address(self, name: str) -> int:
        return self._at[name]

    def map_address(self, name: str) -> int:
        raise AssertionError(f"{name}: refused when the file was read")


def launch_side(path: Path, file: LaunchFile, code: Code) -> Side:
    """The side. Raises SpecError where the launch file does not fit the kernel."""
    spec, entry = fitted(file.spec, code.module, str(file.path))
    block, cluster = spec.block, spec.cluster
    assert block is not None and cluster is not None

    def launch(problem: Problem, at: Addresses) -> Launch:
        assert problem == file.problem, "a launch file is for one problem"
        params = parameter_block(spec, entry, _Placed(spec, at))
        return Launch(entry.name, spec.grid, block, cluster, spec.dynamic_smem_bytes, params)

    return Side(path.name, f"{path}, launched by {file.path}", code, code, launch, launch)
