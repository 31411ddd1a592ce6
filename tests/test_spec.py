# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import legal_specs
from tmagen.choices import KINDS, build, choices_of, merged
from tmagen.errors import SpecError
from tmagen.ir import (
    DType,
    Gemm,
    Layout,
    Pipeline,
    Policy,
    Problem,
    Schedule,
    Shape,
    Tile,
)
from tmagen.legality import check
from tmagen.presets import PRESETS
from tmagen.spec import requested, to_command
from tmagen.spec_toml import from_toml, to_toml


def named(spec: Gemm, name: str | None) -> Gemm:
    return replace(spec, name=name)


SPECS = st.builds(named, legal_specs(), st.none() | st.from_regex(r"my_[a-z0-9]{2,20}", fullmatch=True))


def flags_of(command: str) -> dict[str, str | bool]:
    """The flags of a command, read without the command line's own parser."""
    words = iter(shlex.split(command)[2:])
    flags: dict[str, str | bool] = {}
    for word in words:
        flag = word.removeprefix("--")
        flags[flag] = True if flag == "persistent" else next(words)
    return flags


def refusals(preset: str | None = None, toml: str | None = None, /, **flags: Any) -> list[str]:
    with pytest.raises(SpecError) as caught:
        requested(preset, toml, {name.replace("_", "-"): text for name, text in flags.items()})
    assert caught.value.exit_code == 2
    return [str(diagnostic).removeprefix("error: ") for diagnostic in caught.value.diagnostics]


# --- what follows from what -------------------------------------------------------------------------


def test_defaults() -> None:
    assert requested() == Gemm() == PRESETS["step5"].spec
    assert Gemm().pipeline == Pipeline(2, Policy.PREFETCH)


@pytest.mark.parametrize(
    ("flags", "pipeline"),
    [
        ({"pipe-depth": "1"}, Pipeline(1, Policy.SERIAL)),
        ({"pipe-depth": "2"}, Pipeline(2)),
        ({"pipe-depth": "4"}, Pipeline(4)),
        ({"policy": "serial"}, Pipeline(1, Policy.SERIAL)),
        ({"policy": "prefetch"}, Pipeline(2)),
        ({"policy": "prefetch", "pipe-depth": "3"}, Pipeline(3)),
        ({"policy": "serial", "pipe-depth": "1"}, Pipeline(1, Policy.SERIAL)),
    ],
)
@pytest.mark.parametrize("persistent", [None, True, False])
@pytest.mark.parametrize("preset", [None, "step4", "step5", "step6", "step6-depth4"])
def test_depth_and_policy(
    flags: dict[str, str], pipeline: Pipeline, persistent: bool | None, preset: str | None
) -> None:
    spec = requested(preset, None, {**flags, "persistent": persistent})
    if preset == "step6-depth4" and flags == {"policy": "prefetch"}:
        pipeline = Pipeline(4)  # which goes with prefetch, so nothing makes it void
    assert spec.pipeline == pipeline
    assert spec.schedule.persistent is (bool(preset and "step6" in preset) if persistent is None else persistent)


def test_contradiction_is_told() -> None:
    (message,) = refusals(policy="serial", pipe_depth="2")
    assert message.startswith("pipeline.policy = serial uses one stage; pipeline.depth = 2")


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
@pytest.mark.parametrize("out", [None, DType.F16, DType.BF16, DType.F32])
def test_dtypes(dtype: DType, out: DType | None) -> None:
    spec = requested(None, None, {"dtype": dtype.value, "out-dtype": out and out.value})
    assert spec.problem == Problem(a=dtype, b=dtype, d=out or dtype)


def test_output_type_of_a_layer_below_stays() -> None:
    assert requested("step6-f32out", None, {"dtype": "bf16"}).problem.d is DType.F32
    assert requested("step6", None, {"dtype": "bf16"}).problem.d is DType.BF16
    assert requested(None, '[problem]\na = "bf16"').problem == Problem(DType.BF16, DType.BF16, DType.BF16)
    assert requested(None, '[problem]\nd = "f16"', {"dtype": "bf16"}).problem.d is DType.F16


