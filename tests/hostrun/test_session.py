# SPDX-License-Identifier: Apache-2.0
"""A host part that does many things, right and wrong, seen through the record."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tmagen.hostrun import (
    Arguments,
    Device,
    HostCrashError,
    HostProgram,
    NotModelledError,
    Parameter,
    StreamKind,
    TensorMapFields,
    build,
)
from tmagen.hostrun import session as session_module
from tmagen.ir import DType

SAMPLE = Path(__file__).parent / "sample.cu"
ARGUMENTS = Arguments(a=0x1000, b=0x7FFF00001230, d=0x2000, m=0, n=200, k=64, lda=64, ldb=64, ldd=200)
B200 = Device()


@pytest.fixture(scope="module")
def program() -> Iterator[HostProgram]:
    with build(SAMPLE) as built:
        yield built


def told(m: int) -> Arguments:
    return replace(ARGUMENTS, m=m)


def test_what_the_file_says_about_itself(program: HostProgram) -> None:
    assert program.namespace == "sample"
    assert program.elements == (DType.F16, DType.BF16, DType.F32)
    assert program.static_mnk == (None, 0, 4096)
    assert ".target sm_100a" in program.ptx
    assert str(SAMPLE) in program.ptx, "the file is included as it stands, and .loc points into it"
    assert [kernel.name for kernel in program.cubin.kernels] == list(program.tables)


def test_launch_record(program: HostProgram) -> None:
    with program.start() as host:
        outcome = host.launch(told(0))
    assert outcome.result.ok
    assert (outcome.result.pending, outcome.result.device_after) == ("cudaSuccess", 0)
    (call,) = outcome.launches
    assert (call.grid, call.block, call.cluster) == ((3, 2, 1), (64, 1, 1), (1, 1, 1))
    assert (call.dynamic_smem_bytes, call.device, call.error) == (1024, 0, "cudaSuccess")
    assert call.stream == outcome.stream
    # char, then a struct of alignment 8 with 6 bytes of padding inside, then an int: C layout rules.
    (table,) = program.tables.values()
    assert [(p.offset, p.size) for p in table.parameters] == [(0, 128), (128, 1), (136, 16), (152, 4)]
    assert table.max_threads == 64
    assert len(call.params) == table.size == 156
    first, second = struct.unpack_from("<h6xq", call.params, 136)
    assert (call.params[128:129], first, second) == (b"x", -2, 1 << 40)
    assert struct.unpack_from("<i", call.params, 152) == (-1,)
    assert call.scalars(table) == (ord("x"), -1)


def test_tensor_map_bytes(program: HostProgram) -> None:
    with program.start() as host:
        outcome = host.launch(told(0))
    (encode,), (call,) = outcome.encodes, outcome.launches
    expected = TensorMapFields(
        address=ARGUMENTS.b,
        data_type="BFLOAT16",
        dims=(64, 200, 7),
        strides=(128, 1 << 33),
        box=(32, 128, 1),
        element_strides=(1, 2, 1),
        interleave="NONE",
        swizzle="64B",
        l2_promotion="L2_256B",
        oob_fill="NAN_REQUEST_ZERO_FMA",
    )
    assert encode.accepted
    assert encode.map == expected
    (table,) = program.tables.values()
    assert call.tensor_maps(table) == (expected,)
    # The same bytes by offset: magic, version, type, rank, interleave, address, dims, strides, box, steps, modes.
    data = call.params[:128]
    assert data[:8] == b"TMAP" + bytes([1, 9, 3, 0])
    assert int.from_bytes(data[8:16], "little") == ARGUMENTS.b
    assert struct.unpack_from("<5Q", data, 16) == (64, 200, 7, 0, 0)
    assert struct.unpack_from("<4Q", data, 56) == (128, 1 << 33, 0, 0)
    assert struct.unpack_from("<5H", data, 88) == (32, 128, 1, 0, 0)
    assert data[98:103] == bytes([1, 2, 1, 0, 0])
    assert data[103:106] == bytes([2, 3, 1])
    assert data[106:] == bytes(22)


def test_refused_encode(program: HostProgram) -> None:
    with program.start() as host:
        outcome = host.launch(replace(ARGUMENTS, b=ARGUMENTS.b + 8))
    assert outcome.result.error == "cudaErrorInvalidValue"
    assert outcome.result.last_error == f'b "{ARGUMENTS.b + 8:#x}": not accepted'
    (encode,) = outcome.encodes
    assert not encode.accepted
    assert encode.map.address == ARGUMENTS.b + 8
    assert outcome.launches == ()


def test_extended_launch_attributes_are_kept(program: HostProgram) -> None:
    with program.start() as host:
        outcome = host.launch(told(10))
    (call,) = outcome.launches
    assert call.error == "cudaSuccess"
    assert (call.grid, call.cluster, call.dynamic_smem_bytes) == ((8, 2, 1), (4, 2, 1), 65536)
    assert call.attributes == {"programmatic_stream_serialization": 1}
    (attribute,) = outcome.attributes
    assert (attribute.attribute, attribute.value, attribute.error) == (8, 65536, "cudaSuccess")


def test_attribute_belongs_to_one_device(program: HostProgram) -> None:
    with program.start([B200, B200]) as host:
        assert host.launch(told(11), device=1).result.error == "cudaErrorInvalidValue"
        assert host.launch(told(10), device=1).result.ok
        assert host.launch(told(11), device=1).result.ok
        assert host.launch(told(11), device=0).result.error == "cudaErrorInvalidValue"


def test_small_shared_memory_and_another_architecture(program: HostProgram) -> None:
    with program.start([Device(smem_optin_bytes=65535), Device(9, 0), Device(10, 3)]) as host:
        assert host.launch(told(10), device=0).attributes[0].error == "cudaErrorInvalidValue"
        # sm_100a code runs on compute capability 10.0 and on nothing else.
        assert host.launch(told(0), device=1).result.error == "cudaErrorNoKernelImageForDevice"
        assert host.launch(told(0), device=2).result.error == "cudaErrorNoKernelImageForDevice"


def test_error_that_launch_does_not_report_is_seen(program: HostProgram) -> None:
    with program.start() as host:
        outcome = host.launch(told(5))
    assert outcome.result.ok
    assert outcome.result.pending == "cudaErrorInvalidValue"
    assert [call.error for call in outcome.launches] == ["cudaErrorInvalidValue"], "128 threads of a bound of 64"


def test_wrong_stream_and_moved_device_are_seen(program: HostProgram) -> None:
    with program.start([B200, B200]) as host:
        outcome = host.launch(told(6))
        assert outcome.launches[0].stream != outcome.stream
        assert host.launch(told(7)).result.device_after == 1


def test_streams_differ_from_call_to_call(program: HostProgram) -> None:
    with program.start() as host:
        streams = [host.launch(told(0), stream=StreamKind.BLOCKING).stream for _ in range(3)]
        null = host.launch(told(0), stream=StreamKind.NULL)
    assert len(set(streams)) == 3
    assert null.stream == null.launches[0].stream == 0


def test_capture(program: HostProgram) -> None:
    with program.start() as host:
        whole = host.launch(told(0), capture=True)
        broken = host.launch(told(9), capture=True)
        again = host.launch(told(0), capture=True)
    assert (whole.capture, whole.captured_kernels) == ("cudaSuccess", 1)
    assert (broken.capture, broken.captured_kernels) == ("cudaErrorStreamCaptureInvalidated", 0)
    assert broken.result.error == "cudaErrorStreamCaptureInvalidated"
    assert (again.capture, again.captured_kernels) == ("cudaSuccess", 1)


def test_threads(program: HostProgram) -> None:
    with program.start() as host:
        outcome = host.launch(told(0), threads=8)
    assert [result.ok for result in outcome.results] == [True] * 8
    assert len(outcome.launches) == len(outcome.encodes) == 8
    assert len({call.params for call in outcome.launches}) == 1


def test_what_the_host_part_prints_does_not_disturb(program: HostProgram) -> None:
    with program.start() as host:
        assert host.launch(told(3)).result.ok
        assert host.launch(told(0)).result.ok


def test_crash_is_told(program: HostProgram) -> None:
    with program.start() as host, pytest.raises(HostCrashError, match="SIGABRT") as raised:
        host.launch(told(1))
    assert raised.value.exit_code == 1
    with program.start() as host, pytest.raises(HostCrashError, match="exit status 7"):
        host.launch(told(2))


def test_hang_is_told(program: HostProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    with program.start() as host:
        monkeypatch.setattr(session_module, "_PATIENCE_SECONDS", 0.2)
        with pytest.raises(HostCrashError, match="has not returned"):
            host.launch(told(8))


def test_unknown_question_is_not_answered(program: HostProgram) -> None:
    with program.start() as host, pytest.raises(NotModelledError, match="device attribute 21") as raised:
        host.launch(told(4))
    assert raised.value.exit_code == 2


def test_parameter_names_come_from_ptx(program: HostProgram) -> None:
    (table,) = program.tables.values()
    assert table.parameters[1] == Parameter(f"{table.kernel}_param_1", 128, 1, 1)
