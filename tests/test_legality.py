# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace
from inspect import isfunction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmagen import legality
from tmagen.arch import arch_of
from tmagen.errors import Diagnostic, SpecError
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
from tmagen.legality import RULES, check, require_legal

ARCH = arch_of(Target.SM_100A)


def tile(m: int = 128, n: int = 128, k: int = 64) -> Gemm:
    return Gemm(tile=Tile(m, n, k))


def shaped(m: int, n: int, k: int, **schedule: Any) -> Gemm:
    return Gemm(problem=Problem(shape=Shape(m, n, k)), schedule=Schedule(**schedule))


ILLEGAL: list[tuple[Gemm, str, str | None]] = [
    (tile(m=64), "tile.m = 64 is no M of the MMA on sm_100a: it is 128", "--tile 128,128,64"),
    (tile(m=-1), "tile.m = -1 is no M of the MMA on sm_100a: it is 128", "--tile 128,128,64"),
    (tile(n=24), "tile.n = 24 is no N of the MMA on sm_100a: it is 16 to 256 in steps of 16", "--tile 128,16,64"),
    (tile(n=0), "tile.n = 0 is no N of the MMA on sm_100a: it is 16 to 256 in steps of 16", "--tile 128,16,64"),
    (tile(n=272), "tile.n = 272 is no N of the MMA on sm_100a: it is 16 to 256 in steps of 16", "--tile 128,256,64"),
    (tile(k=96), "tile.k = 96 is no whole number of swizzle atoms: it is 32, 64 or 128", "--tile 128,128,64"),
    (tile(k=256), "tile.k = 256 is no whole number of swizzle atoms: it is 32, 64 or 128", "--tile 128,128,128"),
    (Gemm(pipeline=Pipeline(0)), "pipeline.depth = 0 leaves no stage to load into", "--pipe-depth 2"),
    (Gemm(pipeline=Pipeline(-3)), "pipeline.depth = -3 leaves no stage to load into", "--pipe-depth 2"),
    (
        Gemm(pipeline=Pipeline(2, Policy.SERIAL)),
        "pipeline.policy = serial uses one stage; pipeline.depth = 2",
        "--pipe-depth 1, or --policy prefetch",
    ),
    (
        Gemm(pipeline=Pipeline(1, Policy.PREFETCH)),
        "pipeline.policy = prefetch needs at least two stages; pipeline.depth = 1",
        "--pipe-depth 2, or --policy serial",
    ),
    (
        Gemm(pipeline=Pipeline(7)),
        "pipeline.depth = 7 needs 263,168 bytes of shared memory; sm_100a allows 232,448 per block",
        "--pipe-depth 6",
    ),
    (
        Gemm(tile=Tile(128, 256, 128), pipeline=Pipeline(3)),
        "pipeline.depth = 3 needs 328,704 bytes of shared memory; sm_100a allows 232,448 per block",
        "--pipe-depth 2",
    ),
    (
        Gemm(schedule=Schedule(persistent=True, ctas=0)),
        "schedule.ctas = 0 is no grid size: it is 1 to 2,147,483,647",
        "--ctas 148",
    ),
    (
        Gemm(schedule=Schedule(persistent=True, ctas=2**31)),
        "schedule.ctas = 2,147,483,648 is no grid size: it is 1 to 2,147,483,647",
        "--ctas 148",
    ),
    (
        Gemm(schedule=Schedule(ctas=4)),
        "schedule.ctas = 4 without persistent: a grid of one CTA per tile takes its size from the shape",
        "--persistent, or no --ctas",
    ),
    (
        Gemm(schedule=Schedule(persistent=True, l2_group=0)),
        "schedule.l2_group = 0 is no number of tile rows: it is 1 to 2,147,483,647",
        None,
    ),
    (
        Gemm(schedule=Schedule(l2_group=4)),
        "schedule.l2_group = 4 without persistent: a grid of one CTA per tile has no tile order",
        "--persistent, or no --l2-group",
    ),
    (
        Gemm(cluster=Cluster(2, 1)),
        "cluster = Cluster(m=2, n=1) is not supported on sm_100a: it is Cluster(m=1, n=1)",
        None,
    ),
    (
        Gemm(problem=Problem(a=DType.BF16, b=DType.F16)),
        "problem.a = bf16 and problem.b = f16: A and B have one type",
        "--dtype bf16",
    ),
    (
        Gemm(problem=Problem(acc=DType.F16)),
        "problem.acc = f16 is no accumulator: it is f32",
        None,
    ),
    (
        Gemm(problem=Problem(layout_a=Layout.ROW_MAJOR)),
        "problem.layout_a = row-major is not supported: it is k-major",
        None,
    ),
    (
        Gemm(problem=Problem(layout_b=Layout.ROW_MAJOR)),
        "problem.layout_b = row-major is not supported: it is k-major",
        None,
    ),
    (
        Gemm(problem=Problem(layout_d=Layout.K_MAJOR)),
        "problem.layout_d = k-major is not supported: it is row-major",
        None,
    ),
    (shaped(-1, 8, 8), "problem.shape.m = -1 is out of range: it is 0 to 2,147,483,647 elements", None),
    (shaped(8, 2**31, 8), "problem.shape.n = 2,147,483,648 is out of range: it is 0 to 2,147,483,647 elements", None),
    (
        shaped(8, 8, 2**40),
        "problem.shape.k = 1,099,511,627,776 is out of range: it is 0 to 2,147,483,647 elements",
        None,
    ),
    (
        shaped(1, 65_535 * 128 + 1, 1),
        "problem.shape.n = 8,388,481 has 65,536 tiles of 128 columns; grid.y is at most 65,535",
        "--persistent, or a wider --tile",
    ),
    (
        shaped(2**31 - 1, 2**31 - 1, 1, persistent=True),
        "problem.shape has 16,777,216 x 16,777,216 output tiles; a tile index is at most 2,147,483,647",
        "a larger --tile",
    ),
    (Gemm(name=""), "name = '' is empty", None),
    (Gemm(name="a" * 65), f"name = '{'a' * 64}'... has 65 characters; at most 64 are allowed", None),
    (
        Gemm(name="my kernel"),
        "name = 'my kernel' is not an identifier: a letter, then letters, digits and underscores",
        None,
    ),
]


