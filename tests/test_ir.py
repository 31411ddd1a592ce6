# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys

import pytest

import tmagen
from tmagen.arch import ARCHES, arch_of
from tmagen.ir import (
    Cluster,
    DType,
    Gemm,
    Layout,
    Pipeline,
    Policy,
    Problem,
    Schedule,
    Shape,
    Target,
    Tile,
)

NAMES = {
    cls.__name__: cls
    for cls in (Cluster, DType, Gemm, Layout, Pipeline, Policy, Problem, Schedule, Shape, Target, Tile)
}

SPECS = [
    Gemm(),
    Gemm(pipeline=Pipeline(depth=1, policy=Policy.SERIAL)),
    Gemm(
        problem=Problem(a=DType.BF16, b=DType.BF16, d=DType.F32, shape=Shape(4096, 4096, 64)),
        tile=Tile(128, 256, 128),
        pipeline=Pipeline(4),
        schedule=Schedule(persistent=True, ctas=132, l2_group=3),
        cluster=Cluster(2, 1),
        name="my_kernel",
    ),
]


@pytest.mark.parametrize("spec", SPECS)
def test_prints_as_typed(spec: Gemm) -> None:
    assert eval(repr(spec), NAMES) == spec
    for part in (spec.problem, spec.tile, spec.pipeline, spec.schedule, spec.cluster, spec.target):
        assert eval(repr(part), NAMES) == part


def test_repr_leaves_defaults_out() -> None:
    assert repr(Gemm()) == "Gemm()"
    assert repr(Gemm(pipeline=Pipeline(4))) == "Gemm(pipeline=Pipeline(depth=4, policy=Policy.PREFETCH))"
    assert repr(Problem(d=DType.F32)) == "Problem(d=DType.F32)"


def test_frozen_and_hashable() -> None:
    assert len({*SPECS, *SPECS}) == len(SPECS)
    with pytest.raises(AttributeError):
        SPECS[0].tile.m = 64  # type: ignore[misc]
    with pytest.raises((AttributeError, TypeError)):
        SPECS[0].color = "red"  # type: ignore[attr-defined]


def test_element_sizes() -> None:
    assert [dtype.bytes for dtype in (DType.F16, DType.BF16, DType.F32)] == [2, 2, 4]


def test_every_target_has_its_row() -> None:
    assert set(ARCHES) == set(Target)
    for target in Target:
        row = arch_of(target)
        assert row.target is target
        assert row.nvcc_code == target.value
        assert hash(row) == hash(arch_of(target))


def test_sm_100a_figures() -> None:
    row = arch_of(Target.SM_100A)
    assert (row.compute_capability, row.sm_count) == ((10, 0), 148)
    assert row.smem_per_block_bytes == 227 * 1024
    assert row.smem_per_sm_bytes == row.smem_per_block_bytes + row.smem_reserved_bytes == 228 * 1024
    assert (row.tmem_columns, row.tmem_lanes) == (512, 128)


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_import_loads_nothing_else() -> None:
    code = "import sys, tmagen; print([m for m in sys.modules if m.startswith('tmagen.') or m in ('numpy', 'jinja2')])"
    assert run_python(code).strip() == "[]"


@pytest.mark.parametrize(
    "before",
    ["", "import tmagen.plan, tmagen.emit", "from tmagen.plan import Plan", "import tmagen; tmagen.plan; tmagen.emit"],
)
def test_functions_win_over_submodules_of_their_name(before: str) -> None:
    code = f"{before}\nfrom tmagen import plan, emit\nprint(type(plan).__name__, type(emit).__name__)"
    assert run_python(code).strip() == "function function"


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'gem'"):
        tmagen.gem  # noqa: B018


def test_public_names_are_listed_once() -> None:
    assert sorted(tmagen.__all__) == sorted({*tmagen._HOME_OF, "__version__"})
    assert set(tmagen.__all__) <= set(dir(tmagen))


@pytest.mark.parametrize(("depth", "policy"), [(1, Policy.SERIAL), (2, Policy.PREFETCH), (24, Policy.PREFETCH)])
def test_the_policy_follows_from_the_depth_where_it_is_left_out(depth: int, policy: Policy) -> None:
    assert Pipeline(depth) == Pipeline(depth, policy)
    assert eval(repr(Pipeline(depth))) == Pipeline(depth)
