# SPDX-License-Identifier: Apache-2.0
"""A kernel that is broken on purpose: its PTX, what it is launched for, and a checked run of that PTX or another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tmagen.emu import Deadlock, EmulatorError, GlobalMemory, Launch, Module, parse, run
from tmagen.emu.checks import Finding
from tools.mutants.outcome import Outcome


@dataclass(frozen=True)
class Prepared:
    """Memory with operands in it, the launches, and the question whether results are wrong after them."""

    memory: GlobalMemory
    launches: Sequence[Launch]
    wrong: Callable[[], bool]


@lru_cache(maxsize=64)
def _parsed(ptx: str, name: str) -> Module:
    """What it is compiled to stays with it, so that a kernel is compiled once for all completions and cases."""
    return parse(ptx, filename=name)


class Base(ABC):
    """One kernel. Case 0 of its `cases` is what mutants run for; it is small, and goes every way at least twice. Random
    changes run for the cases `others` too, which go ways that it does not.
    """

    name: str
    about: str  # what it is, for a reader
    cases: int
    others: tuple[int, ...] = ()
    foreign = False  # whether another compiler wrote it
    hangs: tuple[tuple[str, int], ...] = ()  # completions and seeds under which it deadlocks as it is, and rightly

    @abstractmethod
    def text(self, case: int) -> str:
        """The PTX of the kernel as it is, for a case; most kernels have one text for all."""

    @property
    def ptx(self) -> str:
        """The text that is broken."""
        return self.text(0)

    def missing(self) -> bool:
        """Whether this machine cannot have the kernel."""
        return False

    @abstractmethod
    def prepare(self, case: int, seed: int) -> Prepared:
        """Everything for one run, operands by seed."""

    def run(self, ptx: str, case: int = 0, *, completion: str = "eager", seed: int = 0, strict: bool = True) -> Outcome:
        """A checked run of `ptx`. The policy says which lane is elected, and a kernel may not take it for lane 0."""
        prepared = self.prepare(case, seed)
        findings: tuple[Finding, ...] = ()
        try:
            module = _parsed(ptx, self.name)
            for launch in prepared.launches:
                result = run(
                    module,
                    launch,
                    prepared.memory,
                    completion=completion,
                    seed=seed,
                    checks=True,
                    strict=strict,
                    any_leader=True,
                )
                findings += result.findings
        except EmulatorError as error:
            ended = "deadlock" if isinstance(error, Deadlock) else f"{error.kind}: {error.message}"
            return Outcome(findings + error.findings, ended, error.rule, True)
        return Outcome(findings, "", None, prepared.wrong())