@pytest.mark.parametrize(
    ("spec", "message", "hint"), ILLEGAL, ids=lambda value: value[:40] if isinstance(value, str) else ""
)
def test_one_message(spec: Gemm, message: str, hint: str | None) -> None:
    (diagnostic,) = check(spec)
    assert (diagnostic.message, diagnostic.hint) == (message, hint)


LEGAL = [
    Gemm(),
    Gemm(pipeline=Pipeline(1, Policy.SERIAL)),
    Gemm(pipeline=Pipeline(6)),
    Gemm(pipeline=Pipeline(1, Policy.SERIAL), schedule=Schedule(persistent=True)),
    Gemm(schedule=Schedule(persistent=True, ctas=2**31 - 1, l2_group=2**31 - 1)),
    Gemm(schedule=Schedule(persistent=True, ctas=1, l2_group=1)),
    Gemm(problem=Problem(a=DType.BF16, b=DType.BF16, d=DType.F16)),
    Gemm(problem=Problem(d=DType.BF16)),
    Gemm(problem=Problem(d=DType.F32), name="step6_f32"),
    shaped(0, 0, 0),
    shaped(2**31 - 1, 65_535 * 128, 2**31 - 1),
    shaped(0, 2**31 - 1, 1),  # nothing to launch, so no grid to exceed
    *(tile(n=n, k=k) for n in range(16, 257, 16) for k in (32, 64, 128)),
]


@pytest.mark.parametrize("spec", LEGAL, ids=repr)
def test_legal(spec: Gemm) -> None:
    assert check(spec) == ()
    require_legal(spec)


def test_message_of_the_shared_memory_rule() -> None:
    assert str(check(Gemm(pipeline=Pipeline(7)))[0]) == (
        "error: pipeline.depth = 7 needs 263,168 bytes of shared memory; sm_100a allows 232,448 per block\n"
        "  7 stages of A 128x64 f16 (16,384) + B 128x64 f16 (16,384) = 229,376; "
        "epilogue buffer 32,768; barriers 1,024\n"
        "  try: --pipe-depth 6"
    )


def test_all_at_once() -> None:
    spec = Gemm(
        problem=Problem(a=DType.F32, b=DType.F32, acc=DType.F16, shape=Shape(-1, 1, 1)),
        tile=Tile(64, 600, 3),
        pipeline=Pipeline(0),
        schedule=Schedule(ctas=0, l2_group=0),
        cluster=Cluster(2, 2),
        name="main",
    )
    with pytest.raises(SpecError) as caught:
        require_legal(spec)
    subjects = [diagnostic.message.split(" = ")[0] for diagnostic in caught.value.diagnostics]
    assert subjects == [
        "tile.m",
        "tile.n",
        "tile.k",
        "tile.n",
        "pipeline.depth",
        "schedule.ctas",
        "schedule.ctas",
        "schedule.l2_group",
        "cluster",
        "problem.a",
        "problem.b",
        "problem.acc",
        "problem.shape.m",
        "name",
    ]
    assert caught.value.exit_code == 2
    assert caught.value.report().count("error: ") == len(subjects)


def test_tmem() -> None:
    diagnostics = check(tile(n=528))
    assert "tile.n = 528 needs 1,024 TMEM columns; sm_100a has 512" in [found.message for found in diagnostics]
    assert not list(legality.tmem_columns(tile(n=512), ARCH))


