# SPDX-License-Identifier: Apache-2.0
"""Tensor maps of a launch file. What a map does not say follows from its buffer."""

from __future__ import annotations

from collections.abc import Mapping

from tmagen.check.elements import ELEMENTS
from tmagen.check.spec import BufferSpec, MapSpec
from tmagen.check.table import Table
from tmagen.emu import TensorMap
from tmagen.emu.tensormap import DataType, Interleave, L2Promotion, OobFill, SwizzleMode
from tmagen.errors import Diagnostic
from tmagen.words import nearest

MAP_KEYS = (
    "buffer", "offset", "dtype", "dims", "strides", "box", "element_strides", "swizzle", "interleave",
    "l2_promotion", "oob_fill",
)  # fmt: skip
SWIZZLES = {
    "none": SwizzleMode.NONE,
    "32B": SwizzleMode.B32,
    "64B": SwizzleMode.B64,
    "128B": SwizzleMode.B128,
    "128B_ATOM_32B": SwizzleMode.B128_ATOM_32B,
    "128B_ATOM_32B_FLIP_8B": SwizzleMode.B128_ATOM_32B_FLIP_8B,
    "128B_ATOM_64B": SwizzleMode.B128_ATOM_64B,
}
INTERLEAVES = {"none": Interleave.NONE, "16B": Interleave.B16, "32B": Interleave.B32}
PROMOTIONS = {"none": L2Promotion.NONE, "64B": L2Promotion.B64, "128B": L2Promotion.B128, "256B": L2Promotion.B256}
FILLS = {"zeros": OobFill.NONE, "nan": OobFill.NAN_REQUEST_ZERO_FMA}
DATA_TYPES = {
    **{name: element.map_type for name, element in ELEMENTS.items() if element.map_type is not None},
    "f32_ftz": DataType.FLOAT32_FTZ,
    "tf32_ftz": DataType.TFLOAT32_FTZ,
}
_MAX_RANK = 5


def read_maps(top: Table, buffers: Mapping[str, BufferSpec], declared: set[str]) -> tuple[MapSpec, ...]:
    """The maps; those over a buffer that is itself wrong are left out, and so are their own faults."""
    found = []
    for name, table in top.tables("maps").items():
        spec = _read(name, table, buffers, declared)
        if spec is not None:
            found.append(spec)
    return tuple(found)


def _read(name: str, table: Table, buffers: Mapping[str, BufferSpec], declared: set[str]) -> MapSpec | None:
    table.only(*MAP_KEYS)
    known = table.need("buffer", "the name of a buffer")
    boxed = table.need("box", "what one copy moves, elements, innermost first, such as box = [64, 128]")
    named = table.text("buffer") if known else None
    if named is not None and named not in declared:
        table.wrong("buffer", f" = {named!r}: there is no such buffer", hint=nearest(named, declared))
    buffer = buffers.get(named) if named is not None else None
    if buffer is None or not boxed:
        return None
    before = len(table.problems)
    dims = table.integers("dims", range(1, _MAX_RANK + 1)) or buffer.shape[::-1]
    rank = len(dims)
    if rank > _MAX_RANK:
        table.wrong("dims", f": {buffer.name} has {rank} dimensions, a map {_MAX_RANK} at most")
        return None
    strides = table.integers("strides", [rank - 1]) if rank > 1 else ()
    if strides is None and "strides" not in table.value:
        if len(buffer.shape) == rank:
            strides = tuple(stride * buffer.element.bytes for stride in buffer.strides[-2::-1])
        else:
            message = f" is missing: dims has {rank} entries and {buffer.name} {len(buffer.shape)} dimensions"
            table.wrong("strides", message, "bytes from one to the next, of dimensions 1 and up")
    if buffer.strides[-1] != 1 and "dims" not in table.value:
        table.wrong("dims", f": dimension 0 of a map is contiguous, and {buffer.name}'s last has stride != 1")
    box = table.integers("box", [rank])
    steps = table.integers("element_strides", [rank]) or (1,) * rank
    own_type = buffer.element.map_type
    if own_type is None and "dtype" not in table.value:
        table.wrong("dtype", f" is missing: a map has no word for {buffer.element.name}")
    spec = MapSpec(
        name=name,
        buffer=buffer.name,
        offset=table.integer("offset", 0, most=max(buffer.span_bytes, 0)),
        data_type=table.word("dtype", DATA_TYPES, own_type or DataType.UINT8),
        dims=dims,
        strides=strides or (),
        box=box or (),
        element_strides=steps,
        swizzle=table.word("swizzle", SWIZZLES, SwizzleMode.NONE),
        interleave=table.word("interleave", INTERLEAVES, Interleave.NONE),
        l2_promotion=table.word("l2_promotion", PROMOTIONS, L2Promotion.NONE),
        oob_fill=table.word("oob_fill", FILLS, OobFill.NONE),
    )
    if len(table.problems) > before:
        return None
    # Addresses are multiples of the buffer's alignment, and nothing else of a map depends on them.
    for problem in tensor_map(spec, buffer.align).validate():
        table.problems.append(
            Diagnostic(f"{table.path}: {problem}", detail=("cuTensorMapEncodeTiled refuses the map",))
        )
    return spec if len(table.problems) == before else None


def tensor_map(spec: MapSpec, address: int) -> TensorMap:
    """The map over a buffer at `address`."""
    return TensorMap(
        data_type=spec.data_type,
        rank=len(spec.dims),
        address=address + spec.offset,
        dims=spec.dims,
        strides=spec.strides,
        box=spec.box,
        element_strides=spec.element_strides,
        interleave=spec.interleave,
        swizzle=spec.swizzle,
        l2_promotion=spec.l2_promotion,
        oob_fill=spec.oob_fill,
    )
