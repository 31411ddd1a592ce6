# SPDX-License-Identifier: Apache-2.0
"""What stands in the code, for sides that nothing launches: it is not known how often, or by whom, it is executed."""

from __future__ import annotations

from collections import Counter

from tmagen.diff.code import Code
from tmagen.diff.decisions import SWIZZLE_ATOM_NOTE, bounds_of, declared_alignment, parameters_of
from tmagen.diff.facts import Fact, Group, facts
from tmagen.diff.roles import ELECTION_NOTE, election_of

_TOLD = (
    "mbarrier",
    "cp.async",
    "cp.reduce",
    "prefetch",
    "tcgen05",
    "wgmma",
    "mma",
    "ldmatrix",
    "stmatrix",
    "fence",
    "membar",
    "bar",
    "barrier",
    "elect",
    "setmaxnreg",
    "st.global",
    "st.shared",
    "ld.global",
    "ld.shared",
    "clusterlaunchcontrol",
    "griddepcontrol",
)


def decided_by_code(left: Code, right: Code) -> tuple[Group, ...]:
    """Parameters, bounds, and how one thread is chosen."""
    both = (left, right)
    return (
        Group(
            "Launch",
            facts(
                ("launch bounds", *(bounds_of(code.entry.directives) for code in both)),
                ("parameters", *(parameters_of(code.entry) for code in both)),
                ("one thread is chosen by", *map(election_of, both), ELECTION_NOTE),
            ),
        ),
        Group(
            "Shared memory",
            facts(("declared alignment, bytes", *map(declared_alignment, both), SWIZZLE_ATOM_NOTE)),
        ),
    )


def instructions(left: Code, right: Code) -> tuple[Group, ...]:
    """How often each instruction of copies, barriers, MMAs and memory stands in the PTX."""
    counts = [Counter(map(_short, filter(_is_told, (i.opcode for i in code.entry.body)))) for code in (left, right)]
    names = sorted({name for count in counts for name in count})
    rows = tuple(Fact(name, *(str(count[name]) for count in counts)) for name in names)
    return (Group("Instructions in the PTX", rows),)


def _is_told(opcode: str) -> bool:
    return any(opcode == head or opcode.startswith(f"{head}.") for head in _TOLD)


def _short(opcode: str) -> str:
    """Without what only says how wide an access is."""
    parts = opcode.split(".")
    return ".".join(parts[:2]) if parts[0] in ("st", "ld") else opcode
