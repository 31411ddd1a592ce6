# SPDX-License-Identifier: Apache-2.0
"""What `ptxas -v` says about each kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelResources:
    """The resources of one compiled kernel."""

    name: str  # the symbol, mangled as in PTX
    registers: int  # per thread
    spill_store_bytes: int  # per thread
    spill_load_bytes: int  # per thread
    stack_bytes: int  # per thread
    static_smem_bytes: int  # per CTA
    barriers: int  # named barriers


_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '[^']+'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def parse_ptxas_report(text: str) -> tuple[KernelResources, ...]:
    """The kernels in a `ptxas -v` report, in its order.

    Raises ValueError where a kernel has no "Used N registers" line: the report is not of a form that is known.
    """
    kernels: list[KernelResources] = []
    parts = _ENTRY.split(text)
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        used = re.search(r"Used (\d+) registers.*", body)
        if used is None:
            raise ValueError(f"ptxas says nothing about the registers of {name}")
        frame = _FRAME.search(_properties_of(name, body))
        if frame is None:
            raise ValueError(f"ptxas says nothing about the stack of {name}")
        stack, stores, loads = map(int, frame.groups())
        line = used.group(0)
        kernels.append(
            KernelResources(
                name=name,
                registers=int(used.group(1)),
                spill_store_bytes=stores,
                spill_load_bytes=loads,
                stack_bytes=stack,
                static_smem_bytes=_number(r"(\d+) bytes smem", line),
                barriers=_number(r"used (\d+) barriers", line),
            )
        )
    return tuple(kernels)


def _properties_of(name: str, body: str) -> str:
    """The part about `name` itself: functions that were not inlined have properties of their own."""
    for part in _PROPERTIES.split(body)[1:][::2]:
        if part == name:
            return body[body.index(f"Function properties for {name}") :]
    return body


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found.group(1)) if found else 0
