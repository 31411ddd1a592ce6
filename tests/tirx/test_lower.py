# SPDX-License-Identifier: Apache-2.0
"""The text of TIRx scripts, without TVM."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from tmagen.cli import main
from tmagen.errors import SpecError
from tmagen.ir import DType, Gemm, Pipeline, Policy, Problem, Schedule, Shape, Target, Tile
from tmagen.presets import PRESETS
from tmagen.tirx.lower import DEFAULT_SHAPE, TVM_VERSION, tirx_script, with_shape

PERSISTENT = Schedule(persistent=True)


def spec(m: int, n: int, k: int, **fields: object) -> Gemm:
    return replace(Gemm(problem=Problem(shape=Shape(m, n, k))), **fields)  # type: ignore[arg-type]


def every_tile() -> list[Gemm]:
    return [
        replace(Gemm(), tile=Tile(128, n, k), pipeline=pipeline, schedule=schedule, problem=problem)
        for n in range(16, 257, 16)
        for k in (32, 64)
        for pipeline in (Pipeline(1, Policy.SERIAL), Pipeline(2))
        for schedule in (Schedule(), PERSISTENT)
        for problem in (
            Problem(shape=Shape(256, 3 * n, 512)),
            Problem(d=DType.F32, shape=Shape(256, 3 * n, 512)),
            Problem(DType.BF16, DType.BF16, DType.BF16, shape=Shape(256, 3 * n, 512)),
        )
    ]


def test_scripts_are_python_with_short_lines() -> None:
    for chosen in every_tile():
        text = tirx_script(chosen)
        assert ast.get_docstring(ast.parse(text))
        assert [line for line in text.splitlines() if len(line) > 120 or line != line.rstrip()] == []
        assert text.endswith("\n") and not text.endswith("\n\n") and "\n\n\n\n" not in text


def test_a_name_is_all_that_makes_a_line_long() -> None:
    name = "a" * 64
    text = tirx_script(spec(4096, 4096, 4096, name=name, schedule=PERSISTENT))
    assert [line for line in text.splitlines() if len(line) > 120 and name not in line] == []


@pytest.mark.parametrize("name", PRESETS)
def test_each_preset_has_a_script(name: str) -> None:
    assert f"M, N, K = {DEFAULT_SHAPE.m}, " in tirx_script(PRESETS[name].spec)


def test_the_header_says_how_it_was_made(capsys: pytest.CaptureFixture[str]) -> None:
    text = tirx_script(PRESETS["step6-wide"].spec)
    (command,) = [line.strip() for line in text.splitlines() if line.startswith("  tmagen emit")]
    assert main(command.split()[1:]) == 0
    assert capsys.readouterr().out == text
    assert f"apache-tvm {TVM_VERSION}" in text


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (spec(200, 256, 256), "m = 200 is no multiple of tile.m = 128"),
        (spec(256, 200, 256), "n = 200 is no multiple of tile.n = 128"),
        (spec(256, 256, 72), "k = 72 is no multiple of tile.k = 64"),
        (spec(256, 256, 0), "k = 0"),
        (spec(0, 256, 64), "m, n = 0, 256"),
        (spec(256, 256, 64, target=Target.SM_90A), "target sm_90a"),
        (spec(4096, 4096, 192, schedule=PERSISTENT), "3 K tiles a tile are no multiple of 2 x 2 stages"),
        (
            spec(4096, 4096, 192, schedule=PERSISTENT, pipeline=Pipeline(1, Policy.SERIAL)),
            "3 K tiles a tile are no multiple of 2 x 1 stages",
        ),
    ],
)
def test_what_a_script_cannot_express_is_said(chosen: Gemm, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        tirx_script(chosen)
    assert message in str(caught.value)


def test_every_reason_is_given_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        tirx_script(spec(1000, 1000, 1000, schedule=Schedule(persistent=True, ctas=2)))
    assert len(caught.value.diagnostics) == 3


def test_hints_lead_to_a_script() -> None:
    for wrong in (spec(200, 256, 72), spec(4096, 4096, 192, schedule=PERSISTENT)):
        with pytest.raises(SpecError) as caught:
            tirx_script(wrong)
        hint = caught.value.diagnostics[0].hint
        assert hint is not None
        m, n, k = map(int, hint.removeprefix("--shape ").split(","))
        assert tirx_script(replace(wrong, problem=Problem(shape=Shape(m, n, k))))


def test_parities_may_start_from_zero_where_no_cta_takes_a_second_tile() -> None:
    assert "assert K_TILES" not in tirx_script(spec(512, 512, 192, schedule=PERSISTENT))
    assert "assert K_TILES" in tirx_script(spec(4096, 4096, 256, schedule=PERSISTENT))


def test_a_shape_of_its_own_is_kept() -> None:
    chosen = spec(256, 256, 256)
    assert with_shape(chosen) is chosen
    assert with_shape(Gemm()).problem.shape == DEFAULT_SHAPE


def test_the_command_line_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emit", "--backend", "tirx", "--shape", "4096,4096,0"]) == 2
    assert "k = 0" in capsys.readouterr().err
    assert main(["emit", "--backend", "ptx"]) == 2
    assert "it is cuda, tirx or tirx-cuda" in capsys.readouterr().err
