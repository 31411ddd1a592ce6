# SPDX-License-Identifier: Apache-2.0
"""Bytes of global memory that two accesses share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tmagen.emu.checks.shadow import Index


class Hit(NamedTuple):
    """Some bytes of an access to an allocation at `address`, whose data lie at `base` on this machine. `where` is what
    the access touches, as a slice, as offsets, or as a view of the data; `which` marks those that are meant, with the
    bytes of an element as last axis of a view.
    """

    address: int
    base: int
    where: Any
    which: Any

    def __str__(self) -> str:
        return f"{int(self.which.sum()):,} bytes of the allocation at {self.address:#x}"

    def cells(self) -> Index:
        """The addresses of the bytes."""
        where = self.where
        if isinstance(where, slice):
            found = np.arange(where.start, where.stop)[self.which]
        elif where.dtype == np.int64:
            found = where[self.which]
        else:
            places = np.nonzero(self.which)
            found = np.full(places[0].shape, where.__array_interface__["data"][0] - self.base)
            for place, stride in zip(places, (*where.strides, 1), strict=True):
                found += place * stride
        cells: Index = np.unique(found) + self.address
        return cells
