# SPDX-License-Identifier: Apache-2.0
"""Questions asked of the GPU of this machine, through libcuda.

A worker is a process of its own: it answers one question after another, a line of JSON each, and ends after a trap,
which takes its context with it. Whoever started it goes on with another.
"""

from __future__ import annotations

import base64
import ctypes
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.gpu.conformance.outcome import HANG, MEMORY, REFUSED, TRAP, Outcome
from tests.gpu.conformance.question import Buffer, Map, Question, Scalar
from tests.gpu.conformance.topics import topics
from tmagen.gpu import driver
from tmagen.gpu.errors import DriverError
from tmagen.gpu.tensor_maps import EncodeArguments, encode_with_libcuda

SECONDS = 20.0
"""How long one question may take, its share of a process's start included."""

_MAX_DYNAMIC_SHARED = 8  # CUfunction_attribute
_NON_PORTABLE_CLUSTER = 14
_CLUSTER_DIMENSION = 4  # CUlaunchAttributeID
_L2_NONE = 0


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute, whose value is a union of 64 bytes."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint32 * 16))


class _Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


def describe() -> dict[str, str]:
    """The device, the driver's CUDA version and the driver."""
    driver.call("cuInit", ctypes.c_uint(0))
    name = ctypes.create_string_buffer(100)
    driver.call("cuDeviceGetName", name, ctypes.c_int(100), ctypes.c_int(0))
    version = ctypes.c_int()
    driver.call("cuDriverGetVersion", ctypes.byref(version))
    try:
        kernel = Path("/proc/driver/nvidia/version").read_text().split("Kernel Module", 1)[1].split()
        release = next((word for word in kernel if word[:1].isdigit()), "unknown")
    except (OSError, IndexError):
        release = "unknown"
    cuda = f"{version.value // 1000}.{version.value % 1000 // 10}"
    return {"device": name.value.decode(), "driver": release, "cuda": cuda}


def ask(question: Question, function: ctypes.c_void_p) -> Outcome:
    """Launch it once. After a TRAP the context is lost."""
    buffers: dict[str, tuple[ctypes.c_uint64, int]] = {}
    try:
        for parameter in question.parameters:
            if isinstance(parameter, Buffer):
                raw = np.ascontiguousarray(parameter.initial()).view(np.uint8)
                address = ctypes.c_uint64()
                driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(raw.size))
                driver.call("cuMemcpyHtoD_v2", address, ctypes.c_void_p(raw.ctypes.data), ctypes.c_size_t(raw.size))
                buffers[parameter.name] = address, raw.size
        values = [_value(parameter, buffers) for parameter in question.parameters]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.cast(v, ctypes.c_void_p) for v in values))
        _launch(question, function, pointers)
    except DriverError as error:
        return Outcome(REFUSED, str(error))
    try:
        driver.call("cuCtxSynchronize")
        outputs = {}
        for buffer in question.outputs:
            address, size = buffers[buffer.name]
            room = ctypes.create_string_buffer(size)
            driver.call("cuMemcpyDtoH_v2", room, address, ctypes.c_size_t(size))
            outputs[buffer.name] = room.raw
        for address, _ in buffers.values():
            driver.call("cuMemFree_v2", address)
    except DriverError as error:
        return Outcome(TRAP, str(error).rsplit(": ", 1)[-1])
    return Outcome(MEMORY, outputs=outputs)


def _launch(question: Question, function: ctypes.c_void_p, pointers: Any) -> None:
    driver.call("cuFuncSetAttribute", function, ctypes.c_int(_NON_PORTABLE_CLUSTER), ctypes.c_int(1))
    driver.call("cuFuncSetAttribute", function, ctypes.c_int(_MAX_DYNAMIC_SHARED), ctypes.c_int(question.smem))
    attribute = _Attribute(_CLUSTER_DIMENSION, 0)
    attribute.value[:3] = question.cluster
    config = _Config(
        (ctypes.c_uint * 3)(*question.grid),
        (ctypes.c_uint * 3)(*question.block),
        question.smem,
        None,
        ctypes.pointer(attribute),
        1 if question.cluster != (1, 1, 1) else 0,
    )
    driver.call("cuLaunchKernelEx", ctypes.byref(config), function, pointers, ctypes.c_void_p(None))


