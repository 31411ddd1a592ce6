# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import legal_specs
from tmagen.bind import bind
from tmagen.errors import SpecError
from tmagen.explain import Section, sections_of
from tmagen.explain_json import document_of
from tmagen.ir import Gemm, Pipeline, Policy, Problem, Schedule, Shape
from tmagen.pipeline_table import KStep, k_loop
from tmagen.plan import plan
from tmagen.presets import PRESETS

STEP4, STEP5, STEP6 = (plan(PRESETS[name].spec) for name in ("step4", "step5", "step6"))


def section(title: str, sections: tuple[Section, ...]) -> Section:
    (found,) = (one for one in sections if one.title.startswith(title))
    return found


def facts(found: Section) -> dict[str, str]:
    return {row[0]: row[1] for row in found.rows[1:]}


# --- the K loop -------------------------------------------------------------------------------------


def test_five_k_tiles_in_two_stages() -> None:
    loop = k_loop(STEP5, 5)
    assert loop.prefetch == ((0, 0), (1, 1))
    assert loop.steps == (
        KStep(k=0, stage=0, full_phase=0, mma_phase=0, loads=((2, 0),)),
        KStep(k=1, stage=1, full_phase=0, mma_phase=1, loads=((3, 1),)),
        KStep(k=2, stage=0, full_phase=1, mma_phase=0, loads=((4, 0),)),
        KStep(k=3, stage=1, full_phase=1, mma_phase=1, loads=()),
        KStep(k=4, stage=0, full_phase=0, mma_phase=0, loads=()),
    )
    assert (loop.next_stage, loop.next_full_phase, loop.next_mma_phase) == (1, 0, 1)


def test_serial_loop() -> None:
    loop = k_loop(STEP4, 3)
    assert loop.prefetch == ()
    assert [(step.stage, step.full_phase, step.loads) for step in loop.steps] == [
        (0, 0, ((0, 0),)),
        (0, 1, ((1, 0),)),
        (0, 0, ((2, 0),)),
    ]


@given(st.integers(1, 9), st.integers(0, 60))
def test_the_loop_obeys_its_barriers(depth: int, k_tiles: int) -> None:
    """Replays the table on model barriers: each wait is for the phase of its load, and no load overwrites a tile."""
    policy = Policy.SERIAL if depth == 1 else Policy.PREFETCH
    decided = plan(Gemm(pipeline=Pipeline(min(depth, 6), policy)))
    depth = decided.spec.pipeline.depth
    loop = k_loop(decided, k_tiles)
    holds: dict[int, int] = {}  # stage to the K tile in it that is not multiplied yet
    fills = [0] * depth  # loads into each stage so far
    loaded: list[int] = []

    def load(loads: tuple[tuple[int, int], ...]) -> None:
        for k, stage in loads:
            assert stage not in holds
            holds[stage] = k
            fills[stage] += 1
            loaded.append(k)

    load(loop.prefetch)
    for turn, step in enumerate(loop.steps):
        if policy is Policy.SERIAL:
            load(step.loads)
        assert step.full_phase == (fills[step.stage] - 1) % 2
        assert step.mma_phase == turn % 2
        assert holds.pop(step.stage) == step.k == turn
        if policy is Policy.PREFETCH:
            load(step.loads)
    assert loaded == list(range(k_tiles))
    assert not holds


# --- sections ---------------------------------------------------------------------------------------


def test_tiles_of_4096() -> None:
    found = facts(section("Output tiles", sections_of(STEP6, Shape(4096, 4096, 4096))))
    assert found == {
        "output tiles": "1,024: 32 x 32",
        "K tiles of each": "64",
        "CTAs": "148",
        "tiles per CTA": "6.92 on average: 136 take 7 and 12 take 6",
        "waves": "7 of 148 CTAs",
        "order": "groups of 8 tile rows, rows first within a group",
    }


def test_tiles_of_one_cta_each() -> None:
    found = facts(section("Output tiles", sections_of(STEP5, Shape(4096, 4096, 4096))))
    assert found["tiles per CTA"] == "1.00 on average: 1,024 take 1"
    assert found["waves"] == "4 of 296 CTAs"  # 148 SMs hold 2 each


def test_fewer_tiles_than_ctas() -> None:
    found = facts(section("Output tiles", sections_of(STEP6, Shape(1, 1, 1))))
    assert found["tiles per CTA"] == "1.00 on average: 1 takes 1"
    assert found["CTAs"] == "1"


def test_expressions_without_a_shape() -> None:
    sections = sections_of(STEP6)
    maps = section("Tensor maps", sections)
    assert [row[3:5] for row in maps.rows[1:]] == [
        ("[k, m]", "[lda * 2]"),
        ("[k, n]", "[ldb * 2]"),
        ("[n_whole, m]", "[ldd * 2]"),
    ]
    assert any("no shape is known" in note for note in maps.notes)
    assert not [one for one in sections if one.title.startswith("Output tiles")]


def test_no_k_and_nothing_at_all() -> None:
    maps = section("Tensor maps", sections_of(STEP6, Shape(129, 136, 0)))
    assert [row[0] for row in maps.rows[1:]] == ["map_d"]
    assert facts(section("Launch", sections_of(STEP6, Shape(0, 136, 8))))["grid"].startswith("nothing is launched")


