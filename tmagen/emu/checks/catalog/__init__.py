# SPDX-License-Identifier: Apache-2.0
"""Every check, with what a person needs to understand and mend it. Importing the package fills the registry."""

from __future__ import annotations

from tmagen.emu.checks.catalog import (
    barriers,
    clusters,
    copies,
    descriptors,
    launches,
    mbarriers,
    proxies,
    races,
    tensor,
    wgmma,
)

__all__ = [
    "barriers",
    "clusters",
    "copies",
    "descriptors",
    "launches",
    "mbarriers",
    "proxies",
    "races",
    "tensor",
    "wgmma",
]
