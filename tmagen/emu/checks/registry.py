# SPDX-License-Identifier: Apache-2.0
"""The table of checks: what each rule says, and where it comes from. `catalog` fills it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One rule.

    `severity` is E, W or R, or several of them where the case decides. `how` says what finds it: "race" (happens-
    before), "fault" (the run ends there), "lint" or "exit".
    """

    id: str
    severity: str
    title: str
    meaning: str
    example: str
    fix: str
    section: str  # of the PTX ISA
    how: str

    @property
    def family(self) -> str:
        """The letters of the identifier."""
        return self.id.partition("-")[0]


FAMILIES = {
    "RC": "Races of ordinary accesses",
    "MB": "mbarrier",
    "TM": "TMA and tensor maps",
    "BG": "Bulk stores and their groups",
    "PX": "Proxies",
    "DS": "Shared memory descriptors",
    "ID": "Instruction descriptors",
    "TM5": "Operands of tcgen05.mma",
    "TA": "Allocation of tensor memory",
    "TL": "tcgen05.ld and tcgen05.st",
    "TC": "Tensor cores: tcgen05",
    "WG": "Tensor cores: wgmma",
    "CB": "Clusters",
    "CL": "Taking over clusters that have not been launched",
    "GD": "Programmatic dependent launch",
    "SR": "Registers",
    "NB": "Named barriers and warps",
}

_CHECKS: dict[str, Check] = {}


def add(*checks: Check) -> None:
    """Enter checks. Raises ValueError for an identifier that is taken."""
    for check in checks:
        if check.id in _CHECKS:
            raise ValueError(f"check {check.id} exists twice")
        _CHECKS[check.id] = check


def find(identifier: str) -> Check | None:
    """The check with an identifier, in capitals or not."""
    from tmagen.emu.checks import catalog  # noqa: F401  (fills the table)

    return _CHECKS.get(identifier.upper())


def known() -> tuple[Check, ...]:
    """Every check, family by family."""
    from tmagen.emu.checks import catalog  # noqa: F401  (fills the table)

    order = list(FAMILIES)
    return tuple(sorted(_CHECKS.values(), key=lambda check: (order.index(check.family), check.id)))