def test_rules_follow_the_row() -> None:
    small = replace(
        ARCH, smem_per_block_bytes=32_768, outputs=(DType.F16,), clusters=((1, 1), (2, 1)), block_m=(64, 128)
    )
    assert not list(legality.cluster(Gemm(cluster=Cluster(2, 1)), small))
    assert not list(legality.tile_m(tile(m=64), small))
    (output,) = legality.dtypes(Gemm(problem=Problem(d=DType.F32)), small)
    assert (output.message, output.hint) == ("problem.d = f32 is no output: it is f16", "--out-dtype f16")
    (smem,) = legality.smem_bytes(Gemm(), small)
    assert smem.hint == "a smaller --tile"


@pytest.mark.parametrize("spec", [Gemm(pipeline=Pipeline(depth)) for depth in (7, 100, 2**40)])
def test_suggested_depth_works(spec: Gemm) -> None:
    (diagnostic,) = check(spec)
    assert diagnostic.hint is not None
    depth = int(diagnostic.hint.removeprefix("--pipe-depth "))
    assert check(replace(spec, pipeline=Pipeline(depth))) == ()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (Gemm(tile=Tile(m=True)), "tile.m = True is of type bool"),
        (Gemm(tile=Tile(n=128.0)), "tile.n = 128.0 is of type float"),  # type: ignore[arg-type]
        (Gemm(tile=Tile(k="64")), "tile.k = '64' is of type str"),  # type: ignore[arg-type]
        (Gemm(tile=None), "tile = None is of type NoneType"),  # type: ignore[arg-type]
        (Gemm(target="sm_100a"), "target = 'sm_100a' is of type str"),  # type: ignore[arg-type]
        (Gemm(problem=Problem(a="f16")), "problem.a = 'f16' is of type str"),  # type: ignore[arg-type]
        (Gemm(problem=Problem(shape=(1, 2, 3))), "problem.shape = (1, 2, 3) is of type tuple"),  # type: ignore[arg-type]
        (shaped(1.5, 1, 1), "problem.shape.m = 1.5 is of type float"),  # type: ignore[arg-type]
        (Gemm(schedule=Schedule(persistent=1)), "schedule.persistent = 1 is of type int"),  # type: ignore[arg-type]
        (Gemm(name=7), "name = 7 is of type int"),  # type: ignore[arg-type]
        (Gemm(name="x" * 10_000 + " "), "name = '"),
        (Gemm(tile=Tile(n=10**5000)), "tile.n is an integer of 16,610 bits, which is out of every range"),
        (Gemm(tile=["x" * 1000]), "tile = ['xxx"),  # type: ignore[arg-type]
        (Gemm(tile=[10**5000]), "tile = <list> is of type list"),  # type: ignore[arg-type]
        ("step6", "the spec = 'step6' is of type str"),
    ],
)
def test_wrong_types(spec: Any, message: str) -> None:
    (diagnostic,) = check(spec)
    assert diagnostic.message.startswith(message)
    assert len(diagnostic.message) < 200


def test_wrong_types_all_at_once() -> None:
    spec: Any = Gemm(tile=Tile(None, "n", 1.0), pipeline=Pipeline(depth=[]))  # type: ignore[arg-type]
    assert [found.message.split(" = ")[0] for found in check(spec)] == ["tile.m", "tile.n", "tile.k", "pipeline.depth"]
    (found,) = check(Gemm(problem=Problem(a="f16")))  # type: ignore[arg-type]
    assert found.detail == ("it takes DType (DType.F16, DType.BF16, DType.F32)",)
    (found,) = check(Gemm(schedule=Schedule(ctas="4")))  # type: ignore[arg-type]
    assert found.detail == ("it takes int or None",)


ANYTHING = st.one_of(st.integers(), st.none(), st.booleans(), st.text(max_size=5), st.sampled_from([*DType, *Policy]))


@given(st.builds(Tile, ANYTHING, ANYTHING, ANYTHING), st.builds(Pipeline, ANYTHING, ANYTHING), ANYTHING, ANYTHING)
def test_never_raises(tile: Tile, pipeline: Pipeline, name: Any, ctas: Any) -> None:
    for diagnostic in check(Gemm(tile=tile, pipeline=pipeline, schedule=Schedule(True, ctas), name=name)):
        assert isinstance(diagnostic, Diagnostic)
        assert diagnostic.message


def test_each_rule_is_registered_and_can_fail() -> None:
    functions = [
        value for value in vars(legality).values() if isfunction(value) and value.__module__ == legality.__name__
    ]
    assert set(RULES) == {rule for rule in functions if rule.__annotations__["return"] == "Iterator[Diagnostic]"}
    failing = [*(spec for spec, _, _ in ILLEGAL), tile(n=528)]
    for rule in RULES:
        assert any(list(rule(spec, ARCH)) for spec in failing), rule.__name__
