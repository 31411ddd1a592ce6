# SPDX-License-Identifier: Apache-2.0
"""From a plan to the text of a TIRx script: decides which partial fills which slot, and the templates only print."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from tmagen.emit_text import schedule_words
from tmagen.errors import SpecError
from tmagen.ir import DType, Gemm, Policy, Shape
from tmagen.plan import Plan, plan, tile_counts
from tmagen.spec import to_command
from tmagen.tirx.rules import refusals

TVM_VERSION = "0.26.0"
DEFAULT_SHAPE = Shape(4096, 4096, 4096)
TVM_TYPES = {DType.F16: "float16", DType.BF16: "bfloat16", DType.F32: "float32"}
SWIZZLE_MODES = {width: f"SWIZZLE_{width}B_ATOM" for width in (128, 64, 32)} | {0: "SWIZZLE_NONE"}
WIDEST_TMEM_LOAD = 128
"""Columns of one tcgen05.ld of 32x32b: a power of two up to this (PTX ISA "tcgen05.ld", .num)."""


@dataclass(frozen=True, slots=True)
class Features:
    """What a script has or has not, under a name for the templates to ask for."""

    persistent: bool
    ring: bool
    even_phases: bool  # tiles follow each other on the same barriers
    converts: bool  # D is narrower than the accumulator


@dataclass(frozen=True, slots=True)
class Partials:
    """The template that fills each slot of the script."""

    grid: str
    setup: str
    roles: str
    loop: str
    body: str


@dataclass(frozen=True, slots=True)
class LoadText:
    """One TMEM load of an epilogue pass, as slices."""

    first: bool
    tmem: str
    rows: str
    values: str
    rounded: str
    smem: str


@dataclass(frozen=True, slots=True)
class PassText:
    """What the staging buffer takes at a time."""

    loads: tuple[LoadText, ...]
    smem: str
    d: str


@dataclass(frozen=True, slots=True)
class Text:
    """Every phrase that the templates print and the plan does not hold."""

    summary: str
    command: str
    tvm_version: str
    arch: str
    m: int
    n: int
    k: int
    depth: str
    operand: str
    result: str
    operand_bytes: int
    operand_swizzle: int
    d_swizzle: int
    d_swizzle_mode: str
    a_shape: str
    b_shape: str
    staging_cols: str
    widest_load: str


def with_shape(spec: Gemm) -> Gemm:
    """``spec`` with a shape: its own, or the default one."""
    if spec.problem.shape is not None:
        return spec
    return replace(spec, problem=replace(spec.problem, shape=DEFAULT_SHAPE))


def script_name(spec: Gemm) -> str:
    """The name of the kernel in the script of ``spec``."""
    return plan(with_shape(spec)).name


def tirx_script(spec: Gemm) -> str:
    """The TIRx script of ``spec``: one Python file that prints CUDA. The same spec always gives the same text.

    A spec without a shape gets :data:`DEFAULT_SHAPE`. Raises :class:`tmagen.errors.SpecError` with every reason why a
    spec is not legal, or is beyond what a script can express.
    """
    chosen = plan(with_shape(spec))
    refused = refusals(chosen)
    if refused:
        raise SpecError(*refused)
    template = _environment().get_template("tirx/kernel.py.j2")
    return template.render(
        plan=chosen,
        text=_text(chosen),
        features=_features(chosen),
        partials=_partials(chosen),
        passes=tuple(_passes(chosen)),
    )


def _features(plan: Plan) -> Features:
    shape = plan.spec.problem.shape
    assert shape is not None
    m_tiles, n_tiles, _ = tile_counts(plan.spec, shape)
    persistent = plan.schedule.persistent
    return Features(
        persistent=persistent,
        ring=_ring(plan),
        even_phases=persistent and m_tiles * n_tiles > plan.schedule.ctas,
        converts=plan.epilogue.d_type is not DType.F32,
    )


def _ring(plan: Plan) -> bool:
    return plan.spec.pipeline.policy is Policy.PREFETCH


def _partials(plan: Plan) -> Partials:
    persistent, ring = plan.schedule.persistent, _ring(plan)
    setup = "ring_persistent" if ring and persistent else "ring" if ring else "one_stage"
    return Partials(
        grid=f"tirx/parts/grid_{'persistent' if persistent else 'tiles'}.py.j2",
        setup=f"tirx/parts/setup_{setup}.py.j2",
        roles=f"tirx/parts/roles_{'ring' if ring else 'one_stage'}.py.j2",
        loop=f"tirx/parts/loop_{'prefetch' if ring else 'serial'}.py.j2",
        body=f"tirx/parts/body_{'persistent' if persistent else 'tiles'}.py.j2",
    )


def _text(plan: Plan) -> Text:
    spec = plan.spec
    shape = spec.problem.shape
    assert shape is not None
    stages = "PIPE_DEPTH, " if _ring(plan) else ""
    d_swizzle = plan.tensor_maps[2].swizzle_bytes
    words = schedule_words(plan)
    return Text(
        summary=words[0].upper() + words[1:] + ".",
        command=f"{to_command(spec)} --backend tirx",
        tvm_version=TVM_VERSION,
        arch=plan.arch.nvcc_code,
        m=shape.m,
        n=shape.n,
        k=shape.k,
        depth="PIPE_DEPTH" if _ring(plan) else "1",
        operand=TVM_TYPES[spec.problem.a],
        result=TVM_TYPES[spec.problem.d],
        operand_bytes=spec.problem.a.bytes,
        operand_swizzle=plan.operand.atom_bytes,
        d_swizzle=plan.epilogue.box_bytes,
        d_swizzle_mode=SWIZZLE_MODES[d_swizzle],
        a_shape=f"({stages}BLOCK_M, BLOCK_K)",
        b_shape=f"({stages}BLOCK_N, BLOCK_K)",
        staging_cols="BLOCK_N" if plan.epilogue.passes == 1 else str(_staging_cols(plan)),
        widest_load="BLOCK_N" if _one_load(plan) else str(max(_widths(min(_staging_cols(plan), plan.spec.tile.n)))),
    )


def _staging_cols(plan: Plan) -> int:
    return plan.epilogue.boxes_per_pass * plan.epilogue.box_cols


def _one_load(plan: Plan) -> bool:
    return plan.epilogue.passes == 1 and len(_widths(plan.spec.tile.n)) == 1


def _widths(columns: int) -> tuple[int, ...]:
    """``columns`` as widths of TMEM loads, widest first."""
    widths: list[int] = []
    while columns:
        widths.append(min(WIDEST_TMEM_LOAD, 1 << columns.bit_length() - 1))
        columns -= widths[-1]
    return tuple(widths)


def _passes(plan: Plan) -> Iterator[PassText]:
    """The columns of a tile, as much at a time as the staging buffer holds."""
    if _one_load(plan):
        load = LoadText(True, "tmem[:, :BLOCK_N]", "rows[:, :]", "values[:]", "rounded[:]", "d_smem[thread, 0:BLOCK_N]")
        yield PassText((load,), "d_smem[:, :]", _d_slice("row_b", "row_b + BLOCK_N"))
        return
    staging, columns = _staging_cols(plan), plan.spec.tile.n
    for start in range(0, columns, staging):
        width = min(staging, columns - start)
        loads: list[LoadText] = []
        at = 0
        for piece in _widths(width):
            loads.append(_load(start, at, piece))
            at += piece
        smem = "d_smem[:, :]" if width == staging else f"d_smem[:, 0:{width}]"
        yield PassText(tuple(loads), smem, _d_slice(_plus("row_b", start), f"row_b + {start + width}"))


def _load(start: int, at: int, width: int) -> LoadText:
    return LoadText(
        first=start == at == 0,
        tmem=f"tmem[:, {start + at}:{start + at + width}]",
        rows=f"rows[:, 0:{width}]",
        values=f"values[0:{width}]",
        rounded=f"rounded[0:{width}]",
        smem=f"d_smem[thread, {at}:{at + width}]",
    )


def _plus(name: str, offset: int) -> str:
    return f"{name} + {offset}" if offset else name


def _d_slice(first: str, end: str) -> str:
    return f"D[row_a : row_a + BLOCK_M, {first} : {end}]"


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("tmagen"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Python source, not HTML
    )
