# SPDX-License-Identifier: Apache-2.0
"""Whether a problem fits into memory, asked before it is begun: a process that the kernel kills tells nobody why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tmagen.errors import Diagnostic, SpecError
from tmagen.verify.buffers import resident_bytes
from tmagen.verify.cases import Problem, Settings

_PROCESS_BYTES = 128 << 20  # an emulating process, without the matrices
_GIB = 1 << 30
_SHADOW_BYTES = 4  # that the checks keep for each byte of global memory that is written


@dataclass(frozen=True, slots=True)
class Need:
    """Estimated bytes at the worst moment."""

    operands: int  # A and B: in global memory, as they were made, and what making them takes
    d: int
    reference: int  # what D must be, and comparing the two
    emulator: int

    @property
    def total(self) -> int:
        return self.operands + self.d + self.reference + self.emulator


def require_memory(problem: Problem, settings: Settings, available: int | None = None) -> None:
    """Raises SpecError, with the figures, for a problem that needs more than `available` bytes (default: what there is
    now). Where that is not known nothing is refused.
    """
    shape = problem.shape
    limit = available_bytes() if available is None else available
    if limit is None or not shape.m or not shape.n:
        return
    needs = [need_of(problem, kind, settings) for kind in settings.inputs]
    worst = max(needs, key=lambda need: need.total)
    if worst.total <= limit:
        return
    raise SpecError(
        Diagnostic(
            f"shape {shape.m},{shape.n},{shape.k} needs about {_size(worst.total)} of memory; "
            f"{_size(limit)} are available",
            detail=(
                f"A and B {_size(worst.operands)}, D {_size(worst.d)}, what D must be and the comparison "
                f"{_size(worst.reference)}, emulator {_size(worst.emulator)}",
            ),
            hint=_less(problem, settings, limit),
        )
    )


def _less(problem: Problem, settings: Settings, limit: int) -> str:
    """What to ask for so that `limit` is enough: the fewest flags that do."""
    unchecked = replace(settings, checks=False)
    for flags, kinds, how in (
        ("--input integer", ("integer",), settings),
        ("--no-checks", settings.inputs, unchecked),
        ("--input integer --no-checks", ("integer",), unchecked),
    ):
        if all(need_of(problem, kind, how).total <= limit for kind in kinds):
            return f"{flags}, or a smaller --shape"
    return "a smaller --shape"


def need_of(problem: Problem, kind: str, settings: Settings) -> Need:
    """What a problem needs with inputs of a kind, "integer" or "normal"."""
    shape, lds = problem.shape, problem.lds
    of_a, of_b, of_d = problem.elements
    a, b, d = shape.m * shape.k, shape.n * shape.k, shape.m * shape.n
    d_bytes = resident_bytes(shape.m, shape.n, lds.d, of_d)
    exact = kind == "integer" or shape.k == 0
    operands = 0
    if shape.k:
        in_memory = resident_bytes(shape.m, shape.k, lds.a, of_a) + resident_bytes(shape.n, shape.k, lds.b, of_b)
        # Random bytes or f32 numbers come before the elements, one matrix at a time.
        making = max(a, b) * (2 if exact else 4)
        operands = in_memory + a * of_a.bytes + b * of_b.bytes + making
    # B in f32, or in f64 and f32; then D to the bit, or in f64 with a tolerance in f32; three flags while comparing.
    reference = b * (4 if exact else 12) + d * ((of_d.bytes if exact else 12) + 3)
    emulator = _PROCESS_BYTES * settings.jobs_for(shape) + (_SHADOW_BYTES * d_bytes if settings.checks else 0)
    return Need(operands, d_bytes, reference, emulator)


def available_bytes(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Memory that this process can still take: what Linux calls available, or less where a control group is limited.
    None where neither is known.
    """
    return min([*_available_on_machine(proc), *_left_in_groups(proc, groups)], default=None)


def _available_on_machine(proc: Path) -> Iterator[int]:
    for line in _text(proc / "meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _left_in_groups(proc: Path, groups: Path) -> Iterator[int]:
    """What the limit of each control group leaves that this process is in, of version 1 or 2."""
    for line in _text(proc / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            roots = [groups, groups / "unified"]
            names = ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            roots = [groups / "memory"]
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        for root in roots:
            own = root / path.lstrip("/")
            for folder in (own, *own.parents):
                yield from _left(folder, *names)
                if folder == root:
                    break


def _left(folder: Path, limit: str, used: str, cached: str) -> Iterator[int]:
    bound, usage = _text(folder / limit).strip(), _text(folder / used).strip()
    if not (bound.isdigit() and usage.isdigit()):  # "max": no limit
        return
    # Cached files count as used, and give way.
    files = [int(line.split()[1]) for line in _text(folder / "memory.stat").splitlines() if line.startswith(cached)]
    yield max(0, int(bound) - int(usage) + sum(files))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _size(nbytes: int) -> str:
    return f"{nbytes / _GIB:,.1f} GiB" if nbytes >= _GIB / 10 else f"{nbytes / (1 << 20):,.0f} MiB"
