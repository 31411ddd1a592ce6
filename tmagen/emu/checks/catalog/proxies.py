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
        "R where all of them are (the use waits for the load) or a wgmma.fence stands between, or on some ways through "
        "the text only.",
        "ld.shared of the last tile, mbarrier.arrive on its empty barrier, the additions afterwards.",
        "fence.proxy.async before the arrive; or use the values first.",
        "Async proxy; Memory Consistency Model: Proxy-preserved base causality order", "race",
    ),
    Check(
        "PX-07", "W", "Ordinary write to what a tcgen05 instruction has read, with no proxy fence",
        "The MMA or the copy is complete, and whoever writes is ordered after its commit. The text promises the "
        "ordinary proxy no more than that for bulk copies and wgmma, whose completion is a fence of its own; shipping "
        "kernels overwrite operands after the wait alone, so it is told with --strict alone.",
        "A converter role writes the next A tile by st.shared after the empty barrier that tcgen05.commit arrives on.",
        "fence.proxy.async.shared::cta after the wait, or leave it.",
        "Async proxy; tcgen05: Memory Consistency Model", "race",
    ),
    Check(
        "PX-09", "E", "Ordinary write to global memory, then a TMA access to it, with no proxy fence",
        "TMA reads global memory by the asynchronous proxy, within one kernel too.",
        "A kernel that writes its operand and loads it by TMA after a grid-wide barrier.",
        "fence.proxy.async (or .global) after the writes, on the way to the load.",
        "Async proxy; membar/fence: fence.proxy.async", "race",
    ),
    Check(
        "PX-12", "E", "Tensor map used that was changed without its fences",
        "Copies read tensor maps by a proxy of their own, which may hold the bytes of before. Who changes a map in "
        "global memory releases it (tensormap.cp_fenceproxy does; fence.proxy.tensormap::generic.release after other "
        "writes), hands it over like any data, and then a thread of the CTA that uses it acquires it: "
        "fence.proxy.tensormap::generic.acquire with the address of the map, ordered before the copy is issued.",
        "tensormap.replace of global_address in place, __syncthreads(), TMA load.",
        "tensormap.cp_fenceproxy (or the release fence), then fence.proxy.tensormap::generic.acquire.gpu [map], 128 "
        "before the copy.",
        "membar/fence: fence.proxy.tensormap; tensormap.cp_fenceproxy", "race",
    ),
    Check(
        "PX-13", "E", "Tensor map changed while a copy uses it",
        "A copy may read its map until it is complete, or, for stores, until wait_group.read has covered it.",
        "The next group's tensormap.replace right after the loads of this one were issued.",
        "Wait for the copies first, or take two maps in turn.",
        "cp.async.bulk.tensor; cp.async.bulk.wait_group", "race",
    ),
    Check(
        "PX-15", "E/R", "Response of clusterlaunchcontrol.try_cancel overwritten with no proxy fence",
        "The response is read by ordinary loads, and the next request writes it by the asynchronous proxy. As PX-03: E "
        "where no register of the load is used before the thread releases the slot, R where all of them are.",
        "ld.shared.b128 of the response, mbarrier.arrive on its empty barrier, query_cancel afterwards.",
        "fence.proxy.async.shared::cta between the load and the arrive.",
        "clusterlaunchcontrol.try_cancel; Async proxy", "race",
    ),
)  # fmt: skip
