# SPDX-License-Identifier: Apache-2.0
"""Taking over clusters that have not been launched (PTX ISA, "clusterlaunchcontrol").

A response is 128 bits: bit 0 says whether a cluster was cancelled, and bits 32 to 127 hold the x, y and z of its first
CTA. The ISA leaves the format open; programs read it by `query_cancel` alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tmagen.emu.errors import Fault, NotJudged
from tmagen.emu.isa.values import ND
from tmagen.emu.state.convergence import Fragment, pick, uniform
from tmagen.emu.state.engine import COPY
from tmagen.emu.state.issue import complete_bytes
from tmagen.emu.state.mbarrier import barrier_at

RESPONSE_BYTES = 16


def try_cancel(frag: Fragment, cta: Any, place: Any, barrier: Any, multicast: bool) -> None:
    """Ask for a cluster; the response goes to shared memory of this CTA, or of all of the cluster."""
    for lane in frag.lanes.lanes:
        dst, at = cta.own(pick(place, lane)), cta.own(pick(barrier, lane))
        if dst % RESPONSE_BYTES:
            raise Fault(f"clusterlaunchcontrol.try_cancel to {dst:#x}, which is not a multiple of 16", rule="CL-01")
        response = _response(cta)
        for receiver in cta.cluster.ctas if multicast else [cta]:
            if receiver is not cta:
                cta.cluster.peer(receiver.rank)
            phase = barrier_at(receiver, at).phase

            def run(
                receiver: Any = receiver, dst: int = dst, at: int = at, phase: int = phase, raw: bytes = response
            ) -> None:
                receiver.check_shared(dst, RESPONSE_BYTES, "clusterlaunchcontrol.try_cancel")
                receiver.check_overwrite(dst, RESPONSE_BYTES, "clusterlaunchcontrol.try_cancel")
                receiver.smem[dst : dst + RESPONSE_BYTES] = np.frombuffer(raw, np.uint8)
                complete_bytes(receiver, at, phase, RESPONSE_BYTES)

            cta.engine.issue(frag, lane, COPY, run)


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


def first_ctaid(frag: Fragment, response: int) -> tuple[int, int, int]:
    """query_cancel.get_first_ctaid. Undefined after a failed request: a fault."""
    if not response & 1:
        raise Fault("clusterlaunchcontrol.query_cancel.get_first_ctaid of a request that failed", rule="CL-03")
    return response >> 32 & 0xFFFFFFFF, response >> 64 & 0xFFFFFFFF, response >> 96 & 0xFFFFFFFF
