# SPDX-License-Identifier: Apache-2.0
"""Kernels that never end though nobody waits in vain: a loop whose condition nothing changes.

A cluster that comes back to a state that it was in before, with all that its threads can see, goes the same way for
ever. After :data:`FIRST_ROUND` rounds one state is kept, anew whenever their number has doubled (Brent's algorithm),
and later ones are held against it. Loops that count as they turn never come back: a limit on the rounds ends those.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tmagen.emu.errors import Endless
from tmagen.emu.isa.values import ND
from tmagen.emu.module import Instruction
from tmagen.emu.report import instruction_place, lanes_text
from tmagen.emu.state.fragments import WAIT, Fragment

FIRST_ROUND = 4096
"""A round gives a turn to each warp that can run. A CTA of a GEMM takes about one for each tile of K."""

MAX_ROUNDS = 50_000_000

_RETURNS = 3  # to one state: what only memory outside the CTA counts shows as a loop that does not end
_SHOWN_PLACES = 6


class Watchdog:
    """Looks at a cluster at the start of its rounds, from the first on that is suspicious."""

    def __init__(self, cluster: Any, max_rounds: int) -> None:
        self.cluster = cluster
        self.max_rounds = max_rounds
        self._kept: _State | None = None
        self._renew_at = 0
        self._kept_at = 0
        self._returns = 0
        self._places: dict[tuple[Any, int, str], dict[int, Instruction]] = {}
        # What a schedule that holds warps back remembers is no part of a state.
        fair = cluster.schedule is None or not cluster.schedule.holds_back
        self._provable = fair and _is_provable(cluster.context.program)

    def look(self, rounds: int) -> None:
        """Raises Endless for a state that comes back, and after too many rounds."""
        if rounds > self.max_rounds:
            self._note()
            raise self._endless(f"the CTA has not ended after {self.max_rounds:,} turns of its warps")
        if not self._provable:
            return
        if self._kept is None or rounds >= self._renew_at:
            self._kept, self._renew_at, self._kept_at = _State(self.cluster), 2 * rounds, rounds
            self._returns = 0
            self._places.clear()
            return
        if self._returns:
            self._note()
        if self._kept.is_back(self.cluster):
            if self.cluster.looks_in_vain:
                raise self.cluster.poll_deadlock()
            self._returns += 1
            if self._returns == 1:
                self._note()
            if self._returns == _RETURNS:
                period = (rounds - self._kept_at) // _RETURNS
                raise self._endless(
                    f"the CTA comes back to the state that it was in {period:,} turn{'s' if period > 1 else ''} of its "
                    "warps before, again and again"
                )

    def _note(self) -> None:
        """Remember where each warp is."""
        for cta in self.cluster.ctas:
            for warp in cta.warps:
                for fragment in warp.fragments:
                    instruction = _instruction(cta, fragment)
                    if instruction is not None:
                        places = self._places.setdefault((cta, warp.index, lanes_text(fragment.lanes)), {})
                        places[instruction.line] = instruction

    def _endless(self, message: str) -> Endless:
        ctas = [cta for cta in self.cluster.ctas if cta.live_warps]
        return Endless(message, where=ctas[0].title, detail=self._lines())

    def _lines(self) -> list[str]:
        """Who loops where: warps and lanes that pass the same places together."""
        groups: dict[tuple[Any, tuple[int, ...]], dict[str, list[int]]] = {}
        found: dict[int, Instruction] = {}
        for (cta, warp, lanes), places in self._places.items():
            found.update(places)
            groups.setdefault((cta, tuple(sorted(places))), {}).setdefault(lanes, []).append(warp)
        lines = []
        for (cta, numbers), who in groups.items():
            names = "; ".join(
                f"warp{'s' if len(warps) > 1 else ''} {', '.join(map(str, warps))} {lanes}"
                for lanes, warps in who.items()
            )
            lines.append(f"{cta.title} {names} pass{'' if len(who) > 1 or 'lanes' in names else 'es'}")
            lines += [f"  {instruction_place(found[number])}" for number in numbers[:_SHOWN_PLACES]]
            if len(numbers) > _SHOWN_PLACES:
                lines.append(f"  and {len(numbers) - _SHOWN_PLACES} more places")
        return lines


def _is_provable(program: Any) -> bool:
    """Whether a state says all: nothing outside the CTA that it can change decides where it goes."""
    if program.uses_global_atomics or program.takes_clusters:
        return False
    loads = stores = False
    for instruction in program.entry.body:
        parts = instruction.parts
        if parts[0] in ("ld", "st") and not _LOCAL.intersection(parts):
            loads |= parts[0] == "ld" and "nc" not in parts
            stores |= parts[0] == "st"
    return not (loads and stores)


_LOCAL = {"shared", "shared::cta", "shared::cluster", "local", "param", "param::entry", "param::func", "const"}


def _instruction(cta: Any, fragment: Fragment) -> Instruction | None:
    """What a fragment waits at, or is about to run."""
    found: Instruction | None
    if fragment.state == WAIT and fragment.wait is not None:
        found = cta.program.waits[fragment.wait.number]
    else:
        found = cta.program.first_instruction(fragment.pc)
    return found


class _State:
    """All that decides what a cluster does next, but for global memory."""

    def __init__(self, cluster: Any) -> None:
        self.fragments = [
            [[(f.pc, f.mask, f.state, _copied(f.R)) for f in warp.fragments] for warp in cta.warps]
            for cta in cluster.ctas
        ]
        self.queue = _queue(cluster)
        self.barrier = dict(cluster.barrier.arrived), dict(cluster.barrier.owing)
        self.rest = [_rest(cta, np.copy) for cta in cluster.ctas]

    def is_back(self, cluster: Any) -> bool:
        """Whether the cluster is in this state now."""
        for cta, warps in zip(cluster.ctas, self.fragments, strict=True):
            for warp, kept in zip(cta.warps, warps, strict=True):
                if len(warp.fragments) != len(kept):
                    return False
                for fragment, (pc, mask, state, _) in zip(warp.fragments, kept, strict=True):
                    if fragment.pc != pc or fragment.mask != mask or fragment.state != state:
                        return False
        if _queue(cluster) != self.queue or (cluster.barrier.arrived, cluster.barrier.owing) != self.barrier:
            return False
        for cta, warps in zip(cluster.ctas, self.fragments, strict=True):
            for warp, kept in zip(cta.warps, warps, strict=True):
                for fragment, (_, _, _, registers) in zip(warp.fragments, kept, strict=True):
                    if not _same(fragment.R, registers):
                        return False
        return all(_same(_rest(cta, _itself), rest) for cta, rest in zip(cluster.ctas, self.rest, strict=True))


def _queue(cluster: Any) -> list[tuple[int, int]]:
    """The warps that can run, in their order unless that is drawn anew each time."""
    found = [(warp.cta.rank, warp.index) for warp in cluster.queue]
    return sorted(found) if cluster.context.policy.draws else found


def _itself(array: Any) -> Any:
    return array


def _rest(cta: Any, take: Callable[[Any], Any]) -> list[Any]:
    """The memory of a CTA and the state of its barriers and of what is under way."""
    return [
        take(cta.smem),
        take(cta.tmem.words),
        [(at, b.expected, b.pending, b.phase & 1, b.tx) for at, b in sorted(cta.mbarriers.items())],
        [(b.open, b.expected, b.arrived) for b in cta.named],
        # What is under way may end at any moment where moments are drawn: no two such states are the same.
        [(o.kind, o.owner, o.line, cta.launch.policy.draws and o.serial) for o in cta.engine.pending],
        [len(cta.mma_queue), cta.polls, cta.clock],
        [take(warp.local) for warp in cta.warps if warp.local is not None],
        [[take(r) if r.__class__ is ND else r for r in member.registers] for member in cta.members],
    ]


def _copied(registers: list[Any]) -> list[Any]:
    return [value.copy() if value.__class__ is ND else value for value in registers]


def _same(found: Any, kept: Any) -> bool:
    if found.__class__ is ND:
        return kept.__class__ is ND and np.array_equal(found, kept)
    if found.__class__ is list:
        return len(found) == len(kept) and all(_same(a, b) for a, b in zip(found, kept, strict=True))
    if kept.__class__ is ND:
        return False
    return bool(found == kept)
