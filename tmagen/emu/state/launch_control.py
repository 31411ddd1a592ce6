# SPDX-License-Identifier: Apache-2.0
"""Taking over clusters that have not been launched (PTX ISA, "clusterlaunchcontrol").

A response is 128 bits: bit 0 says whether a cluster was cancelled, and bits 32 to 127 hold the x, y and z of its first
CTA. The ISA leaves the format open; programs read it by `query_cancel` alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tmagen.emu.errors import Fault, NotJudged
from tmagen.emu.isa.values import ND
from tmagen.emu.module import Entry
from tmagen.emu.state.convergence import pick, uniform
from tmagen.emu.state.engine import COPY
from tmagen.emu.state.fragments import Fragment
from tmagen.emu.state.mbarrier import barrier_at
from tmagen.emu.state.transfer import SpanLoad, constant

RESPONSE_BYTES = 16
UNDEFINED = 0xA5A5A5A5


def try_cancel(frag: Fragment, cta: Any, place: Any, barrier: Any, multicast: bool) -> None:
    """Ask for a cluster; the response goes to shared memory of this CTA, or of all of the cluster."""
    opcode = "clusterlaunchcontrol.try_cancel"
    for lane in frag.lanes.lanes:
        dst, at = cta.own(pick(place, lane)), cta.own(pick(barrier, lane))
        if dst % RESPONSE_BYTES:
            raise Fault(f"clusterlaunchcontrol.try_cancel to {dst:#x}, which is not a multiple of 16", rule="CL-01")
        if frag.warp in cta.cluster.refused:
            raise Fault(
                "clusterlaunchcontrol.try_cancel by a warp that has seen an earlier request fail: no cluster is left",
                rule="CL-04",
            )
        response = _response(cta)
        cta.cluster.responses.add(int.from_bytes(response, "little"))
        for receiver in cta.cluster.ctas if multicast else [cta]:
            if not receiver.live_warps:
                raise Fault(
                    f"clusterlaunchcontrol.try_cancel.multicast::cluster::all after CTA rank {receiver.rank} has "
                    "exited",
                    rule="CL-05",
                )
            phase = barrier_at(receiver, at).phase
            copy = SpanLoad(receiver, receiver, dst, RESPONSE_BYTES, constant(response), at, phase, opcode)
            cta.engine.issue(frag, lane, COPY, copy)


def _response(cta: Any) -> bytes:
    number = cta.launch.take_cluster()
    if number is None:
        return bytes(RESPONSE_BYTES)
    first = cta.cluster.first_ctaid(number)
    return b"".join(word.to_bytes(4, "little") for word in (1, *first))


def wide(low: Any, high: Any) -> int:
    """128 bits of two halves. Only values that all lanes share are modelled."""
    if low.__class__ is ND or high.__class__ is ND:
        raise NotJudged("a .b128 value that differs between lanes")
    return int(low) | int(high) << 64


def wide_of_lanes(frag: Fragment, low: Any, high: Any) -> int:
    """The same for a load by lanes, which may name one address each."""
    what = "a .b128 value"
    return wide(uniform(frag, low, what), uniform(frag, high, what))


def is_canceled(frag: Fragment, cta: Any, response: int) -> bool:
    """query_cancel.is_canceled. Who has seen a failure may not ask again."""
    _require_response(cta, response)
    if response & 1:
        return True
    cta.cluster.refused.add(frag.warp)
    return False


def first_ctaid(frag: Fragment, cta: Any, response: int) -> tuple[int, int, int]:
    """query_cancel.get_first_ctaid. Undefined after a failed request: an odd number that a program which asks
    `is_canceled` may ignore, and a fault in one that never asks.
    """
    _require_response(cta, response)
    if response & 1:
        return response >> 32 & 0xFFFFFFFF, response >> 64 & 0xFFFFFFFF, response >> 96 & 0xFFFFFFFF
    if not _asks(cta.program.entry):
        raise Fault(
            "clusterlaunchcontrol.query_cancel.get_first_ctaid of a request that failed, in a kernel that never asks "
            "query_cancel.is_canceled",
            rule="CL-03",
        )
    return UNDEFINED, UNDEFINED, UNDEFINED


def _require_response(cta: Any, response: int) -> None:
    """Raises Fault for 128 bits that no request of the cluster was answered with: what they say is undefined."""
    if response not in cta.cluster.responses:
        raise Fault(
            f"clusterlaunchcontrol.query_cancel of {response:#034x}, which is no response of a try_cancel: it has not "
            "arrived, or was read from elsewhere",
            rule="CL-02",
        )


@lru_cache(maxsize=64)
def _asks(entry: Entry) -> bool:
    return any(i.opcode.startswith("clusterlaunchcontrol.query_cancel.is_canceled") for i in entry.body)


def grid_wait(frag: Fragment, cta: Any) -> None:
    """griddepcontrol.wait: the grid before this one has ended."""
