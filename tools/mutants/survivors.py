# SPDX-License-Identifier: Apache-2.0
"""Why a change of a synchronisation instruction breaks nothing, for each that survives."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tools.mutants.sites import Change


@dataclass(frozen=True)
class Survivor:
    """Changes that break nothing: `bases` and `changes` are patterns of whole names and titles, told as `where` and
    `what`.
    """

    where: str
    bases: str
    what: str
    changes: str
    reason: str


SURVIVORS: tuple[Survivor, ...] = ()


def reason(base: str, change: Change) -> str | None:
    """Why this change breaks nothing; None where nobody has said."""
    for each in SURVIVORS:
        if re.fullmatch(each.bases, base) and re.fullmatch(each.changes, change.title):
            return each.reason
    return None
