# SPDX-License-Identifier: Apache-2.0
"""What a planned kernel is launched with is, byte for byte, what its own host part launches it with.

The host part runs against the stand-in runtime, which records launches; the encoder here writes tensor maps in the form
that this runtime writes.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tmagen.bind import bind
from tmagen.emit import emit
from tmagen.gpu.parameters import parameter_block
from tmagen.gpu.tensor_maps import EncodeArguments
from tmagen.hostrun import Arguments, HostSession, build
from tmagen.ir import DType, Gemm, Problem, Schedule, Shape, Target, Tile
from tmagen.plan import Plan, plan
from tmagen.verify.shapes import default_leading_dims

ADDRESSES = {"A": 0x7_0000_1010, "B": 0x7_4000_1030, "D": 0x7_8000_1050}
SPECS = {
    "persistent": Gemm(target=Target.SM_90A, schedule=Schedule(persistent=True)),
    "f32": Gemm(Problem(DType.BF16, DType.BF16, DType.F32), Tile(64, 40, 32), target=Target.SM_90A),
    "static": Gemm(Problem(shape=Shape(300, 264, 200)), target=Target.SM_90A),
    "sm_100a": Gemm(Problem(DType.BF16, DType.BF16, DType.BF16), Tile(128, 256, 64)),
}
SHAPES = (Shape(256, 512, 128), Shape(129, 137, 71), Shape(1, 1, 1), Shape(300, 264, 0), Shape(5000, 3, 4104))


def encode(arguments: EncodeArguments) -> bytes:
    def padded(values: tuple[int, ...], count: int) -> list[int]:
        return [*values, *[0] * (count - len(values))]

    return struct.pack(
        "<IBBBBQ5Q4Q5H5BBBB22s",
        *(0x50414D54, 1, arguments.data_type, arguments.rank, arguments.interleave, arguments.address),
        *padded(arguments.dims, 5),
        *padded(arguments.strides, 4),
        *padded(arguments.box, 5),
        *padded(arguments.element_strides, 5),
        *(arguments.swizzle, arguments.l2_promotion, arguments.oob_fill, b""),
    )


def check(planned: Plan, session: HostSession, shape: Shape) -> None:
    problem = planned.spec.problem
    lds = default_leading_dims(shape, (problem.a, problem.b, problem.d))
    a, b = (ADDRESSES["A"], ADDRESSES["B"]) if shape.k else (0, 0)
    outcome = session.launch(Arguments(a, b, ADDRESSES["D"], shape.m, shape.n, shape.k, lds.a, lds.b, lds.d))
    (call,) = outcome.launches
    bound = bind(planned, shape, lds)
    assert bound is not None
    assert (bound.grid, bound.block, bound.smem_bytes) == (call.grid, call.block, call.dynamic_smem_bytes)
    block = parameter_block(planned, bound, {"A": a, "B": b, "D": ADDRESSES["D"]}, encode)
    assert len(block) == len(call.params)
    # What a struct ends with for the sake of its alignment is anything at all on the host's side.
    used = len(block) - (4 if planned.epilogue.ragged else 0)
    assert block[:used] == call.params[:used]


@pytest.mark.parametrize("name", SPECS)
def test_parameters_are_those_of_the_host_part(name: str, tmp_path: Path) -> None:
    planned = plan(SPECS[name])
    source = tmp_path / "kernel.cu"
    source.write_text(emit(planned))
    static = planned.spec.problem.shape
    with build(source, target=planned.spec.target) as program, program.start() as session:
        for shape in SHAPES if static is None else (static,):
            check(planned, session, shape)
