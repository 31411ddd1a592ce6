# SPDX-License-Identifier: Apache-2.0
"""All mutants."""

from __future__ import annotations

from tools.mutants import rows_clusters, rows_emitted, rows_foreign, rows_others, rows_roles, rows_scaled
from tools.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *rows_emitted.MUTANTS,
    *rows_roles.MUTANTS,
    *rows_clusters.MUTANTS,
    *rows_others.MUTANTS,
    *rows_scaled.MUTANTS,
    *rows_foreign.MUTANTS,
)
