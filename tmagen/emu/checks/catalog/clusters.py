# SPDX-License-Identifier: Apache-2.0
"""Clusters of CTAs."""

from __future__ import annotations

from tmagen.emu.checks.registry import Check, add

add(
    Check(
        "CB-01", "E", "Arrivals and waits of the cluster's barrier do not alternate",
        "Each thread arrives once and waits once per phase, and does not end in between.",
        "Two arrives in a row on one way through the kernel; an arrive by threads that leave.",
        "Pair every barrier.cluster.arrive with a wait.",
        "barrier.cluster", "fault",
    ),
    Check(
        "CB-06", "E", "Memory of a CTA that has exited",
        "An access to a peer's shared memory or mbarrier, a multicast, a remote arrive or an MMA of a pair reaches a "
        "CTA that has ended: its memory may be another's. Told where it has, and where nothing orders the end of the "
        "CTA after the access, or a load or store after its start, so that it may. A bulk copy or reduction from "
        "shared memory to a peer reads its own CTA's memory until it completes, on an mbarrier of the peer.",
        "A consumer exits while a peer's copy to it is outstanding.",
        "A barrier of the cluster before the exit, or an mbarrier handshake that says the same.",
        "Cluster of Cooperative Thread Arrays; mapa", "fault",
    ),
    Check(
        "CB-07", "E", "A CTA rank that the cluster does not have",
        "Ranks run from 0 to %cluster_nctarank - 1.",
        "An arrive at rank 1 in a launch without clusters; mapa alone does no harm.",
        "Take ranks from %cluster_nctarank.",
        "mapa", "fault",
    ),
)  # fmt: skip
