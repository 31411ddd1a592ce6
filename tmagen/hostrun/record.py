# SPDX-License-Identifier: Apache-2.0
"""What a host part did, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tmagen.hostrun.parameters import ParameterTable
from tmagen.hostrun.tensor_map import TensorMapFields, decode_tensor_map, from_event

Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class EncodeCall:
    """A call of cuTensorMapEncodeTiled."""

    map: TensorMapFields
    accepted: bool


@dataclass(frozen=True, slots=True)
class AttributeCall:
    """A call of cudaFuncSetAttribute."""

    kernel: str
    attribute: int  # cudaFuncAttribute
    value: int
    device: int
    error: str  # "cudaSuccess"


@dataclass(frozen=True, slots=True)
class LaunchCall:
    """A kernel launch that the runtime accepted, or refused with `error`."""

    kernel: str
    grid: Dim3  # CTAs
    block: Dim3  # threads
    cluster: Dim3  # CTAs
    dynamic_smem_bytes: int
    params: bytes  # the parameter block; empty if the launch was refused
    device: int
    stream: int
    error: str  # "cudaSuccess"
    attributes: Mapping[str, int] = field(default_factory=dict)

    def tensor_maps(self, table: ParameterTable) -> tuple[TensorMapFields | None, ...]:
        """The map in each 128-byte parameter, None where that parameter holds none."""
        return tuple(
            decode_tensor_map(self.params[parameter.offset : parameter.offset + parameter.size])
            for parameter in table.parameters
            if parameter.size == 128
        )

    def scalars(self, table: ParameterTable) -> tuple[int, ...]:
        """The parameters of at most 8 bytes, as signed integers."""
        return tuple(
            int.from_bytes(self.params[p.offset : p.offset + p.size], "little", signed=True)
            for p in table.parameters
            if p.size <= 8
        )

    def to_dict(self, table: ParameterTable) -> dict[str, Any]:
        """Plain data, for JSON, with the tensor maps decoded."""
        return {
            "kernel": self.kernel,
            "grid": list(self.grid),
            "block": list(self.block),
            "cluster": list(self.cluster),
            "dynamic_smem_bytes": self.dynamic_smem_bytes,
            "parameters": [_parameter(self.params[p.offset : p.offset + p.size]) for p in table.parameters],
            "attributes": dict(self.attributes),
        }


def _parameter(data: bytes) -> dict[str, Any]:
    """A kernel parameter: a tensor map, a number, or the bytes of a struct."""
    if len(data) <= 8:
        return {"value": int.from_bytes(data, "little", signed=True)}
    fields = decode_tensor_map(data)
    return {"bytes": data.hex()} if fields is None else {"tensor_map": fields.to_dict()}


@dataclass(frozen=True, slots=True)
class CallResult:
    """What one call of launch() returned and left behind."""

    error: str  # "cudaSuccess"
    last_error: str  # the text of last_error()
    pending: str  # the runtime's last error after the call: not taken, or not noticed
    device_after: int  # the calling thread's device after the call

    @property
    def ok(self) -> bool:
        return self.error == "cudaSuccess"


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that one request led to."""

    results: tuple[CallResult, ...]  # one per calling thread
    encodes: tuple[EncodeCall, ...]
    attributes: tuple[AttributeCall, ...]
    launches: tuple[LaunchCall, ...]
    stream: int  # the stream that was passed to launch()
    capture: str | None  # what ended the capture, "cudaSuccess" if it is whole; None without capture
    captured_kernels: int

    @property
    def result(self) -> CallResult:
        """Of a request with one thread."""
        (only,) = self.results
        return only


def outcome_from_json(reply: Mapping[str, Any]) -> Outcome:
    """Reads the answer to one request."""
    by_kind: dict[str, list[Mapping[str, Any]]] = {"encode": [], "set_attribute": [], "launch": []}
    for event in reply["events"]:
        by_kind[event["event"]].append(event)
    return Outcome(
        results=tuple(
            CallResult(r["error_name"], r["last_error"], r["pending"], r["device_after"]) for r in reply["results"]
        ),
        encodes=tuple(EncodeCall(from_event(event), event["error"] == 0) for event in by_kind["encode"]),
        attributes=tuple(
            AttributeCall(event["kernel"], event["attribute"], event["value"], event["device"], event["error_name"])
            for event in by_kind["set_attribute"]
        ),
        launches=tuple(map(launch_from_event, by_kind["launch"])),
        stream=reply["stream"],
        capture=reply.get("capture"),
        captured_kernels=reply.get("captured_kernels", 0),
    )


def launch_from_event(event: Mapping[str, Any]) -> LaunchCall:
    """Reads one launch of the record."""
    return LaunchCall(
        kernel=event["kernel"],
        grid=tuple(event["grid"]),
        block=tuple(event["block"]),
        cluster=tuple(event["cluster"]),
        dynamic_smem_bytes=event["dynamic_smem_bytes"],
        params=bytes.fromhex(event["params"]),
        device=event["device"],
        stream=event["stream"],
        error=event["error_name"],
        attributes=dict(event["attributes"]),
    )
