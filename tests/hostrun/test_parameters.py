# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tmagen.hostrun import NotModelledError, parameter_tables

PTX = """\
.version 9.0
.target sm_100a
// .entry not_one(.param .u32 x)
.visible .entry _Z1a6Struct(
	.param .align 128 .b8 _Z1a_param_0[128], // a tensor map
	.param .u8 _Z1a_param_1,
	.param .u64 .ptr .global .align 1 _Z1a_param_2,
	.param .align 2 .b8 _Z1a_param_3[6],
	.param .f32 _Z1a_param_4
)
.reqntid 32, 4, 2
{
	ret;
}
.entry none()
{
	ret;
}
.entry bare
.maxntid 96
.explicitcluster
.reqnctapercluster 4, 2
{
	ret;
}
"""


def test_offsets_follow_size_and_alignment() -> None:
    tables = parameter_tables(PTX)
    assert list(tables) == ["_Z1a6Struct", "none", "bare"]
    table = tables["_Z1a6Struct"]
    assert [(p.offset, p.size, p.align) for p in table.parameters] == [
        (0, 128, 128),
        (128, 1, 1),
        (136, 8, 8),
        (144, 6, 2),
        (152, 4, 4),
    ]
    assert table.size == 156
    assert (tables["none"].parameters, tables["none"].size) == ((), 0)


def test_launch_bounds() -> None:
    assert {name: table.max_threads for name, table in parameter_tables(PTX).items()} == {
        "_Z1a6Struct": 256,
        "none": 1024,
        "bare": 96,
    }


def test_required_clusters() -> None:
    tables = parameter_tables(PTX)
    assert [tables[name].cluster for name in ("none", "bare")] == [(1, 1, 1), (4, 2, 1)]


def test_unknown_parameter_form_is_refused() -> None:
    with pytest.raises(NotModelledError, match=r"\.param \.v4 \.f32 x"):
        parameter_tables(".entry k(.param .v4 .f32 x)\n{\n}\n")
