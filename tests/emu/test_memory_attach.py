# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from tmagen.emu import Fault, GlobalMemory


def test_attached_memory_is_used_in_place_until_it_is_detached() -> None:
    memory = GlobalMemory()
    own = memory.allocate(64)
    data = np.zeros(100, np.uint8)
    memory.attach(1 << 45, data)
    memory.view((1 << 45) + 10, 2)[:] = 7
    assert data[9:13].tolist() == [0, 7, 7, 0]
    with pytest.raises(Fault, match="outside every allocation"):
        memory.view((1 << 45) + 99, 2)
    memory.detach(1 << 45)
    with pytest.raises(Fault):
        memory.view((1 << 45) + 10, 2)
    # What follows is placed as if nothing had been attached.
    assert own.address < memory.allocate(64).address < 1 << 45


def test_overlaps_and_unknown_addresses_are_refused() -> None:
    memory = GlobalMemory()
    memory.attach(4096, np.zeros(32, np.uint8))
    for address in (4096, 4100, 4096 - 16):
        with pytest.raises(ValueError, match="overlap another allocation"):
            memory.attach(address, np.zeros(32, np.uint8))
    memory.attach(4128, np.zeros(0, np.uint8))
    for address in (0, 4100, 1 << 45):
        with pytest.raises(ValueError, match="no allocation begins at"):
            memory.detach(address)