def test_later_layers_win() -> None:
    toml = "[tile]\nn = 256\n[pipeline]\ndepth = 3\n[schedule]\nctas = 10\npersistent = true\nl2_group = 4\n"
    spec = requested("step6-bf16", toml, {"pipe-depth": "4", "ctas": "20"})
    assert spec == Gemm(
        problem=Problem(DType.BF16, DType.BF16, DType.BF16),
        tile=Tile(n=256),
        pipeline=Pipeline(4),
        schedule=Schedule(True, 20, 4),
    )
    assert requested("step6", toml, {"persistent": False}).schedule == Schedule()
    assert requested("step6", toml, {"pipe-depth": "1"}).pipeline == Pipeline(1, Policy.SERIAL)
    assert requested("step4", "[pipeline]\ndepth = 2").pipeline == Pipeline(2)


def test_illegal_specs_have_choices_too() -> None:
    for spec in (
        Gemm(pipeline=Pipeline(2, Policy.SERIAL)),
        Gemm(pipeline=Pipeline(1, Policy.PREFETCH)),
        Gemm(problem=Problem(b=DType.BF16, layout_d=Layout.K_MAJOR)),
    ):
        assert check(spec)
        assert build(choices_of(spec)) == spec


@given(SPECS)
def test_choices_are_few(spec: Gemm) -> None:
    said = choices_of(spec)
    assert build(said) == spec
    for field in said:
        assert build({other: value for other, value in said.items() if other != field}) != spec


@given(SPECS, SPECS)
def test_all_choices_of_the_last_layer_hold(below: Gemm, above: Gemm) -> None:
    said = choices_of(above)
    result = choices_of(build(merged([choices_of(below), said])))
    assert all(result[field] == value for field, value in said.items() if field in result)


def test_presets_are_legal_and_different() -> None:
    assert {"step4", "step5", "step6"} <= set(PRESETS)
    assert len({preset.spec for preset in PRESETS.values()}) == len(PRESETS)
    for name, preset in PRESETS.items():
        assert check(preset.spec) == ()
        assert requested(name) == preset.spec


# --- the command ------------------------------------------------------------------------------------


@given(SPECS)
def test_command_gives_the_spec_back(spec: Gemm) -> None:
    command = to_command(spec)
    assert command.startswith("tmagen emit")
    assert requested(None, None, flags_of(command)) == spec


@pytest.mark.parametrize(
    ("preset", "command"),
    [
        ("step4", "tmagen emit --pipe-depth 1"),
        ("step5", "tmagen emit"),
        ("step6", "tmagen emit --persistent"),
        ("step6-bf16", "tmagen emit --dtype bf16 --persistent"),
        ("step6-wide", "tmagen emit --tile 128,256,64 --pipe-depth 4 --persistent"),
        ("step6-4096", "tmagen emit --shape 4096,4096,4096 --persistent"),
    ],
)
def test_command_is_short(preset: str, command: str) -> None:
    assert to_command(PRESETS[preset].spec) == command


def test_illegal_spec_has_no_command() -> None:
    for spec in (Gemm(name="x; rm"), Gemm(pipeline=Pipeline(7))):
        with pytest.raises(SpecError):
            to_command(spec)
        with pytest.raises(SpecError):
            to_toml(spec)


