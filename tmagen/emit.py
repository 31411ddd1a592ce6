# SPDX-License-Identifier: Apache-2.0
"""From a plan to the text of a kernel. Which partial fills which slot is decided here; the templates only print."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from tmagen.emit_text import comment_table, text_of
from tmagen.errors import Diagnostic, SpecError
from tmagen.ir import DType, Gemm, Policy
from tmagen.plan import Plan


@dataclass(frozen=True, slots=True)
class Features:
    """What a plan has or has not, under a name for the templates to ask for."""

    persistent: bool
    static_shape: bool
    many_atoms: bool
    tmem: bool
    register_accumulator: bool
    instr_descriptor: bool
    edge: bool


@dataclass(frozen=True, slots=True)
class Partials:
    """The template that fills each slot of the file."""

    problem: str
    ptx: tuple[str, ...]
    scheduler: str
    accumulator_config: str
    mma: str
    main_loop: str
    swizzle: str
    store_values: str
    epilogue_box: str
    epilogue: str
    setup: str
    kernel: str


def emit(plan: Plan) -> str:
    """The CUDA C++ source of ``plan``: one self-contained file. The same plan always gives the same text.

    Raises :class:`SpecError` for what is no plan.
    """
    if not isinstance(plan, Plan):
        hint = "emit(plan(spec))" if isinstance(plan, Gemm) else None
        raise SpecError(Diagnostic(f"emit() takes a plan, not {type(plan).__name__}", hint=hint))
    template = _environment().get_template("cuda/kernel.cu.j2")
    return template.render(plan=plan, text=text_of(plan), features=_features(plan), partials=_partials(plan))


def _features(plan: Plan) -> Features:
    return Features(
        persistent=plan.schedule.persistent,
        static_shape=plan.static_tiles is not None,
        many_atoms=plan.operand.atoms > 1,
        tmem=plan.tmem.columns > 0,
        register_accumulator=plan.tmem.columns == 0,
        instr_descriptor=plan.mma.instr_descriptor is not None,
        edge=plan.epilogue.ragged,
    )


def _partials(plan: Plan) -> Partials:
    serial = plan.spec.pipeline.policy is Policy.SERIAL
    packed = plan.epilogue.d_type is not DType.F32
    tmem = plan.tmem.columns > 0
    kind = plan.arch.mma_kind
    accumulator = "tmem" if tmem else "registers"
    values = "chunk_words" if tmem else "store_pair"
    restages = plan.schedule.persistent or plan.epilogue.passes > 1  # the staging buffer is written more than once
    wrappers = (
        *("mbarrier", "tma"),
        *(("tma_wait_read",) if restages else ()),
        *("fence", "warp"),
        *(("tmem", "tcgen05", "store_v4") if tmem else ("wgmma", "store_b32" if packed else "store_v2")),
        *(("convert",) if packed else ()),
    )
    return Partials(
        problem=f"cuda/sections/problem_{'runtime' if plan.static_tiles is None else 'static'}.cu.j2",
        ptx=tuple(f"cuda/ptx/{wrapper}.cu.j2" for wrapper in wrappers),
        scheduler=f"cuda/sections/{'scheduler' if plan.schedule.persistent else 'tile'}.cu.j2",
        accumulator_config=f"cuda/sections/accumulator_config_{accumulator}.cu.j2",
        mma=f"cuda/roles/mma_{kind}.cu.j2",
        main_loop=f"cuda/roles/main_loop_{'serial' if serial else 'prefetch'}_{kind}.cu.j2",
        swizzle=f"cuda/roles/{'swizzle' if plan.tensor_maps[-1].swizzle_bytes else 'swizzle_none'}.cu.j2",
        store_values=f"cuda/roles/{values}_{'packed' if packed else 'f32'}.cu.j2",
        epilogue_box=f"cuda/roles/epilogue_box_{accumulator}.cu.j2",
        epilogue=f"cuda/roles/epilogue_{'one_pass' if plan.epilogue.passes == 1 else 'passes'}.cu.j2",
        setup=f"cuda/sections/setup_{accumulator}.cu.j2",
        kernel=f"cuda/sections/kernel_{'persistent' if plan.schedule.persistent else 'one_tile'}.cu.j2",
    )


def thousands(value: int) -> str:
    """12345 as 12,345."""
    return f"{value:,}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tmagen"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # C++ source, not HTML
    )
    environment.filters["comment_table"] = comment_table
    environment.filters["thousands"] = thousands
    return environment
