# SPDX-License-Identifier: Apache-2.0
"""The parameter block of a launch: what a bound plan says, with addresses and encoded maps in it."""

from __future__ import annotations

from collections.abc import Mapping

from tmagen.bind import BoundLaunch
from tmagen.budget import round_up
from tmagen.explain_json import PARAMETER_LAYOUT
from tmagen.gpu.tensor_maps import MAP_BYTES, Encoder, encode_arguments
from tmagen.plan import Plan


def parameter_block(plan: Plan, bound: BoundLaunch, addresses: Mapping[str, int], encode: Encoder) -> bytes:
    """The bytes that the kernel's parameters take, each at its alignment.

    `addresses` are those of the matrices A, B and D. A map that is not encoded (A and B with k = 0) is all zeros.
    Raises :class:`tmagen.gpu.errors.DriverError` where a map cannot be encoded.
    """
    maps = {
        tensor_map.name: encode(encode_arguments(tensor_map, addresses[tensor_map.operand]))
        for tensor_map in bound.tensor_maps
    }
    block = bytearray()
    for parameter, (name, value) in zip(plan.launch.parameters, bound.parameters, strict=True):
        assert parameter.name == name
        size, align = PARAMETER_LAYOUT[parameter.type]
        block.extend(bytes(round_up(len(block), align) - len(block)))
        if parameter.type == "CUtensorMap":
            block.extend(maps.get(str(value), bytes(MAP_BYTES)))
        elif parameter.type.endswith("*"):
            block.extend(addresses[str(value).upper()].to_bytes(size, "little"))
        else:
            assert isinstance(value, int)
            block.extend(value.to_bytes(size, "little"))
    # The last parameter may be a struct, which is as long as a multiple of its alignment.
    last = plan.launch.parameters[-1].name.split(".")[0]
    aligns = [PARAMETER_LAYOUT[p.type][1] for p in plan.launch.parameters if p.name.split(".")[0] == last]
    block.extend(bytes(round_up(len(block), max(aligns)) - len(block)))
    return bytes(block)