def test_another_shape_than_the_baked_in_one() -> None:
    static = plan(PRESETS["step6-4096"].spec)
    with pytest.raises(SpecError):
        sections_of(static, Shape(1, 1, 1))


@given(legal_specs(), st.integers(0, 20))
def test_every_plan_can_be_explained(spec: Gemm, k_tiles: int) -> None:
    decided = plan(spec)
    for found in sections_of(decided, spec.problem.shape, k_tiles):
        assert len({len(row) for row in found.rows}) == 1
        text = " ".join((found.title, *(cell for row in found.rows for cell in row), *found.notes))
        assert text.isascii()
    assert json.loads(json.dumps(document_of(decided, spec.problem.shape, k_tiles)))


# --- JSON -------------------------------------------------------------------------------------------


def numbers_in(value: Any) -> bool:
    if isinstance(value, list):
        return all(numbers_in(member) for member in value)
    return isinstance(value, int)


@given(legal_specs(), st.builds(Shape, st.integers(1, 9999), st.integers(1, 9999), st.integers(0, 9999)))
def test_json_is_enough_to_launch_from(spec: Gemm, shape: Shape) -> None:
    decided = plan(replace(spec, problem=replace(spec.problem, shape=None)))
    document = document_of(decided, shape)
    bound = bind(decided, shape)
    assert bound is not None
    assert document["dims_are"] == "numbers"
    launch = document["launch"]
    assert tuple(launch["grid"]) == bound.grid
    assert all(numbers_in(launch[key]) for key in ("grid", "block", "cluster", "dynamic_smem_bytes"))
    for tensor_map in document["tensor_maps"]:
        assert len(tensor_map["dims"]) == len(tensor_map["box"]) == tensor_map["rank"] == 2
        assert all(numbers_in(tensor_map[key]) for key in ("dims", "strides_bytes", "box", "element_strides"))
        assert tensor_map["strides_bytes"][0] % 16 == 0
        assert tensor_map["strides_bytes"][0] >= tensor_map["dims"][0] * (4 if "32" in tensor_map["data_type"] else 2)
    names = {tensor_map["name"] for tensor_map in document["tensor_maps"]}
    for parameter in launch["parameters"]:
        if parameter["type"] == "CUtensorMap":
            assert parameter["is_encoded"] is (parameter["value"] in names)
        else:
            assert isinstance(parameter["value"], int) or parameter["type"].endswith("*")


def test_json_of_step_6() -> None:
    document = document_of(STEP6, Shape(4096, 4096, 4096), 5)
    assert document["command"] == "tmagen emit --persistent"
    assert document["shape"] == {"m": 4096, "n": 4096, "k": 4096}
    assert document["shape_is_baked_in"] is False
    assert document["leading_dims"] == {"lda": 4096, "ldb": 4096, "ldd": 4096}
    assert document["target"]["nvcc"] == ["-gencode", "arch=compute_100a,code=sm_100a"]
    assert document["spec"]["pipeline"] == {"depth": 2, "policy": "prefetch"}
    assert document["mma"]["instr_descriptor"]["hex"] == "0x08200010"
    assert document["schedule"]["share"] == [{"ctas": 136, "tiles_each": 7}, {"ctas": 12, "tiles_each": 6}]
    assert document["schedule"]["waves"] == 7
    assert [(p["argument"], p["offset_bytes"], p["value"]) for p in document["launch"]["parameters"]] == [
        (0, 0, "map_a"),
        (1, 128, "map_b"),
        (2, 256, "map_d"),
        (3, 384, 32),
        (3, 388, 32),
        (3, 392, 64),
        (4, 400, "d"),
        (4, 408, 4096),
        (4, 416, 4096),
        (4, 420, 4096),
        (4, 424, 0),
    ]
    assert document["tensor_maps"][2] == {
        "name": "map_d",
        "operand": "D",
        "data_type": "CU_TENSOR_MAP_DATA_TYPE_FLOAT16",
        "rank": 2,
        "dims": [4096, 4096],
        "strides_bytes": [8192],
        "box": [64, 128],
        "element_strides": [1, 1],
        "interleave": "CU_TENSOR_MAP_INTERLEAVE_NONE",
        "swizzle": "CU_TENSOR_MAP_SWIZZLE_128B",
        "l2_promotion": "CU_TENSOR_MAP_L2_PROMOTION_L2_128B",
        "oob_fill": "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE",
    }
    assert len(document["k_loop"]["steps"]) == 5


def test_json_without_a_shape_says_so() -> None:
    document = document_of(STEP6)
    assert document["shape"] is None
    assert document["dims_are"] == "expressions"
    assert document["launch"]["grid"] == ["min(m_tiles * n_tiles, 148)", "1", "1"]
    assert document["tensor_maps"][0]["dims"] == ["k", "m"]
    assert document["variables"]["m_tiles"] == "ceil(m / 128)"


def test_json_of_nothing_to_launch() -> None:
    document = document_of(STEP6, Shape(0, 8, 8))
    assert document["launch"] is None
    assert document["tensor_maps"] == []


def test_json_of_a_baked_in_shape() -> None:
    static = plan(Gemm(problem=Problem(shape=Shape(256, 256, 64)), schedule=Schedule(True)))
    document = document_of(static, static.spec.problem.shape)
    assert document["shape_is_baked_in"] is True
    assert [parameter["name"] for parameter in document["launch"]["parameters"]] == ["map_a", "map_b", "map_d"]
