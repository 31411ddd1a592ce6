# SPDX-License-Identifier: Apache-2.0
"""What the host part of an emitted file does, against what the plan says, and against what a caller may expect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from tmagen.bind import BoundMap, bind
from tmagen.emit import emit
from tmagen.hostrun import Arguments, Device, HostProgram, LaunchCall, StreamKind, TensorMapFields, build
from tmagen.ir import DType, Gemm, Pipeline, Policy, Problem, Schedule, Shape, Tile
from tmagen.plan import Plan, plan
from tmagen.presets import PRESETS

SPECS = [
    *(PRESETS[name].spec for name in ("step4", "step6-bf16", "step6-f32out", "step6-wide", "step6-k128")),
    Gemm(problem=Problem(d=DType.BF16, shape=Shape(300, 203, 70)), tile=Tile(128, 48, 32), pipeline=Pipeline(5)),
    Gemm(tile=Tile(128, 208, 64), pipeline=Pipeline(1, Policy.SERIAL), schedule=Schedule(True, 3, 1)),
]
A, B, D = 0x10_0000_0010, 0x20_0000_0010, 0x30_0000_0010

TYPE_NAMES = {"f16": "FLOAT16", "bf16": "BFLOAT16", "f32": "FLOAT32"}
SIZES = {"uint32_t": 4, "int32_t": 4, "int64_t": 8, "uint64_t": 8}


def write(spec: Gemm, folder: Path) -> Path:
    path = folder / "kernel.cu"
    path.write_text(emit(plan(spec)))
    return path


def expected_map(bound: BoundMap) -> TensorMapFields:
    return TensorMapFields(
        address={"A": A, "B": B, "D": D}[bound.operand],
        data_type=TYPE_NAMES[bound.dtype],
        dims=bound.dims,
        strides=bound.strides,
        box=bound.box,
        element_strides=bound.element_strides,
        interleave="NONE",
        swizzle=f"{bound.swizzle_bytes}B",
        l2_promotion=f"L2_{bound.l2_promotion_bytes}B",
        oob_fill="NONE",
    )


def expected_structs(planned: Plan, values: dict[str, str | int]) -> list[bytes]:
    """The parameters that are no tensor maps, laid out as C lays structs out; padding at their ends is left off."""
    structs = []
    rest = [parameter for parameter in planned.launch.parameters if parameter.type != "CUtensorMap"]
    for _, members in groupby(rest, key=lambda parameter: parameter.name.partition(".")[0]):
        data = b""
        for member in members:
            size = 8 if member.type.endswith("*") else SIZES[member.type]
            value = {"a": A, "b": B, "d": D}.get(str(values[member.name]), values[member.name])
            assert isinstance(value, int)
            data += bytes(-len(data) % size) + value.to_bytes(size, "little")
        structs.append(data)
    return structs


def check(call: LaunchCall, program: HostProgram, planned: Plan, shape: Shape) -> None:
    bound = bind(planned, shape)
    assert bound is not None
    assert (call.grid, call.block, call.cluster) == (bound.grid, bound.block, bound.cluster)
    assert (call.dynamic_smem_bytes, call.error, call.attributes) == (bound.smem_bytes, "cudaSuccess", {})
    table = program.tables[call.kernel]
    encoded = {tensor_map.name: expected_map(tensor_map) for tensor_map in bound.tensor_maps}
    names = [name for name, value in bound.parameters if name == value]
    assert call.tensor_maps(table) == tuple(encoded.get(name) for name in names)
    structs = expected_structs(planned, dict(bound.parameters))
    others = [parameter for parameter in table.parameters if parameter.size != 128]
    assert [-(-len(data) // p.align) * p.align for data, p in zip(structs, others, strict=True)] == [
        p.size for p in others
    ]
    assert [call.params[p.offset :][: len(data)] for data, p in zip(structs, others, strict=True)] == structs


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: plan(spec).name)
def test_launches_what_the_plan_says(spec: Gemm, tmp_path: Path) -> None:
    planned, problem = plan(spec), spec.problem
    shapes = [Shape(129, 136, 72), Shape(4096, 4096, 4096), Shape(1, 1, 1), Shape(2000, 1000, 0), Shape(385, 3001, 65)]
    with build(write(spec, tmp_path)) as program, program.start() as host:
        assert program.elements == (problem.a, problem.b, problem.d)
        assert program.namespace == planned.name
        for shape in [problem.shape] if problem.shape else shapes:
            bound = bind(planned, shape)
            assert bound is not None
            lds = bound.leading_dims
            a, b = (A, B) if shape.k else (0, 0)
            outcome = host.launch(Arguments(a, b, D, shape.m, shape.n, shape.k, lds.a, lds.b, lds.d))
            assert outcome.result.ok, outcome.result
            (call,) = outcome.launches
            check(call, program, planned, shape)
            assert len(outcome.encodes) == len(bound.tensor_maps), "a map is encoded for each matrix that there is"


# ---- One host part, as its callers meet it.

GOOD = Arguments(a=A, b=B, d=D, m=300, n=200, k=72, lda=72, ldb=72, ldd=200)
B200 = Device()


@pytest.fixture(scope="module", params=[False, True], ids=["launch", "C symbol"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostProgram]:
    with build(write(PRESETS["step6"].spec, tmp_path_factory.mktemp("host")), extern_c=request.param) as built:
        yield built


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"m": -1}, "m = -1"),
        ({"n": -5}, "n = -5"),
        ({"k": -72}, "k = -72"),
        ({"m": 1 << 31}, "m = 2147483648"),
        ({"a": 0}, "a: "),
        ({"b": 0}, "b: "),
        ({"d": 0}, "d: "),
        ({"a": A + 8}, "a: "),
        ({"b": B + 2}, "b: "),
        ({"d": D + 4}, "d: "),
        ({"lda": 71}, "lda = 71"),
        ({"ldb": 64}, "ldb = 64"),
        ({"ldd": 199}, "ldd = 199"),
        ({"lda": 76}, "lda = 76"),
        ({"ldb": 73}, "ldb = 73"),
        ({"ldd": 204}, "ldd = 204"),
        ({"ldd": 1 << 40}, "ldd = 1099511627776"),
    ],
    ids=str,
)
def test_wrong_argument_is_named(program: HostProgram, change: dict[str, int], named: str) -> None:
    with program.start() as host:
        outcome = host.launch(replace(GOOD, **change))
        assert outcome.result.error == "cudaErrorInvalidValue"
        assert outcome.result.last_error.startswith(named)
        assert (outcome.launches, outcome.encodes) == ((), ()), "refused before anything is done"
        assert host.launch(GOOD).result.ok, "and the next call is served"


def test_nothing_to_do_is_success_whatever_the_pointers(program: HostProgram) -> None:
    with program.start() as host:
        for change in ({"m": 0}, {"n": 0}, {"m": 0, "n": 0, "k": 0}):
            outcome = host.launch(replace(GOOD, a=0, b=3, d=0, lda=-1, ldb=0, ldd=1, **change))
            assert outcome.result.ok
            assert (outcome.launches, outcome.encodes, outcome.attributes) == ((), (), ())


@pytest.mark.parametrize("device", [Device(9, 0), Device(10, 3), Device(12, 0)])
def test_other_devices_are_refused(program: HostProgram, device: Device) -> None:
    with program.start([device]) as host:
        outcome = host.launch(GOOD)
    assert outcome.result.error == "cudaErrorNoKernelImageForDevice"
    assert f"{device.major}" in outcome.result.last_error
    assert outcome.launches == ()


def test_too_little_shared_memory_is_refused(program: HostProgram) -> None:
    with program.start([Device(smem_optin_bytes=99_327)]) as host:
        outcome = host.launch(GOOD)
        assert outcome.result.error == "cudaErrorLaunchOutOfResources"
        assert "99327" in outcome.result.last_error
        assert "99328" in outcome.result.last_error


def test_second_gpu(program: HostProgram) -> None:
    """The shared-memory attribute belongs to a device: it is set on each, whichever comes first."""
    with program.start([Device(9, 0), B200, B200]) as host:
        for device in (2, 1, 2):
            outcome = host.launch(GOOD, device=device)
            assert outcome.result.ok, outcome.result
            assert outcome.result.device_after == device
            assert [call.device for call in outcome.launches] == [device]
        assert not host.launch(GOOD, device=0).result.ok


def test_threads_and_capture(program: HostProgram) -> None:
    with program.start([B200, B200]) as host:
        together = host.launch(GOOD, device=1, threads=16)
        assert all(result.ok for result in together.results)
        assert len({call.params for call in together.launches}) == 1
        assert len(together.launches) == 16
        for stream in (StreamKind.NON_BLOCKING, StreamKind.BLOCKING):
            captured = host.launch(GOOD, stream=stream, capture=True)
            assert captured.result.ok
            assert (captured.capture, captured.captured_kernels) == ("cudaSuccess", 1)


@pytest.mark.parametrize("stream", list(StreamKind))
def test_launches_on_the_stream_that_is_passed(program: HostProgram, stream: StreamKind) -> None:
    with program.start() as host:
        outcome = host.launch(GOOD, stream=stream)
    assert [call.stream for call in outcome.launches] == [outcome.stream]
    assert outcome.result.pending == "cudaSuccess"
