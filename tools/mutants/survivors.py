# SPDX-License-Identifier: Apache-2.0
"""Why a change of a synchronisation instruction breaks nothing, for each that survives."""

from __future__ import annotations

from tools.mutants.sites import Change
from tools.mutants.survivors_hand import BY_HAND
from tools.mutants.survivors_ours import EVERYWHERE, OURS
from tools.mutants.survivors_triton import OF_TRITON
from tools.mutants.survivors_tvm import OF_TVM

SURVIVORS = (*EVERYWHERE, *OURS, *BY_HAND, *OF_TVM, *OF_TRITON)


def reason(base: str, change: Change) -> str | None:
    """Why this change breaks nothing; None where nobody has said."""
    return next((each.reason for each in SURVIVORS if each.covers(base, change.title)), None)
