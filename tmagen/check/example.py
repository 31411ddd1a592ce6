# SPDX-License-Identifier: Apache-2.0
"""A launch file for a kernel of our own, written from its plan."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tmagen.bind import BoundLaunch, BoundMap, bind
from tmagen.ir import Gemm, Shape
from tmagen.plan import Plan, plan
from tmagen.spec import to_command

SHAPE = Shape(264, 136, 72)
"""Every extent ends inside a tile."""

_SCALARS = {"uint32_t": "u32", "int64_t": "s64"}


def example(spec: Gemm | None = None, shape: Shape = SHAPE) -> str:
    """The launch file for `spec` (what `tmagen emit` writes by default) on `shape`, whose M and N are not 0."""
    planned = plan(spec or Gemm())
    bound = bind(planned, shape)
    assert bound is not None
    return "\n".join(_lines(planned, bound)) + "\n"


def _lines(planned: Plan, bound: BoundLaunch) -> Iterator[str]:
    shape, problem, lds = bound.shape, planned.spec.problem, bound.leading_dims
    yield f"# D = A * B^T with M, N, K = {shape.m}, {shape.n}, {shape.k}, for the kernel that this writes:"
    yield f"#   {to_command(planned.spec)} -o kernel.cu"
    yield "#   tmagen check kernel.cu --launch launch.toml"
    yield f"grid = {list(bound.grid)}"
    yield f"block = {list(bound.block)}"
    yield f"dynamic_smem_bytes = {bound.smem_bytes}"
    yield "params = ["
    yield from _params(planned, bound)
    yield "]"
    yield 'expect = "D == A @ B.T"'
    sizes = {"A": (shape.m, shape.k), "B": (shape.n, shape.k), "D": (shape.m, shape.n)}
    types = {"A": problem.a, "B": problem.b, "D": problem.d}
    for (name, (rows, columns)), ld in zip(sizes.items(), (lds.a, lds.b, lds.d), strict=True):
        yield ""
        yield f"[buffers.{name}]"
        yield f'dtype = "{types[name].value}"'
        yield f"shape = [{rows}, {columns}]"
        if ld != columns:
            yield f"ld = {ld}"
        yield 'fill = "poison"' if name == "D" else "fill = { integers = [-4, 4], seed = 1 }"
    for one in bound.tensor_maps:
        yield from _map(one, sizes[one.operand])


def _params(planned: Plan, bound: BoundLaunch) -> Iterator[str]:
    """One line for each argument; the members of a struct come together in it."""
    values = dict(bound.parameters)
    for argument, members in groupby(planned.launch.parameters, key=lambda one: one.name.split(".")[0]):
        parts = []
        for member in members:
            value = values[member.name]
            if member.type == "CUtensorMap":
                parts.append(f'{{ map = "{value}" }}')
            elif member.type.endswith("*"):
                parts.append(f'{{ pointer = "{str(value).upper()}" }}')
            else:
                parts.append(f"{{ {_SCALARS[member.type]} = {value} }}")
        text = parts[0] if len(parts) == 1 else f"{{ struct = [{', '.join(parts)}] }}"
        yield f"  {text},  # {argument}"


def _map(one: BoundMap, size: tuple[int, int]) -> Iterator[str]:
    yield ""
    yield f"[maps.{one.name}]"
    yield f'buffer = "{one.operand}"'
    if one.dims != size[::-1]:
        yield f"dims = {list(one.dims)}"
        yield f"strides = {list(one.strides)}"
    yield f"box = {list(one.box)}"
    yield f'swizzle = "{one.swizzle_bytes}B"' if one.swizzle_bytes else 'swizzle = "none"'
    yield f'l2_promotion = "{one.l2_promotion_bytes}B"'
