# SPDX-License-Identifier: Apache-2.0
"""From a plan to the text of a kernel. Which partial fills which slot is decided here; the templates only print."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from tmagen.emit_text import comment_table, text_of
from tmagen.ir import DType, Policy
from tmagen.plan import Plan


@dataclass(frozen=True, slots=True)
class Features:
    """What a plan has or has not, under a name for the templates to ask for."""

    persistent: bool
    static_shape: bool
    many_atoms: bool


@dataclass(frozen=True, slots=True)
class Partials:
    """The template that fills each slot of the file."""

    problem: str
    ptx: tuple[str, ...]
    scheduler: str
    main_loop: str
    chunk_words: str
    epilogue: str
    kernel: str


def emit(plan: Plan) -> str:
    """The CUDA C++ source of ``plan``: one self-contained file. The same plan always gives the same text."""
    template = _environment().get_template("cuda/kernel.cu.j2")
    return template.render(plan=plan, text=text_of(plan), features=_features(plan), partials=_partials(plan))


def _features(plan: Plan) -> Features:
    return Features(
        persistent=plan.schedule.persistent,
        static_shape=plan.static_tiles is not None,
        many_atoms=plan.operand.atoms > 1,
    )


def _partials(plan: Plan) -> Partials:
    serial = plan.spec.pipeline.policy is Policy.SERIAL
    packed = plan.epilogue.d_type is not DType.F32
    restages = plan.schedule.persistent or plan.epilogue.passes > 1  # the staging buffer is written more than once
    wrappers = (
        *("mbarrier", "tma"),
        *(("tma_wait_read",) if restages else ()),
        *("fence", "warp", "tmem", "tcgen05"),
        *(("convert",) if packed else ()),
    )
    return Partials(
        problem=f"cuda/sections/problem_{'runtime' if plan.static_tiles is None else 'static'}.cu.j2",
        ptx=tuple(f"cuda/ptx/{wrapper}.cu.j2" for wrapper in wrappers),
        scheduler=f"cuda/sections/{'scheduler' if plan.schedule.persistent else 'tile'}.cu.j2",
        main_loop=f"cuda/roles/main_loop_{'serial' if serial else 'prefetch'}.cu.j2",
        chunk_words=f"cuda/roles/chunk_words_{'packed' if packed else 'f32'}.cu.j2",
        epilogue=f"cuda/roles/epilogue_{'one_pass' if plan.epilogue.passes == 1 else 'passes'}.cu.j2",
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
