# SPDX-License-Identifier: Apache-2.0
"""Execution policies: what a run chooses where PTX leaves it open. Each idea is a file; `catalog` has them by name."""

from __future__ import annotations

from tmagen.emu.policy.catalog import POLICIES, THOROUGH, USUAL, policy_of
from tmagen.emu.policy.policy import SEEDS, Policy, Seeds

__all__ = ["POLICIES", "SEEDS", "THOROUGH", "USUAL", "Policy", "Seeds", "policy_of"]
