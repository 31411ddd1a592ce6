# SPDX-License-Identifier: Apache-2.0
"""Races of ordinary accesses."""

from __future__ import annotations

from tmagen.emu.checks.registry import Check, add

add(
    Check(
        "RC-01", "E/R", "Race in shared memory",
        "Two accesses touch the same bytes of shared memory, one of them writes, and no barrier, mbarrier, fence "
        "pair or wait orders them. What the later one sees is open. R where a load stands before a barrier of the "
        "cluster with a relaxed arrive, and what overwrites it behind.",
        "Threads stage a tile with st.shared and thread 0 starts the TMA store of it with no bar.sync in between.",
        "Put a rendezvous between them: bar.sync for the CTA, bar.warp.sync within a warp, or an mbarrier that the "
        "first thread arrives on and the second waits for.",
        "Memory Consistency Model: Causality order", "race",
    ),
    Check(
        "RC-03", "W", "Equal values written by several threads, unordered",
        "Threads write one value to one place and nothing orders them. Formally a race; whoever wins, the bytes are "
        "the same, and compilers do it.",
        "Every warp stores the tile index of the CTA.",
        "Let one thread write, or leave it.",
        "Memory Consistency Model: Causality order", "race",
    ),
    Check(
        "RC-02", "E", "Race in global memory",
        "Two accesses touch the same bytes of global memory, one of them writes, and nothing orders them. CTAs of a "
        "launch run in any order and at the same time, so two that write one byte race even where one of them happens "
        "to be right. What one CTA tells another through global memory is order if both sides are strong, one "
        "releases, the other acquires, and each scope includes the other: a weak look at a flag, a .cta scope, or "
        "a missing fence leaves a race. Atomics do not race with each other.",
        "Two CTAs are handed the same output tile; split-K: red.relaxed on the semaphore right after the stores.",
        "Give each byte one writer, or hand it over: bar.sync, then release at .gpu scope by one thread; acquire at "
        ".gpu scope by one thread, then bar.sync.",
        "Memory Consistency Model: Causality order, Release and Acquire Patterns", "race",
    ),
)  # fmt: skip
