# SPDX-License-Identifier: Apache-2.0
"""Which rule two unordered accesses break, and how that is said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmagen.emu.checks.clocks import Lanes
from tmagen.emu.checks.rows import ORDER, TENSOR
from tmagen.emu.checks.shadow import Access
from tmagen.emu.checks.sites import SCOPE_NAMES
from tmagen.emu.checks.stored import same

if TYPE_CHECKING:
    from tmagen.emu.checks.watch import Watch

SHARED_MEMORY, TENSOR_MEMORY, GLOBAL_MEMORY = "shared", "tensor", "global"

NOUNS = {
    "map_st": "write of a tensor map", "map_read": "TMA copy, which reads its tensor map,",
    "ld": "load", "st": "store", "atom": "atomic", "alloc": "tcgen05.alloc", "tma_load": "TMA load",
    "bulk_load": "bulk load", "tma_store": "TMA store", "bulk_store": "bulk store", "mma": "MMA", "wgmma": "wgmma",
    "tmem_ld": "tcgen05.ld", "tmem_cp": "tcgen05.cp", "tmem_st": "tcgen05.st", "dealloc": "tcgen05.dealloc",
    "reduce": "bulk reduction", "st_async": "st.async", "cp_async": "cp.async",
    "red_async": "red.async", "cluster_reduce": "bulk reduction",
    "try_cancel": "clusterlaunchcontrol.try_cancel",
}  # fmt: skip
_LOADS = ("tma_load", "bulk_load", "cluster_reduce")
_STORES_ASYNC = ("st_async", "red_async")
COPIES = (*_LOADS, *_STORES_ASYNC)
_STORES = ("tma_store", "bulk_store", "reduce")
# Severity behind a barrier of the cluster with a relaxed arrive, which orders no memory by the text: compilers read the
# address of tensor memory there, and overwrite a peer's memory that was read before it.
_BEHIND_RELAXED = {"alloc": "W", "ld": "R"}
_TENSOR_WORK = ("mma", "tmem_cp")


@dataclass(frozen=True)
class Verdict:
    """A rule, its severity, and the missing edge in one sentence."""

    rule: str
    level: str
    edge: str


def unordered(watch: Watch, first: Access, second: Access, agent: Lanes, space: str) -> Verdict:
    """Two accesses of which one writes, with no order between them."""
    judge = {SHARED_MEMORY: _shared, TENSOR_MEMORY: _tensor, GLOBAL_MEMORY: _global}[space]
    return judge(watch, first, second, agent)


def _follows_issue(watch: Watch, first: Access, agent: Lanes, row: int) -> bool:
    """Whether the thread is ordered after the issue of `first`, and only its end is open."""
    return watch.clocks.partings.releases(agent.vector, row, first.base, first.base_clock) >= 0


def _was_used(watch: Watch, first: Access, second: Access, agent: Lanes, row: int) -> bool:
    """Whether the load's registers were used before the release that the agent is ordered after, or before what its own
    warp does: the load was over then. Where some of them may never be used, the benefit of the doubt.
    """
    use = first.site.use
    if use is None:
        return True
    releases = use.releases
    last = second.site.instruction
    if first.who[0] == second.who[0] and first.who[2] is second.who[2] and (last.line, last.text) in use.overwrites:
        releases += 1
    return watch.clocks.partings.releases(agent.vector, row, first.base, first.base_clock) >= releases


def _shared(watch: Watch, first: Access, second: Access, agent: Lanes) -> Verdict:
    what = NOUNS[second.kind]
    if same(first.stored, second.stored):
        return Verdict("RC-03", "W", f"no barrier or mbarrier orders the {what} after the {NOUNS[first.kind]}")
    if first.kind in _LOADS:
        rule = "TM-35" if second.kind in _LOADS else "TM-34"
        return Verdict(rule, "E", watch.phase_edge(first, agent, what))
    if first.kind == "try_cancel":
        return Verdict("CL-02", "E", watch.phase_edge(first, agent, what, "response arrives"))
    if first.kind in _STORES:
        edge = f"nothing orders the {what} after a cp.async.bulk.wait_group by the thread that issued the store"
        return Verdict("BG-05", "E", edge)
    if first.kind in _TENSOR_WORK:
        return Verdict(
            "TC-13", "E", f"nothing orders the {what} after a tcgen05.commit that covers that {NOUNS[first.kind]}"
        )
    if first.kind == "wgmma":
        return Verdict("WG-05", "E", f"nothing orders the {what} after a wgmma.wait_group that covers that wgmma")
    if first.kind in _STORES_ASYNC:
        return Verdict("TM-34", "E", watch.phase_edge(first, agent, what))
    if first.kind == "cp_async":
        return Verdict("RC-01", "E", f"nothing orders the {what} after a cp.async.wait_group that covers the copy")
    rule = "TA-03" if first.kind == "alloc" else "RC-01"
    edge = f"no barrier or mbarrier orders the {what} after the {NOUNS[first.kind]}"
    relaxed = agent.inits is not None and agent.inits[first.component] >= first.clock
    if relaxed and first.kind in _BEHIND_RELAXED:
        return Verdict(rule, _BEHIND_RELAXED[first.kind], f"{edge} but one of the cluster with a relaxed arrive")
    return Verdict(rule, "E", edge)


def _tensor(watch: Watch, first: Access, second: Access, agent: Lanes) -> Verdict:
    what = NOUNS[second.kind]
    follows = _follows_issue(watch, first, agent, TENSOR)
    same_warp = first.who[0] == second.who[0]
    if first.kind in _TENSOR_WORK:
        edge = f"nothing orders the {what} after a tcgen05.commit that covers that {NOUNS[first.kind]}"
        if second.kind in _TENSOR_WORK:
            edge += ", nor do tcgen05.fence::before_thread_sync and ::after_thread_sync around a barrier"
            kinds = {first.kind, second.kind}
            return Verdict("TC-03" if kinds == {"mma"} else "TC-04" if len(kinds) == 1 else "TC-09", "E", edge)
        return Verdict("TA-10" if second.kind == "dealloc" else "TC-05", "E", edge)
    wait = "tcgen05.wait::ld" if first.kind == "tmem_ld" else "tcgen05.wait::st"
    if not follows:
        rule = "TA-10" if second.kind == "dealloc" else "TC-06" if first.kind == "tmem_ld" else "TC-07"
        return Verdict(
            rule, "E", f"no barrier or mbarrier orders the {what} after the {NOUNS[first.kind]} and its {wait}"
        )
    edge = f"warp {first.who[0]} executes no {wait} between the {NOUNS[first.kind]} and what lets the {what} go on"
    if first.kind == "tmem_st":
        return Verdict("TL-08" if same_warp and second.kind == "tmem_ld" else "TL-07", "E", edge)
    if same_warp and second.kind == "tmem_st":
        return Verdict("TL-08", "W", edge)
    return Verdict("TL-05", "R" if _was_used(watch, first, second, agent, TENSOR) else "E", edge)


def _global(watch: Watch, first: Access, second: Access, agent: Lanes) -> Verdict:
    what = NOUNS[second.kind]
    if first.kind in _STORES:
        waited = f"nothing orders the {what} after a cp.async.bulk.wait_group by the thread that issued the store"
        return Verdict("BG-08" if second.kind in _STORES else "BG-09", "E", f"{waited} (.read is not enough)")
    if first.kind == "map_read":
        return Verdict("PX-13", "E", f"nothing orders the {what} after the end of the copy that uses the map")
    if first.kind in _LOADS:
        return Verdict("TM-37", "E", watch.phase_edge(first, agent, what))
    return Verdict("RC-02", "E", f"no barrier or mbarrier orders the {what} after the {NOUNS[first.kind]}")


def unfenced(watch: Watch, first: Access, second: Access, agent: Lanes, hazard: str, space: str) -> Verdict:
    """Accesses by different proxies, in order, with no proxy fence on the way."""
    what = NOUNS[second.kind]
    if not first.generic:
        edge = f"no fence.proxy.async stands between the end of the {NOUNS[first.kind]} and the {what}"
        return Verdict("PX-07", "W", edge)
    fence = "fence.proxy.async" + (".global" if space == GLOBAL_MEMORY else "")
    edge = f"no {fence} by a thread on the way stands between the {NOUNS[first.kind]} and the {what}"
    if hazard == "WAR":
        rule = "PX-15" if second.kind == "try_cancel" else "PX-03"
        return Verdict(rule, "R" if _was_used(watch, first, second, agent, ORDER) else "E", edge)
    if space == GLOBAL_MEMORY:
        return Verdict("PX-09", "E", edge)
    if hazard == "RAW":
        return Verdict("PX-01", "E", edge)
    # The address of an allocation is read back before its place is given to something else, and compilers rely on it.
    return Verdict("PX-02", "R" if first.kind == "alloc" else "E", edge)


def scope_edge(first: Access, second: Access) -> str | None:
    """Two strong accesses that race as a scope is too narrow."""
    if not (first.strong and second.strong):
        return None
    name = SCOPE_NAMES[min(first.site.scope, second.site.scope)]
    return f"the scope of one of them, .{name}, does not include the thread of the other"


def narrow(first: Access, second: Access, *, formal: bool) -> Verdict:
    """An access of another CTA that is ordered before by arrivals on an mbarrier whose scope is their own CTA alone.
    `formal`: no instruction would come of a wider one. That is so of reads, and of what the asynchronous proxy reads
    in the writer's own CTA behind a proxy fence: that fence has waited for the writes.
    """
    edge = (
        f"the arrive that orders the {NOUNS[second.kind]} after the {NOUNS[first.kind]} is of .cta scope, which leaves "
        "out the CTA of its mbarrier; .release.cluster does not"
    )
    return Verdict("MB-34", "W", edge) if formal else Verdict("MB-35", "E", edge)


def is_bare(first: Access, hazard: str) -> bool:
    """Whether the end of an asynchronous read says nothing to the ordinary proxy: that of bulk copies and of wgmma does
    (PTX ISA, "Async proxy"), of tcgen05 no text says it.
    """
    return hazard == "WAR" and first.kind in ("mma", "tmem_cp")


def is_ordered(watch: Watch, first: Access, agent: Lanes, space: str) -> bool:
    row = TENSOR if space == TENSOR_MEMORY else ORDER
    return bool(agent.known[row * watch.clocks.capacity + first.component] >= first.clock)
