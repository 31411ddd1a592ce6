# SPDX-License-Identifier: Apache-2.0
"""Whether what verify() is called with is what it takes: whatever else is said about a kernel depends on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tmagen.bind import LeadingDims
from tmagen.errors import Diagnostic, SpecError
from tmagen.ir import Gemm, Shape
from tmagen.toolchain import Nvcc
from tmagen.typecheck import wrong_type, wrong_types
from tmagen.words import shown

MAX_SEED = 2**63 - 1
MAX_JOBS = 1024


def check_arguments(
    subject: Any, shapes: Any, *, completion: Any, inputs: Any, seed: Any, lds: Any, jobs: Any, nvcc: Any, kernel: Any
) -> None:
    """Raises SpecError with everything that is of another type, or a number out of its range."""
    found = [
        *_of("subject", subject, Path, str, Gemm),
        *_sequence("shapes", shapes, Shape),
        *_sequence("completion", (completion,) if isinstance(completion, str) else completion, str),
        *_of("inputs", inputs, str, type(None)),
        *_integer("seed", seed, 0, MAX_SEED),
        *([] if jobs is None else _integer("jobs", jobs, 1, MAX_JOBS)),
        *_of("lds", lds, LeadingDims, type(None)),
        *(wrong_types(lds, "lds.") if isinstance(lds, LeadingDims) else ()),
        *_of("nvcc", nvcc, Nvcc, Path, str, type(None)),
        *_of("kernel", kernel, str, type(None)),
    ]
    if found:
        raise SpecError(*found)


def _of(name: str, value: object, *kinds: type) -> Iterator[Diagnostic]:
    if not isinstance(value, kinds):
        yield wrong_type(name, value, kinds)


def _sequence(name: str, values: object, kind: type) -> Iterator[Diagnostic]:
    """None, or at least one of a kind."""
    if values is None:
        return
    if isinstance(values, str) or not isinstance(values, Sequence):
        takes = f"it takes a sequence of {kind.__name__}"
        yield Diagnostic(f"{name} = {shown(values)} is of type {type(values).__name__}", detail=(takes,))
        return
    if not values:
        yield Diagnostic(f"{name} is empty: nothing would be tried", hint=f"{name}=None, for what suits the kernel")
    for index, value in enumerate(values):
        yield from _of(f"{name}[{index}]", value, kind)
        if isinstance(value, Shape):
            yield from wrong_types(value, f"{name}[{index}].")


def _integer(name: str, value: object, lowest: int, highest: int) -> Iterator[Diagnostic]:
    if type(value) is not int:
        yield wrong_type(name, value, (int,))
    elif not lowest <= value <= highest:
        yield Diagnostic(f"{name} = {shown(value)} is out of range: it is {lowest:,} to {highest:,}")
