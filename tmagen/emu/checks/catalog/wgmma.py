# SPDX-License-Identifier: Apache-2.0
"""Warpgroup matrix instructions."""

from __future__ import annotations

from tmagen.emu.checks.registry import Check, add

add(
    Check(
        "WG-01", "E", "Warps of a warpgroup execute different wgmma instructions",
        "The four warps of a warpgroup, all lanes of them, execute the same wgmma with the same descriptors and "
        "scale-d.",
        "An early return of one warp.",
        "Keep the warpgroup together; make descriptors uniform.",
        "wgmma.mma_async", "fault",
    ),
    Check(
        "WG-02", "W", "wgmma without a wgmma.fence before it",
        "Registers that were written by anything else are visible to wgmma after wgmma.fence alone. ptxas puts the "
        "instruction in by itself in simple cases.",
        "Accumulators are cleared and the first wgmma follows.",
        "wgmma.fence before the first wgmma of each batch.",
        "wgmma.fence", "lint",
    ),
    Check(
        "WG-03", "E", "Registers of a wgmma used while it is in flight",
        "D may be neither read nor written, and A registers not written, before wgmma.wait_group has covered the "
        "instruction.",
        "wait_group 1 where the epilogue needs the last batch.",
        "wait_group 0 before the registers are touched.",
        "wgmma.wait_group", "fault",
    ),
    Check(
        "WG-05", "E", "Shared memory overwritten while a wgmma reads it",
        "A and B are read until a wgmma.wait_group that covers the instruction. A release before that lets TMA "
        "overwrite them.",
        "The empty barrier of stage k gets its arrival right after the wgmma of stage k, with wait_group 1.",
        "Release stage k-1 there, or wait_group 0 first; then a barrier over the warps of the group.",
        "wgmma.wait_group", "race",
    ),
)  # fmt: skip
