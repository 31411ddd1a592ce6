# SPDX-License-Identifier: Apache-2.0
"""Proxy fences between ordinary accesses and the asynchronous proxy."""

from __future__ import annotations

from tmagen.emu.checks.registry import Check, add

add(
    Check(
        "PX-01", "E", "Ordinary write, then an asynchronous read, with no proxy fence",
        "TMA stores, tcgen05.mma and wgmma read shared memory by the asynchronous proxy. Ordinary writes before them "
        "are visible to it after fence.proxy.async alone, on the way from the one to the other: by each writer "
        "before the rendezvous, or by the thread that issues after it. A fence before the write, by a thread off the "
        "way, or of another state space does nothing.",
        "Epilogue: st.shared, bar.sync, TMA store. It works until it does not.",
        "fence.proxy.async.shared::cta in every writing thread, then the barrier.",
        "Async proxy; membar/fence: fence.proxy.async", "race",
    ),
    Check(
        "PX-02", "E", "Ordinary write, then an asynchronous write to the same bytes, with no proxy fence",
        "The ordinary write may land after the copy.",
        "A buffer is cleared by st.shared and then filled by TMA after a barrier alone.",
        "fence.proxy.async between them.",
        "Async proxy; Memory Consistency Model: Proxy-preserved base causality order", "race",
    ),
    Check(
        "PX-03", "E/R", "Ordinary read, then an asynchronous overwrite, with no proxy fence",
        "An arrive or a barrier does not wait for a load of shared memory whose result nobody has used yet, so TMA "
        "may overwrite what is still to be read. E where no register of the load is used before the thread releases; "
        "R where all of them are (the use waits for the load), or on some ways through the text only.",
        "ld.shared of the last tile, mbarrier.arrive on its empty barrier, the additions afterwards.",
        "fence.proxy.async before the arrive; or use the values first.",
        "Async proxy; Memory Consistency Model: Proxy-preserved base causality order", "race",
    ),
    Check(
        "PX-09", "E", "Ordinary write to global memory, then a TMA access to it, with no proxy fence",
        "TMA reads global memory by the asynchronous proxy, within one kernel too.",
        "A kernel that writes its operand and loads it by TMA after a grid-wide barrier.",
        "fence.proxy.async (or .global) after the writes, on the way to the load.",
        "Async proxy; membar/fence: fence.proxy.async", "race",
    ),
)  # fmt: skip
