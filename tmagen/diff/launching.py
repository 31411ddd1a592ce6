# SPDX-License-Identifier: Apache-2.0
"""A launch on given matrices, as the emulator takes it: of a plan, and of a kernel that TVM made."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from tmagen.bind import BoundLaunch, BoundMap, LeadingDims, bind
from tmagen.emu import Launch, TensorMap
from tmagen.emu.tensormap import DataType, Interleave, L2Promotion, OobFill, SwizzleMode
from tmagen.ir import Shape
from tmagen.plan import Plan
from tmagen.plan_types import Parameter
from tmagen.tirx import EncodedMap, TirxKernel

MAP_BYTES = 128
MAP_ALIGN = 64

_DATA_TYPES = {
    "f16": DataType.FLOAT16,
    "bf16": DataType.BFLOAT16,
    "f32": DataType.FLOAT32,
    "float16": DataType.FLOAT16,
    "bfloat16": DataType.BFLOAT16,
    "float32": DataType.FLOAT32,
}
_SWIZZLES = {0: SwizzleMode.NONE, 32: SwizzleMode.B32, 64: SwizzleMode.B64, 128: SwizzleMode.B128}
_PROMOTIONS = {0: L2Promotion.NONE, 64: L2Promotion.B64, 128: L2Promotion.B128, 256: L2Promotion.B256}
_FORMATS = {"uint32_t": "I", "int64_t": "q"}  # a pointer is 8 bytes


Addresses = Mapping[str, int]
"""Where A, B and D begin."""


def launch_of_plan(plan: Plan, kernel: str, shape: Shape, lds: LeadingDims, at: Addresses) -> Launch:
    """What the host part of a plan's file launches; M and N are not 0. `kernel` is the symbol in the PTX."""
    bound = bind(plan, shape, lds)
    assert bound is not None, "an empty problem launches nothing"
    maps = {bound_map.name: _of_bound(bound_map, at[bound_map.operand]) for bound_map in bound.tensor_maps}
    return Launch(
        kernel=kernel,
        grid=bound.grid,
        block=bound.block,
        cluster=bound.cluster,
        dynamic_smem_bytes=bound.smem_bytes,
        params=_pack(plan, bound, maps, at["D"]),
    )


def launch_of_tirx(kernel: TirxKernel, symbol: str, at: Addresses) -> Launch:
    """What TVM's host function launches; `symbol` is the kernel's in the PTX."""
    return Launch(
        kernel=symbol,
        grid=kernel.grid,
        block=kernel.block,
        dynamic_smem_bytes=kernel.dynamic_smem_bytes,
        params=b"".join(_of_encoded(fields, at[fields.buffer]) for fields in kernel.maps),
    )


def _of_bound(fields: BoundMap, address: int) -> bytes:
    return TensorMap(
        data_type=_DATA_TYPES[fields.dtype],
        rank=len(fields.dims),
        address=address,
        dims=fields.dims,
        strides=fields.strides,
        box=fields.box,
        element_strides=fields.element_strides,
        interleave=Interleave.NONE,
        swizzle=_SWIZZLES[fields.swizzle_bytes],
        l2_promotion=_PROMOTIONS[fields.l2_promotion_bytes],
        oob_fill=OobFill.NONE,
    ).encode()


def _of_encoded(fields: EncodedMap, address: int) -> bytes:
    return TensorMap(
        data_type=_DATA_TYPES[fields.dtype],
        rank=len(fields.dims),
        address=address + fields.offset_bytes,
        dims=fields.dims,
        strides=fields.strides,
        box=fields.box,
        element_strides=fields.element_strides,
        interleave=Interleave(fields.interleave),
        swizzle=SwizzleMode(fields.swizzle),
        l2_promotion=L2Promotion(fields.l2_promotion),
        oob_fill=OobFill(fields.oob_fill),
    ).encode()


def _pack(plan: Plan, bound: BoundLaunch, maps: dict[str, bytes], d: int) -> bytes:
    """The parameter block: maps, then structs, `problem.m_tiles` and its like, as C lays them out."""
    values = dict(bound.parameters)
    block = bytearray()
    structs: dict[str, list[Parameter]] = {}
    for parameter in plan.launch.parameters:
        name, dot, _ = parameter.name.partition(".")
        if dot:
            structs.setdefault(name, []).append(parameter)
            continue
        _align(block, MAP_ALIGN)
        block += maps.get(parameter.value, bytes(MAP_BYTES))  # with K = 0 the kernel gets maps that it never uses
    for members in structs.values():
        widest = max(_size(member) for member in members)
        _align(block, widest)
        for member in members:
            value = values[member.name]
            number = d if value == "d" else value
            assert isinstance(number, int), f"{member.name} = {value} has no number"
            _align(block, _size(member))
            block += struct.pack(f"<{_FORMATS.get(member.type, 'Q')}", number)
        _align(block, widest)
    return bytes(block)


def _size(parameter: Parameter) -> int:
    return struct.calcsize(f"<{_FORMATS.get(parameter.type, 'Q')}")


def _align(block: bytearray, to: int) -> None:
    block += bytes(-len(block) % to)