def _value(parameter: Any, buffers: Mapping[str, tuple[ctypes.c_uint64, int]]) -> Any:
    """A parameter's bytes, as something that ctypes passes by address."""
    if isinstance(parameter, Buffer):
        raw = buffers[parameter.name][0].value.to_bytes(8, "little")
    elif isinstance(parameter, Map):
        raw = encode_with_libcuda(
            EncodeArguments(
                data_type=int(parameter.data_type),
                rank=len(parameter.dims),
                address=buffers[parameter.over][0].value + parameter.offset,
                dims=parameter.dims,
                strides=parameter.strides,
                box=parameter.box,
                element_strides=parameter.steps,
                interleave=int(parameter.interleave),
                swizzle=int(parameter.swizzle),
                l2_promotion=_L2_NONE,
                oob_fill=int(parameter.oob_fill),
            )
        )
    else:
        assert isinstance(parameter, Scalar)
        raw = np.array(parameter.value, parameter.dtype).tobytes()
    return ctypes.create_string_buffer(raw, len(raw))


def work(cubins: Path, topic: str, ids: Sequence[str]) -> None:
    """A worker's life: an answer a line on stdout, up to the first trap."""
    by_id = {question.id: question for question in topics()[topic]}
    driver.call("cuInit", ctypes.c_uint(0))
    context = ctypes.c_void_p()
    driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ctypes.c_int(0))
    driver.call("cuCtxSetCurrent", context)
    loaded = ctypes.c_void_p()
    code = cubins.read_bytes()
    driver.call("cuModuleLoadData", ctypes.byref(loaded), code)
    for name in ids:
        question = by_id[name]
        function = ctypes.c_void_p()
        driver.call("cuModuleGetFunction", ctypes.byref(function), loaded, question.kernel.encode())
        outcome = ask(question, function)
        packed = {key: base64.b64encode(raw).decode() for key, raw in outcome.outputs.items()}
        print(json.dumps({"id": name, "what": outcome.what, "says": outcome.says, "outputs": packed}), flush=True)
        if outcome.what == TRAP:
            return


def answers(cubin: Path, topic: str, questions: Sequence[Question]) -> Iterator[tuple[Question, Outcome]]:
    """Every question of a topic: those that may trap in processes of their own, the others together."""
    yield from _batch(cubin, topic, [q for q in questions if not q.may_trap])
    for question in questions:
        if question.may_trap:
            yield from _batch(cubin, topic, [question])


def _batch(cubin: Path, topic: str, questions: Sequence[Question]) -> Iterator[tuple[Question, Outcome]]:
    left = list(questions)
    while left:
        before = len(left)
        for outcome in _worker(cubin, topic, [question.id for question in left]):
            yield left.pop(0), outcome
        if len(left) == before:
            raise SystemExit(f"no answer to {left[0].id}: the worker ended without one")


def _worker(cubin: Path, topic: str, ids: Sequence[str]) -> Iterator[Outcome]:
    """The answers of one process, as far as it comes. One that says nothing for too long is ended."""
    command = [sys.executable, "-m", "tests.gpu.conformance", "work", "--cubin", str(cubin), "--topic", topic, *ids]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    lines: queue.Queue[str] = queue.Queue()

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put("")

    threading.Thread(target=listen, daemon=True).start()
    try:
        for _ in ids:
            try:
                line = lines.get(timeout=SECONDS)
            except queue.Empty:
                yield Outcome(HANG, f"no answer in {SECONDS:.0f} s")
                return
            if not line:
                return
            found = json.loads(line)
            raw = {key: base64.b64decode(text) for key, text in found["outputs"].items()}
            yield Outcome(found["what"], found["says"], raw)
    finally:
        process.kill()
        process.wait()
