# SPDX-License-Identifier: Apache-2.0
"""Where a cubin puts its parameters, held against the PTX that it was made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu.test_parameters import SPECS
from tmagen.emit import emit
from tmagen.gpu.cubin import CubinParameters, cubin_parameters
from tmagen.gpu.errors import GpuError
from tmagen.hostrun import parameter_tables
from tmagen.plan import plan
from tmagen.toolchain import compile_cubin, compile_ptx, find_nvcc

PLAIN = """
struct Words { unsigned char bytes[100]; };
struct alignas(64) Map { unsigned char bytes[128]; };
extern "C" __global__ void plain(int* a, char b, Words words, double c) {
  *a = b + words.bytes[3] + static_cast<int>(c);
}
extern "C" __global__ void aligned(int b, const __grid_constant__ Map map, int* a) { *a = b + map.bytes[5]; }
extern "C" __global__ void nothing() {}
"""


@pytest.mark.parametrize("name", SPECS)
def test_places_are_those_of_the_ptx(name: str, tmp_path: Path) -> None:
    planned = plan(SPECS[name])
    source = tmp_path / "kernel.cu"
    source.write_text(emit(planned))
    arch, flags = planned.spec.target.value, ("-DTMAGEN_EXTERN_C",)
    nvcc = find_nvcc(arch=arch)
    kernel = planned.launch.kernel
    table = parameter_tables(compile_ptx(nvcc, source, arch=arch, flags=flags))[kernel]
    found = cubin_parameters(compile_cubin(nvcc, source, arch=arch, flags=flags).data, kernel)
    lead = found.places[0][0]
    assert [(offset - lead, size) for offset, size in found.places] == [(p.offset, p.size) for p in table.parameters]
    assert found.size == lead + table.size
    block = bytes(value % 251 for value in range(-(-table.size // 8) * 8))
    buffer = found.buffer(block)
    assert len(buffer) == found.size
    assert all(buffer[offset : offset + size] == block[offset - lead :][:size] for offset, size in found.places)
    with pytest.raises(GpuError, match="bytes of parameters"):
        found.buffer(block[:-16])


def test_other_kernels(tmp_path: Path) -> None:
    source = tmp_path / "plain.cu"
    source.write_text(PLAIN)
    cubin = compile_cubin(find_nvcc(arch="sm_90a"), source, arch="sm_90a").data
    assert cubin_parameters(cubin, "plain") == CubinParameters(((0, 8), (8, 1), (9, 100), (112, 8)), 120)
    aligned = cubin_parameters(cubin, "aligned")
    assert [size for _, size in aligned.places] == [4, 128, 8]
    assert cubin_parameters(cubin, "nothing") == CubinParameters((), 0)
    with pytest.raises(GpuError, match="no kernel elsewhere"):
        cubin_parameters(cubin, "elsewhere")
    with pytest.raises(GpuError, match="no cubin"):
        cubin_parameters(b"// PTX", "plain")
