# SPDX-License-Identifier: Apache-2.0
"""The emitted text: what a reader finds in it, and what must hold for every legal spec."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given, settings

from tests.strategies import legal_specs
from tmagen.emit import emit
from tmagen.ir import DType, Gemm, Pipeline, Policy, Problem, Schedule, Shape, Tile
from tmagen.names import refusal
from tmagen.plan import plan
from tmagen.presets import PRESETS

STEP6 = emit(plan(PRESETS["step6"].spec))


def kernel_text(**fields: object) -> str:
    return emit(plan(Gemm(**fields)))  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(legal_specs())
def test_every_legal_spec_is_printed_whole(spec: Gemm) -> None:
    text = emit(plan(spec))
    assert text.startswith("// SPDX-License-Identifier: 0BSD\n")
    assert text.endswith("\n") and not text.endswith("\n\n")
    assert "\n\n\n" not in text
    assert not re.search(r"\{\{|\}\}(?!;)|\{% | %\}|\bNone\b", text)
    assert not [line for line in text.splitlines() if line != line.rstrip()]
    assert text == emit(plan(spec))


@settings(max_examples=30, deadline=None)
@given(legal_specs())
def test_lines_are_at_most_100_columns(spec: Gemm) -> None:
    name = plan(spec).name
    text = emit(plan(spec)).replace(name, "name")
    lines = [line for line in text.splitlines() if not line.startswith("//   tmagen emit ")]
    assert [line for line in lines if len(line) > 100] == []


def test_a_fifth_of_the_lines_say_why() -> None:
    body = STEP6[STEP6.index("namespace gemm") :]
    lines = [line for line in body.splitlines() if line.strip()]
    commented = [line for line in lines if "//" in line]
    assert 0.15 <= len(commented) / len(lines) <= 0.30


def test_only_wrappers_that_are_used() -> None:
    for name, preset in PRESETS.items():
        text = emit(plan(preset.spec))
        wrappers = text[text.index("namespace ptx {") : text.index("}  // namespace ptx")]
        for function in re.findall(r"^__device__ .* (\w+)\(", wrappers, flags=re.MULTILINE):
            assert len(re.findall(rf"\b{function}\(", text)) > 1, f"{name} defines ptx::{function} and does not use it"


def test_only_constants_that_are_used() -> None:
    for name, preset in PRESETS.items():
        text = emit(plan(preset.spec))
        for constant in re.findall(r"^(?:inline )?constexpr \w+ (k\w+)", text, flags=re.MULTILINE):
            exported = constant.startswith("kStatic")
            assert exported or len(re.findall(rf"\b{constant}\b", text)) > 1, f"{name}: {constant}"


def test_serial_has_no_ring_and_prefetch_has_one() -> None:
    serial = kernel_text(pipeline=Pipeline(1, Policy.SERIAL))
    assert "struct Ring" not in serial
    assert "struct Ring" in kernel_text()


def test_the_scheduler_comes_with_persistent_ctas() -> None:
    assert "struct TileScheduler" in STEP6
    assert "struct TileScheduler" not in kernel_text()


def test_three_tensor_maps_and_no_more() -> None:
    assert len(re.findall(r"__grid_constant__ CUtensorMap", STEP6)) == 3


def test_a_baked_in_shape() -> None:
    text = kernel_text(problem=Problem(shape=Shape(129, 136, 72)), schedule=Schedule(True))
    assert "static constexpr uint32_t m_tiles = 2;" in text
    assert "inline constexpr int64_t kStaticK = 72;" in text
    assert "this kernel is for m = 129, n = 136, k = 72 only" in text


@pytest.mark.parametrize(
    ("d", "conversion"), [(DType.F16, "cvt.rn.f16x2"), (DType.BF16, "cvt.rn.bf16x2"), (DType.F32, None)]
)
def test_conversion_of_the_output(d: DType, conversion: str | None) -> None:
    text = kernel_text(problem=Problem(d=d))
    assert re.findall(r"cvt\.rn\.\w+", text) == ([] if conversion is None else [conversion])


def test_staging_in_passes_only_where_it_is_needed() -> None:
    assert "kBoxesPerPass, kBoxes - first_box" not in STEP6
    assert "kBoxesPerPass, kBoxes - first_box" in kernel_text(tile=Tile(128, 256, 64), schedule=Schedule(True))


def test_the_header_holds_no_path_and_the_command() -> None:
    head = STEP6[: STEP6.index("#ifndef")]
    assert "tmagen emit --persistent" in head
    assert not re.search(r"(?<![\w.])/\w+/", head)


@pytest.mark.parametrize("name", PRESETS)
def test_every_identifier_of_the_file_is_refused_as_a_name(name: str) -> None:
    chosen = plan(PRESETS[name].spec)
    code = re.sub(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"', " ", emit(chosen))
    words = set(re.findall(r"\b[A-Za-z]\w*", code))
    own = {word for word in words if chosen.name.lower() in word.lower()}
    assert {word for word in words - own if refusal(word) is None} == set()


def test_names_that_differ_in_case_do_not_share_a_guard() -> None:
    guards = [re.findall(r"#ifndef (TMAGEN_\w+)", kernel_text(name=name))[0] for name in ("Foo", "foo", "a_")]
    assert len(set(guards)) == 3
    assert not any("__" in guard for guard in guards)


def test_the_same_text_in_another_process() -> None:
    code = "import sys, tmagen as t; sys.stdout.write(t.emit(t.plan(t.Gemm(schedule=t.Schedule(True)))))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == STEP6