# --- flags ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"dtype": "f32"}, "--dtype 'f32' cannot be read: it is f16 or bf16"),
        ({"dtype": "F16"}, "--dtype 'F16' cannot be read: it is f16 or bf16"),
        ({"out_dtype": "f64"}, "--out-dtype 'f64' cannot be read: it is f16, bf16 or f32"),
        ({"tile": "128,128"}, "--tile '128,128' cannot be read: it takes three integers M,N,K"),
        ({"tile": "128,128,64,1"}, "--tile '128,128,64,1' cannot be read: it takes three integers M,N,K"),
        ({"tile": "128,,64"}, "--tile '128,,64' cannot be read: it takes three integers M,N,K"),
        ({"tile": "128,1_6,64"}, "--tile '128,1_6,64' cannot be read: it takes three integers M,N,K"),
        ({"shape": "1x2x3"}, "--shape '1x2x3' cannot be read: it takes three integers M,N,K"),
        ({"pipe_depth": "two"}, "--pipe-depth 'two' cannot be read: it takes an integer"),
        ({"pipe_depth": ""}, "--pipe-depth '' cannot be read: it takes an integer"),
        ({"pipe_depth": "-"}, "--pipe-depth '-' cannot be read: it takes an integer"),
        ({"pipe_depth": "2.0"}, "--pipe-depth '2.0' cannot be read: it takes an integer"),
        ({"ctas": "\u0663"}, "--ctas '\u0663' cannot be read: it takes an integer"),
        (
            {"ctas": "9" * 5000},
            f"--ctas '{'9' * 59}... cannot be read: "
            "it takes an integer from -9,223,372,036,854,775,807 to 9,223,372,036,854,775,807",
        ),
        (
            {"tile": "128,128," + "9" * 29},
            f"--tile '128,128,{'9' * 29}' cannot be read: "
            "it takes an integer from -9,223,372,036,854,775,807 to 9,223,372,036,854,775,807 for each of M,N,K",
        ),
        ({"policy": "fast"}, "--policy 'fast' cannot be read: it is serial or prefetch"),
        ({"target": "sm_90"}, "--target 'sm_90' cannot be read: it is sm_90a or sm_100a"),
        ({"pipe_depth": "-1"}, "pipeline.depth = -1 leaves no stage to load into\n  try: --pipe-depth 2"),
    ],
)
def test_unreadable_flags(flags: dict[str, str], message: str) -> None:
    assert refusals(**flags) == [message]


def test_flags_and_rules_all_at_once() -> None:
    messages = refusals(None, "dtype = 3", tile="64,24,3", dtype="f8", l2_group="x", name="int")
    assert [message.split("\n")[0] for message in messages] == [
        "TOML: dtype is no key of a spec",
        "--dtype 'f8' cannot be read: it is f16 or bf16",
        "--l2-group 'x' cannot be read: it takes an integer",
        "tile.m = 64 is no M of the MMA on sm_100a: it is 128",
        "tile.n = 24 is no N of the MMA on sm_100a: it is 16 to 256 in steps of 16",
        "tile.k = 3 is no whole number of swizzle atoms: it is 32, 64 or 128",
        "name = 'int' is a keyword of C or C++",
    ]


def test_unknown_preset() -> None:
    (message,) = refusals("step-6")
    assert message.startswith("--preset 'step-6' is unknown: it is step4, step5, step6,")
    assert message.endswith("\n  try: --preset step6")
    (message,) = refusals("zzzz")
    assert "try" not in message


# --- TOML -------------------------------------------------------------------------------------------


@given(SPECS)
def test_toml_round_trip(spec: Gemm) -> None:
    text = to_toml(spec)
    assert from_toml(text) == spec
    assert text.isascii()
    for key in KINDS:
        assert f"{key.split('.')[-1]} = " in text


def test_toml_of_step_6() -> None:
    text = to_toml(PRESETS["step6"].spec)
    assert text.startswith('target = "sm_100a"')
    assert "\n[pipeline]\ndepth = 2 " in text
    assert '\n# policy = "prefetch" ' in text
    assert "\npersistent = true " in text
    assert "\n# shape = [4096, 4096, 4096] " in text


