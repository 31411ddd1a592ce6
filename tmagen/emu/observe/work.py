# SPDX-License-Identifier: Apache-2.0
"""What an asynchronous operation does, as far as its time and its picture need to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Work:
    """One operation. `kind` is load, store, mma, tmem copy, wgmma, commit, copy (cp.async) or other."""

    kind: str
    nbytes: int = 0
    place: int = 0  # shared address that a load writes, a store reads, and an MMA's A, or B where A is elsewhere
    coords: tuple[int, ...] | None = None  # of a tensor copy, innermost first
    told: tuple[Any, int] | None = None  # the CTA and the address of the mbarrier that a load completes on
    shape: tuple[int, int, int] = (0, 0, 0)  # M, N, K of an MMA, of one CTA of a pair
    element_bytes: int = 2
    reads_a: bool = True  # from shared memory


OTHER = Work("other")
