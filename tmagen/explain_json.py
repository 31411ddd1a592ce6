# SPDX-License-Identifier: Apache-2.0
"""A plan as JSON: complete enough to encode the tensor maps and launch from, once a shape is known."""

from __future__ import annotations

from dataclasses import asdict, fields, is_dataclass
from enum import Enum
from typing import Any

from tmagen.bind import BoundLaunch, bind
from tmagen.budget import round_up
from tmagen.descriptors import Descriptor
from tmagen.emit_text import MAP_TYPES, swizzle_name
from tmagen.explain import VARIABLES, edge_variables, waves_of
from tmagen.ir import DType, Shape
from tmagen.pipeline_table import k_loop
from tmagen.plan import Plan
from tmagen.spec import to_command

PARAMETER_LAYOUT = {
    "CUtensorMap": (128, 64),
    "uint16_t*": (8, 8),
    "uint32_t*": (8, 8),
    "int64_t": (8, 8),
    "uint32_t": (4, 4),
}
"""Size and alignment of a parameter's type in the parameter buffer, bytes."""

FORMAT = 1
"""Goes up when a key changes its meaning or goes away; new keys may come at any time."""


def plain(value: Any) -> Any:
    """``value`` as what JSON has: enums by their words, dataclasses as objects, tuples as arrays."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [plain(member) for member in value]
    return value


def document_of(plan: Plan, shape: Shape | None = None, k_tiles: int | None = None) -> dict[str, Any]:
    """Everything about ``plan``. ``dims_are`` says whether sizes are numbers or, without a shape, expressions.

    Raises :class:`tmagen.errors.SpecError` for a shape other than one that is baked in.
    """
    bound = None if shape is None else bind(plan, shape)
    document = {
        "format": FORMAT,
        "name": plan.name,
        "command": to_command(plan.spec),
        "spec": plain(plan.spec),
        "target": {
            "name": plan.arch.target.value,
            "compute_capability": list(plan.arch.compute_capability),
            "nvcc": ["-gencode", f"arch={plan.arch.nvcc_arch},code={plan.arch.nvcc_code}"],
            "sm_count": plan.arch.sm_count,
        },
        "shape": plain(shape),
        "shape_is_baked_in": plan.spec.problem.shape is not None,
        "dims_are": "expressions" if shape is None else "numbers",
        "variables": _variables(plan) if shape is None else None,
        "leading_dims": None if bound is None else {f"ld{name}": ld for name, ld in asdict(bound.leading_dims).items()},
        "operand": plain(plan.operand),
        "smem": plain(plan.smem),
        "barriers": plain(plan.barriers),
        "roles": plain(plan.roles),
        "tmem": plain(plan.tmem),
        "mma": {
            **plain(plan.mma),
            "smem_descriptor": _descriptor(plan.mma.smem_descriptor),
            "instr_descriptor": None if plan.mma.instr_descriptor is None else _descriptor(plan.mma.instr_descriptor),
        },
        "epilogue": plain(plan.epilogue),
        "tensor_maps": _tensor_maps(plan, shape, bound),
        "launch": _launch(plan, shape, bound),
        "schedule": plain(plan.schedule) | (_tiles(plan, bound) if bound is not None else {}),
    }
    if k_tiles is not None:
        document["k_loop"] = plain(k_loop(plan, k_tiles))
    return document


def _variables(plan: Plan) -> dict[str, str]:
    tile = plan.spec.tile
    return {
        **VARIABLES,
        **edge_variables(plan),
        "m_tiles": f"ceil(m / {tile.m})",
        "n_tiles": f"ceil(n / {tile.n})",
        "k_tiles": f"ceil(k / {tile.k})",
    }


def _descriptor(descriptor: Descriptor) -> dict[str, Any]:
    return {
        "bits": descriptor.bits,
        "value": descriptor.value,
        "hex": f"0x{descriptor.value:0{descriptor.bits // 4}X}",
        "fields": plain(descriptor.fields),
    }


def _tensor_maps(plan: Plan, shape: Shape | None, bound: BoundLaunch | None) -> list[dict[str, Any]]:
    """The arguments of cuTensorMapEncodeTiled but for the address; only maps that are encoded."""
    if shape is not None:
        maps: tuple[Any, ...] = () if bound is None else bound.tensor_maps
    else:
        maps = plan.tensor_maps
    return [
        {
            "name": tensor_map.name,
            "operand": tensor_map.operand,
            "data_type": MAP_TYPES[DType(tensor_map.dtype)],
            "rank": len(tensor_map.dims),
            "dims": list(tensor_map.dims),
            "strides_bytes": list(tensor_map.strides),
            "box": list(tensor_map.box),
            "element_strides": list(tensor_map.element_strides),
            "interleave": "CU_TENSOR_MAP_INTERLEAVE_NONE",
            "swizzle": swizzle_name(tensor_map.swizzle_bytes),
            "l2_promotion": f"CU_TENSOR_MAP_L2_PROMOTION_L2_{tensor_map.l2_promotion_bytes}B",
            "oob_fill": "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE",
        }
        for tensor_map in maps
    ]


def _launch(plan: Plan, shape: Shape | None, bound: BoundLaunch | None) -> dict[str, Any] | None:
    """The launch; None for a shape with m or n = 0, for which there is none."""
    if shape is not None and bound is None:
        return None
    return {
        "kernel": plan.launch.kernel,
        "kernel_symbol": "a C symbol under NVRTC, and with TMAGEN_EXTERN_C defined",
        "grid": list(plan.launch.grid if bound is None else bound.grid),
        "block": list(plan.launch.block),
        "cluster": list(plan.launch.cluster),
        "dynamic_smem_bytes": plan.launch.smem_bytes,
        "parameters": _parameters(plan, bound),
    }


def _parameters(plan: Plan, bound: BoundLaunch | None) -> list[dict[str, Any]]:
    """Each kernel parameter, and each member of one that is a struct, with its place in the parameter buffer."""
    values = {} if bound is None else dict(bound.parameters)
    encoded = {tensor_map.name for tensor_map in (plan.tensor_maps if bound is None else bound.tensor_maps)}
    found = []
    offset = 0
    arguments: list[str] = []
    for parameter in plan.launch.parameters:
        size, align = PARAMETER_LAYOUT[parameter.type]
        offset = round_up(offset, align)
        argument = parameter.name.split(".")[0]
        if argument not in arguments:
            arguments.append(argument)
        found.append(
            {
                "name": parameter.name,
                "type": parameter.type,
                "argument": arguments.index(argument),
                "offset_bytes": offset,
                "size_bytes": size,
                "value": values.get(parameter.name, parameter.value),
                # A map that is not encoded stays zero: with k = 0 the kernel does not touch A and B.
                "is_encoded": parameter.value in encoded if parameter.type == "CUtensorMap" else None,
            }
        )
        offset += size
    return found


def _tiles(plan: Plan, bound: BoundLaunch) -> dict[str, Any]:
    schedule = bound.schedule
    waves, ctas_per_wave = waves_of(plan, bound)
    return {
        "m_tiles": schedule.m_tiles,
        "n_tiles": schedule.n_tiles,
        "k_tiles": schedule.k_tiles,
        "tiles": schedule.tiles,
        "launched_ctas": schedule.ctas,
        "waves": waves,
        "ctas_per_wave": ctas_per_wave,
        "share": [{"ctas": ctas, "tiles_each": tiles} for ctas, tiles in schedule.share],
    }