def test_commented_fields_follow_an_edit() -> None:
    text = to_toml(Gemm())
    assert from_toml(text.replace('a = "f16"', 'a = "bf16"')).problem == Problem(DType.BF16, DType.BF16, DType.BF16)
    assert from_toml(text.replace("depth = 2", "depth = 1")).pipeline == Pipeline(1, Policy.SERIAL)


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[pipeline]\ndpeth = 2", "TOML: pipeline.dpeth is no key of a spec\n  try: pipeline.depth"),
        ("depth = 2", "TOML: depth is no key of a spec\n  try: pipeline.depth"),
        ("[tile]\nblock = 2\n", "TOML: tile.block is no key of a spec\n  try: tile.k"),
        ("zzzzzz = 2", "TOML: zzzzzz is no key of a spec"),
        ("[piplines]\ndepth = 2", "TOML: [piplines] is no table of a spec\n  try: [pipeline]"),
        ("[qqqqqq]", "TOML: [qqqqqq] is no table of a spec"),
        ("[tile]\nM = 128", "TOML: tile.M is no key of a spec\n  try: tile.m"),
        ("[Tile]\nm = 128", "TOML: [Tile] is no table of a spec\n  try: [tile]"),
        ("'' = 1", 'TOML: "" is no key of a spec'),
        ('"tile.m" = 128', 'TOML: "tile.m" is no key of a spec\n  try: tile.m'),
        (r"[tile]" + "\n" + r'"\u001b[31m\n" = 1', r'TOML: tile."\u001B[31m\u000A" is no key of a spec'),
        (r'["a\u202eb"]', r'TOML: ["a\u202Eb"] is no table of a spec'),
        ("tile = 128", "TOML: tile = 128 is an integer\n  it takes a table: [tile]"),
        ("[[tile]]\nn = 128", "TOML: tile = [{'n': 128}] is an array\n  it takes a table: [tile]"),
        ('[tile]\nn = "128"', "TOML: tile.n = '128' is a string\n  it takes an integer"),
        ("[tile]\nn = 128.0", "TOML: tile.n = 128.0 is a float\n  it takes an integer"),
        ("[tile]\nn = true", "TOML: tile.n = true is a boolean\n  it takes an integer"),
        ("[tile.n]\nx = 1", "TOML: tile.n = {'x': 1} is a table\n  it takes an integer"),
        (
            "[tile]\nn = 1979-05-27",
            "TOML: tile.n = datetime.date(1979, 5, 27) is a date or time\n  it takes an integer",
        ),
        ("[schedule]\npersistent = 1", "TOML: schedule.persistent = 1 is an integer\n  it takes a boolean"),
        ("name = 7", "TOML: name = 7 is an integer\n  it takes a string"),
        (
            '[pipeline]\npolicy = "fast"',
            'TOML: pipeline.policy = \'fast\' is unknown\n  it takes "serial" or "prefetch"',
        ),
        ("[pipeline]\npolicy = 1", 'TOML: pipeline.policy = 1 is an integer\n  it takes "serial" or "prefetch"'),
        (
            "[problem]\nshape = 5",
            "TOML: problem.shape = 5 is an integer\n  it takes an array of three integers [M, N, K]",
        ),
        (
            "[problem]\nshape = [1, 2, true]",
            "TOML: problem.shape = [1, 2, True] is an array\n  it takes an array of three integers [M, N, K]",
        ),
        (f"[tile]\nn = {'9' * 400}", "TOML: tile.n is an integer of 1,329 bits, which is out of every range"),
    ],
)
def test_toml_refusals(toml: str, message: str) -> None:
    assert refusals(None, toml) == [message]


@pytest.mark.parametrize(
    "toml", ["a =", "\x00", "a = 1\na = 2", "[" * 5000, f"a = {'[' * 5000}", f"n = {'9' * 5000}", 'name = "\ud800"']
)
def test_no_toml(toml: str) -> None:
    (message,) = refusals(None, toml)
    assert "is no TOML: " in message or "is not an identifier" in message or "is no key" in message
    assert len(message) < 400


def test_source_is_named() -> None:
    with pytest.raises(SpecError) as caught:
        from_toml("x = 1", "kernel.toml")
    assert str(caught.value) == "kernel.toml: x is no key of a spec"


TOML_VALUES = st.sampled_from(["1", "-1", "1.5", "true", '"f16"', '"x"', "[1, 2, 3]", "[]", "{}", "1979-05-27", "inf"])
TOML_KEYS = st.sampled_from([*KINDS, "tile", "x", "tile.x", "tile.m.x", '""', '"a b"'])


@given(st.dictionaries(TOML_KEYS, TOML_VALUES, max_size=4))
def test_toml_never_fails_otherwise(entries: dict[str, str]) -> None:
    text = "\n".join(f"{key} = {value}" for key, value in entries.items())
    with suppress(SpecError):
        assert check(from_toml(text)) == ()


def test_shape_is_baked_in() -> None:
    assert requested(None, None, {"shape": "4096,0,7"}).problem.shape == Shape(4096, 0, 7)
