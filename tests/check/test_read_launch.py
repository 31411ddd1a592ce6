# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from struct import pack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.check.kernels import add_launch
from tmagen.check import from_mapping, from_toml
from tmagen.check.spec import MapValue, Pointer, Raw, Struct
from tmagen.errors import SpecError

GOOD = """
grid = [4, 2]
block = 128
params = [{ map = "m" }, { pointer = "A", offset = 16 }, { struct = [{ s32 = -1 }, { f64 = 0.5 }] }, { bytes = "00ff" }]
expect = ["A == old(A)", { that = "sum(A) ~= 0", rtol = 0.5, atol = 1 }]

[buffers.A]
dtype = "bf16"
shape = [6, 64]
ld = 72
fill = { integers = [-2, 2], seed = 3 }

[maps.m]
buffer = "A"
box = [32, 2]
swizzle = "64B"
oob_fill = "nan"
"""


def test_a_launch_file() -> None:
    spec = from_toml(GOOD)
    assert (spec.grid, spec.block, spec.cluster) == ((4, 2, 1), (128, 1, 1), None)
    (buffer,) = spec.buffers
    assert (buffer.shape, buffer.strides, buffer.span_bytes) == ((6, 64), (72, 1), (5 * 72 + 64) * 2)
    (one,) = spec.maps
    assert (one.dims, one.strides, one.box, one.element_strides) == ((64, 6), (144,), (32, 2), (1, 1))
    mapped, pointer, struct, raw = spec.params
    assert (mapped, pointer) == (MapValue("m"), Pointer("A", 16))
    assert isinstance(struct, Struct)
    assert struct.members == (Raw(b"\xff" * 4, 4, "s32 (4 bytes)"), Raw(pack("<d", 0.5), 8, "f64 (8 bytes)"))
    assert isinstance(raw, Raw)
    assert raw.data == b"\x00\xff"
    assert [(expect.that.exact, expect.rtol, expect.atol) for expect in spec.expects] == [
        (True, None, None),
        (False, 0.5, 1.0),
    ]


