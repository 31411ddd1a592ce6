# SPDX-License-Identifier: Apache-2.0
"""A question asked of the emulator."""

from __future__ import annotations

import numpy as np

from tests.gpu.conformance.outcome import HANG, MEMORY, REFUSED, TRAP, Outcome
from tests.gpu.conformance.question import Buffer, Map, Question, Scalar
from tmagen.emu import Allocation, Deadlock, Endless, Fault, GlobalMemory, Launch, Module, NotJudged, TensorMap, run

NOT_JUDGED = "not judged"


def ask(question: Question, module: Module, completion: str) -> Outcome:
    """What the emulator makes of it under one completion policy."""
    memory = GlobalMemory()
    buffers: dict[str, Allocation] = {}
    for parameter in question.parameters:
        if isinstance(parameter, Buffer):
            raw = parameter.initial().view(np.uint8)
            buffers[parameter.name] = memory.allocate(raw.size)
            buffers[parameter.name].data[:] = raw
    maps = [_tensor_map(p, buffers) for p in question.parameters if isinstance(p, Map)]
    if problems := [problem for found in maps for problem in found.problems]:
        return Outcome(REFUSED, "; ".join(problems))
    launch = Launch(
        question.kernel,
        question.grid,
        question.block,
        question.cluster,
        question.smem,
        _block(question, module, buffers),
        registers=question.registers,
    )
    try:
        found = run(
            module, launch, memory, completion=completion, hardware_sums=True, checks=bool(question.rule)
        ).findings
    except NotJudged as error:
        return Outcome(NOT_JUDGED, str(error))
    except Fault as error:
        return Outcome(TRAP, str(error))
    except (Deadlock, Endless) as error:
        return Outcome(HANG, str(error))
    if question.rule in {finding.rule for finding in found}:
        return Outcome(TRAP, f"the checks name {question.rule}")
    return Outcome(MEMORY, outputs={b.name: buffers[b.name].data.tobytes() for b in question.outputs})


def _tensor_map(parameter: Map, buffers: dict[str, Allocation]) -> TensorMap:
    return TensorMap(
        data_type=parameter.data_type,
        rank=len(parameter.dims),
        address=buffers[parameter.over].address + parameter.offset,
        dims=parameter.dims,
        strides=parameter.strides,
        box=parameter.box,
        element_strides=parameter.steps,
        interleave=parameter.interleave,
        swizzle=parameter.swizzle,
        oob_fill=parameter.oob_fill,
    )


def _block(question: Question, module: Module, buffers: dict[str, Allocation]) -> bytes:
    """The parameter block, laid out as the kernel's entry says."""
    entry = module.entries[question.kernel]
    block = bytearray(entry.param_bytes)
    for place, parameter in zip(entry.params, question.parameters, strict=True):
        if isinstance(parameter, Buffer):
            value = buffers[parameter.name].address.to_bytes(8, "little")
        elif isinstance(parameter, Map):
            value = _tensor_map(parameter, buffers).encode()
        else:
            assert isinstance(parameter, Scalar)
            value = np.array(parameter.value, parameter.dtype).tobytes()
        if len(value) != place.size:
            raise ValueError(f"question {question.id}: parameter {place.name} has {place.size} bytes, not {len(value)}")
        block[place.offset : place.offset + place.size] = value
    return bytes(block)
