# SPDX-License-Identifier: Apache-2.0
"""Reductions of shared memory into global memory, and into shared memory of the cluster (PTX ISA,
"cp.reduce.async.bulk", "cp.reduce.async.bulk.tensor").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tmagen.emu import tma
from tmagen.emu.errors import NotJudged
from tmagen.emu.memory import Bytes, GlobalMemory
from tmagen.emu.tensormap import DataType, TensorMap

Array = npt.NDArray[Any]
DTYPES: dict[str, Any] = {
    "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "b32": np.uint32, "b64": np.uint64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
_MAP_TYPES = {
    DataType.UINT32: "u32", DataType.INT32: "s32", DataType.UINT64: "u64", DataType.INT64: "s64",
    DataType.FLOAT16: "f16", DataType.BFLOAT16: "bf16", DataType.FLOAT32: "f32", DataType.FLOAT64: "f64",
    DataType.FLOAT32_FTZ: "f32",
}  # fmt: skip
_ORDERED = ("u32", "s32", "u64", "s64", "f16", "bf16")
ALLOWED = {
    "add": ("u32", "s32", "u64", "f16", "bf16", "f32", "f64"),
    "min": _ORDERED, "max": _ORDERED, "inc": ("u32",), "dec": ("u32",),
    "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"),
}  # fmt: skip
"""Element types of each operation on global memory (PTX ISA, "cp.reduce.async.bulk")."""
_ON_SHARED = ("u32", "s32")
ALLOWED_ON_SHARED = {
    "add": (*_ON_SHARED, "u64"), "min": _ON_SHARED, "max": _ON_SHARED, "inc": ("u32",), "dec": ("u32",),
    "and": ("b32",), "or": ("b32",), "xor": ("b32",),
}  # fmt: skip
"""The same of shared memory of the cluster."""


_NAN = {np.dtype(np.float16): 0x7FFF, np.dtype(ml_dtypes.bfloat16): 0x7FFF, np.dtype(np.float32): 0x7FFFFFFF}
"""The NaN that results are, of any operand; float64 keeps an operand's, as NumPy does."""


def _canonical(values: Array) -> Array:
    """NaN as hardware writes it."""
    pattern = _NAN.get(values.dtype)
    nan = values != values
    if pattern is not None and nan.any():
        values = np.array(values)
        values.view(f"u{values.itemsize}")[nan] = pattern
    return values


def _add(old: Array, new: Array) -> Array:
    """To nearest even, subnormals kept: the ISA has .f32 flush them, an H200 does not."""
    if old.dtype.itemsize == 2 and old.dtype.kind not in "ui":
        # Two roundings are one here: a float32 has more than twice the bits of either type.
        return _canonical((old.astype(np.float32) + new.astype(np.float32)).astype(old.dtype))
    return _canonical(old + new)


def _flushed(values: Array) -> Array:
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), values), values)


def _add_flushed(old: Array, new: Array) -> Array:
    """A sum by a map of type FLOAT32_FTZ: subnormal operands and results become zeros of their sign."""
    return _flushed(_canonical(_flushed(old) + _flushed(new)))


def _ordered(largest: bool) -> Callable[[Array, Array], Array]:
    """min or max; of floating-point types a NaN gives way to a number, and -0 is below +0."""

    def pick(old: Array, new: Array) -> Array:
        if old.dtype.kind in "ui":
            return np.maximum(old, new) if largest else np.minimum(old, new)
        x, y = old.astype(np.float32), new.astype(np.float32)
        first = np.where(x == y, np.signbit(x) != largest, x > y if largest else x < y)
        first = np.where(np.isnan(x), False, np.where(np.isnan(y), True, first))
        return _canonical(np.where(first, old, new))

    return pick


_COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "add": _add,
    "add of ftz": _add_flushed,
    "min": _ordered(False),
    "max": _ordered(True),
    "inc": lambda old, new: np.where(old >= new, 0, old + 1),
    "dec": lambda old, new: np.where((old == 0) | (old > new), new, old - 1),
    "and": lambda old, new: old & new,
    "or": lambda old, new: old | new,
    "xor": lambda old, new: old ^ new,
}


@np.errstate(over="ignore", invalid="ignore")
def combine(name: str, old: Array, new: Array) -> None:
    """Reduce `new` into `old`, in place."""
    old[...] = _COMBINE[name](old, new).astype(old.dtype)


def box(tmap: TensorMap, memory: GlobalMemory, smem: Bytes, src: int, coords: tuple[int, ...], name: str) -> None:
    """Reduce the box at shared address `src` into `coords` of the tensor. What is past an upper edge is dropped, but
    for the rest of a 16-byte chunk, as by a store.
    """
    tma.check(tmap, smem, src, coords, "reduction")
    tma.check_target(tmap, coords, "reduction")
    kind = _MAP_TYPES.get(tmap.data_type)
    bits = name in ("and", "or", "xor")
    if kind is None or (not bits and kind not in ALLOWED[name]) or (bits and kind[0] not in "us"):
        raise NotJudged(f"TMA reduction .{name} of element type {tmap.data_type.name}")
    view = tma.global_view(tmap, memory, coords, storing=True)
    if view is None:
        return
    base, units = tma.shared_units(tmap, src)
    window = smem[base:].view(np.complex128 if tmap.pattern.unit == 16 else np.uint64)
    tile = window[units].view(DTYPES[kind]).reshape(tmap.counts[::-1])
    target = view.view(DTYPES[kind])
    if tmap.data_type is DataType.FLOAT32_FTZ:
        name = "add of ftz"
    combine(name, target, tile[tuple(slice(0, n) for n in target.shape)])


def span(memory: GlobalMemory, smem: Bytes, dst: int, src: int, nbytes: int, name: str, kind: str) -> None:
    """Reduce contiguous bytes of shared memory into global memory."""
    if nbytes:
        combine(name, memory.view(dst, nbytes).view(DTYPES[kind]), smem[src : src + nbytes].view(DTYPES[kind]))