BAD: list[tuple[str, str, str]] = [
    ("grid = [4, 2]", "grd = 4", "grd is no key of a launch file"),
    ("grid = [4, 2]", "", "grid is missing"),
    ("grid = [4, 2]", "grid = [0, 2]", "grid = [0, 2] is out of range"),
    ("grid = [4, 2]", "grid = [1, 65536]", "at most 2,147,483,647 CTAs in x, 65,535 in y and 65,535 in z"),
    ("grid = [4, 2]", "grid = [1, 1, 65536]", "grid = [1, 1, 65536] is out of range"),
    ("grid = [4, 2]", "grid = [2147483648]", "grid = [2147483648] is out of range"),
    ("grid = [4, 2]", "grid = [65535, 65535]", "is 4,294,836,225 CTAs: at most 16,777,216 are emulated"),
    ("grid = [4, 2]", 'grid = "4"', "grid = '4' is a string; it takes an array of integers"),
    ("grid = [4, 2]", "grid = [true, 1]", "it takes an array of integers"),
    ("block = 128", "block = [1, 2, 3, 4]", "block has 4 integers; it takes 1, 2 or 3"),
    ('dtype = "bf16"', 'dtype = "bf61"', "try: bf16"),
    ('dtype = "bf16"', "", "buffers.A.dtype is missing"),
    ("shape = [6, 64]", "shape = [6, -64]", "buffers.A.shape = [6, -64] is out of range"),
    ("shape = [6, 64]", "shape = []", "buffers.A.shape has 0 integers"),
    ("ld = 72", "ld = 60", "buffers.A.ld = 60 is shorter than a row of 64 elements"),
    ("ld = 72", "strides = [1, 1]", "overlap"),
    ("ld = 72", "ld = 72\nstrides = [72, 1]", "it takes one of them"),
    ("ld = 72", "lda = 72", "try: ld"),
    ("ld = 72", "align = 24", "no power of two"),
    ("fill = { integers = [-2, 2], seed = 3 }", 'fill = "iotta"', "try: iota"),
    ("fill = { integers = [-2, 2], seed = 3 }", "fill = {}", "buffers.A.fill says nothing"),
    ("integers = [-2, 2]", "integers = [2, -2]", "the lower bound comes first"),
    ("integers = [-2, 2]", "integers = [2]", "integers has 1 integers"),
    ('{ map = "m" }', '{ map = "mm" }', "params[0].map = 'mm': there is no such map"),
    ('pointer = "A"', 'pointer = "B"', "params[1].pointer = 'B': there is no such buffer"),
    ('pointer = "A"', "pointer = 5", "params[1].pointer = 5 is an integer; it takes a string"),
    ("s32 = -1", "s32 = 3000000000", "params[2].struct[0].s32 = 3000000000 is out of range"),
    ("s32 = -1", "s32 = 1.5", "s32 = 1.5 is a float; it takes an integer"),
    ("s32 = -1", "u32 = -1", "u32 = -1 is out of range"),
    ("s32 = -1", "i32 = -1", "params[2].struct[0].i32 is no kind of parameter"),
    ("s32 = -1", "s32 = -1, u8 = 1", "says s32 and u8"),
    ("f64 = 0.5", 'f64 = "x"', "f64 = 'x' is a string; it takes a number"),
    ('bytes = "00ff"', 'bytes = "0ff"', "no text of hexadecimal digits"),
    ('{ bytes = "00ff" }', "7", "params[3] is no table"),
    ("A == old(A)", "A == old(A", "expected ')'"),
    ("A == old(A)", "A == B", "there is no buffer B"),
    ("A == old(A)", "A == A @ A", "64 columns meet 6 rows"),
    ("A == old(A)", "A == A.T", "the left side has shape [6, 64], the right side [64, 6]"),
    ("rtol = 0.5", "rtol = -1", "rtol = -1 is out of range"),
    ("sum(A) ~= 0", "sum(A) == 0", "== is exact and takes no tolerance"),
    ('that = "sum(A) ~= 0", ', "", "expect[1].that is missing"),
    ("grid = [4, 2]", "grid = [4, 2]\nregisters = 300", "registers = 300 is out of range: it takes 1 to 255"),
    ("grid = [4, 2]", "grid = [4, 2]\nregisters = true", "registers = true is a boolean; it takes an integer"),
    (
        "grid = [4, 2]",
        "grid = [4, 2]\nprogrammatic_dependent_launch = 1",
        "programmatic_dependent_launch = 1 is an integer; it takes true, false or a table",
    ),
    (
        "grid = [4, 2]",
        'grid = [4, 2]\nprogrammatic_dependent_launch = { writes = ["a"] }',
        "programmatic_dependent_launch.writes: there is no 'a'",
    ),
    (
        "grid = [4, 2]",
        'grid = [4, 2]\nprogrammatic_dependent_launch = { reads = "A" }',
        "programmatic_dependent_launch.reads = 'A' is a string; it takes an array of names of buffers",
    ),
    (
        "grid = [4, 2]",
        "grid = [4, 2]\nprogrammatic_dependent_launch = { write = [] }",
        "programmatic_dependent_launch.write is no key of programmatic_dependent_launch",
    ),
    ("box = [32, 2]", "", "maps.m.box is missing"),
    ("box = [32, 2]", "box = [32]", "maps.m.box has 1 integers; it takes 2"),
    ("box = [32, 2]", "box = [64, 2]", "wider than the 64 bytes of swizzle B64"),
    ("box = [32, 2]", "box = [33, 2]", "not a multiple of 16 bytes"),
    ("ld = 72", "ld = 66", "maps.m: stride 132 of dimension 1 is not a multiple of 16 bytes"),
    ('swizzle = "64B"', 'swizzle = "64"', "maps.m.swizzle = '64' is unknown"),
    ('buffer = "A"', 'buffer = "a"', "maps.m.buffer = 'a': there is no such buffer"),
    ('buffer = "A"', 'buffer = "A"\nrank = 2', "maps.m.rank is no key of maps.m"),
    ("[buffers.A]", '[buffers."A B"]', "a buffer's name is letters, digits and _"),
    ("[buffers.A]", "[buffers]\nA = 3\n[buffers.C]", "buffers.A = 3 is an integer; it takes a table"),
    ("grid = [4, 2]", "grid = = 4", "is no TOML"),
    ("grid = [4, 2]", r"grid = [4, 2]" + '\n"\\u001b\\nb" = 1', r'"\u001B\u000Ab" is no key of a launch file'),
    ("ld = 72", "'' = 72", 'buffers.A."" is no key of buffers.A'),
    ("s32 = -1", r'"s\n32" = -1', r'params[2].struct[0]."s\u000A32" is no kind of parameter'),
    ("[buffers.A]", r'[buffers."A\n"]', r'buffers."A\u000A": a buffer'),
    ("[buffers.A]", "[buffers]\n'A B' = 3\n[buffers.C]", 'buffers."A B" = 3 is an integer; it takes a table'),
]


@pytest.mark.parametrize(("old", "new", "message"), BAD)
def test_a_mistake_is_named(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(SpecError) as raised:
        from_toml(GOOD.replace(old, new), "l.toml")
    report = raised.value.report()
    assert message in report
    assert all("l.toml" in diagnostic.message for diagnostic in raised.value.diagnostics)


def test_every_mistake_is_named_at_once() -> None:
    text = GOOD.replace("bf16", "fb16").replace("grid = [4, 2]", "grid = 0").replace("s32 = -1", "s32 = 1e9")
    with pytest.raises(SpecError) as raised:
        from_toml(text)
    assert len(raised.value.diagnostics) == 3


def test_a_right_side_without_contents() -> None:
    with pytest.raises(SpecError, match="c holds nothing before the launch"):
        from_mapping(add_launch(expect="a + b == c"))
    from_mapping(add_launch(expect="a == new(c) - b"))


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
PLACES = ("grid", "block", "cluster", "dynamic_smem_bytes", "buffers", "maps", "params", "expect", "kernel")


def refusal(document: dict[str, Any]) -> str:
    """What is wrong with a document, or what would be said if something were."""
    try:
        from_mapping(document)
    except SpecError as error:
        return error.report()
    return "error: launch: nothing"


@given(st.dictionaries(st.sampled_from(PLACES), anything, max_size=4))
def test_any_document_is_read_or_refused(document: dict[str, Any]) -> None:
    assert refusal({**add_launch(), **document}).startswith("error: launch: ")


@given(anything, st.sampled_from(("dtype", "shape", "ld", "strides", "fill", "align", "writable")))
def test_any_value_of_a_buffers_key(value: Any, key: str) -> None:
    launch = add_launch()
    launch["buffers"]["a"][key] = value
    assert refusal(launch).startswith("error: launch: ")
