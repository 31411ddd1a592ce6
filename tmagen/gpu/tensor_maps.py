# SPDX-License-Identifier: Apache-2.0
"""Tensor maps, encoded by the driver: through cuda.bindings where it is installed, else straight through libcuda."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

from tmagen.bind import BoundMap
from tmagen.gpu import driver
from tmagen.gpu.errors import DriverError

MAP_BYTES = 128
_MAP_ALIGN = 64

# Codes of the CUDA driver API: CUtensorMapDataType, CUtensorMapSwizzle by bytes, CUtensorMapL2promotion by bytes.
_DATA_TYPES = {"f16": 6, "f32": 7, "bf16": 9}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_L2_PROMOTIONS = {0: 0, 64: 1, 128: 2, 256: 3}
_NO_INTERLEAVE = 0
_FILL_ZEROS = 0


@dataclass(frozen=True, slots=True)
class EncodeArguments:
    """The arguments of cuTensorMapEncodeTiled, dimension 0 innermost."""

    data_type: int
    rank: int
    address: int
    dims: tuple[int, ...]  # elements
    strides: tuple[int, ...]  # bytes, of dimensions 1 and up
    box: tuple[int, ...]  # elements
    element_strides: tuple[int, ...]
    interleave: int
    swizzle: int
    l2_promotion: int
    oob_fill: int


Encoder = Callable[[EncodeArguments], bytes]
"""Makes the 128 bytes of a CUtensorMap. Raises DriverError."""


def encode_arguments(bound: BoundMap, address: int) -> EncodeArguments:
    """What the driver is asked for a map of a bound launch whose matrix lies at `address`."""
    return EncodeArguments(
        data_type=_DATA_TYPES[bound.dtype],
        rank=len(bound.dims),
        address=address,
        dims=bound.dims,
        strides=bound.strides,
        box=bound.box,
        element_strides=bound.element_strides,
        interleave=_NO_INTERLEAVE,
        swizzle=_SWIZZLES[bound.swizzle_bytes],
        l2_promotion=_L2_PROMOTIONS[bound.l2_promotion_bytes],
        oob_fill=_FILL_ZEROS,
    )


@lru_cache(maxsize=1)
def encoder() -> Encoder:
    """The encoder of this machine."""
    try:
        bindings: Any = import_module("cuda.bindings.driver")
    except ImportError:
        return encode_with_libcuda
    return lambda arguments: encode_with_bindings(bindings, arguments)


def encode_with_libcuda(arguments: EncodeArguments) -> bytes:
    """cuTensorMapEncodeTiled of libcuda. Raises DriverError."""
    room = ctypes.create_string_buffer(MAP_BYTES + _MAP_ALIGN)
    skip = -ctypes.addressof(room) % _MAP_ALIGN
    rank = arguments.rank
    driver.call(
        "cuTensorMapEncodeTiled",
        ctypes.c_void_p(ctypes.addressof(room) + skip),
        ctypes.c_int(arguments.data_type),
        ctypes.c_uint32(rank),
        ctypes.c_void_p(arguments.address),
        (ctypes.c_uint64 * rank)(*arguments.dims),
        (ctypes.c_uint64 * max(1, rank - 1))(*arguments.strides),
        (ctypes.c_uint32 * rank)(*arguments.box),
        (ctypes.c_uint32 * rank)(*arguments.element_strides),
        ctypes.c_int(arguments.interleave),
        ctypes.c_int(arguments.swizzle),
        ctypes.c_int(arguments.l2_promotion),
        ctypes.c_int(arguments.oob_fill),
    )
    return room.raw[skip : skip + MAP_BYTES]


def encode_with_bindings(bindings: Any, arguments: EncodeArguments) -> bytes:
    """The same through `cuda.bindings.driver`. Raises DriverError."""
    status, encoded = bindings.cuTensorMapEncodeTiled(
        bindings.CUtensorMapDataType(arguments.data_type),
        arguments.rank,
        arguments.address,
        [bindings.cuuint64_t(value) for value in arguments.dims],
        [bindings.cuuint64_t(value) for value in arguments.strides],
        [bindings.cuuint32_t(value) for value in arguments.box],
        [bindings.cuuint32_t(value) for value in arguments.element_strides],
        bindings.CUtensorMapInterleave(arguments.interleave),
        bindings.CUtensorMapSwizzle(arguments.swizzle),
        bindings.CUtensorMapL2promotion(arguments.l2_promotion),
        bindings.CUtensorMapFloatOOBfill(arguments.oob_fill),
    )
    if int(status) != 0:
        raise DriverError(f"cuTensorMapEncodeTiled failed: {status.name}")
    return ctypes.string_at(encoded.getPtr(), MAP_BYTES)
