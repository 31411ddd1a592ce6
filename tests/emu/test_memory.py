# SPDX-License-Identifier: Apache-2.0
"""Global memory: what is mapped, what is not, and what workers share."""

from __future__ import annotations

import os
import resource
from itertools import pairwise

import numpy as np
import pytest

from tmagen.emu.errors import Fault
from tmagen.emu.memory import GlobalMemory


def test_bytes_are_written_in_place():
    memory = GlobalMemory()
    allocation = memory.allocate(1000)
    memory.view(allocation.address + 10, 4)[:] = (1, 2, 3, 4)
    assert allocation.data[9:15].tolist() == [0, 1, 2, 3, 4, 0]
    assert memory.view(allocation.address, 1000).base is not None
    assert allocation.end == allocation.address + 1000


@pytest.mark.parametrize("align", [16, 256, 4096, 1 << 21])
def test_own_addresses_are_aligned_and_apart(align):
    memory = GlobalMemory()
    spans = [(a.address, a.end) for a in (memory.allocate(n, align=align) for n in (1, 255, 100_000, 0, 16))]
    assert all(start % align == 0 for start, _ in spans)
    ordered = sorted(spans)
    assert all(after[0] - before[1] >= 1 << 29 for before, after in pairwise(ordered))


def test_a_given_address_is_kept_and_own_ones_avoid_it():
    memory = GlobalMemory()
    first = memory.allocate(64)
    fixed = memory.allocate(4096, address=0x7F12_3400_0000)
    below = memory.allocate(4096, address=0x1000)
    own = memory.allocate(64)
    assert (fixed.address, below.address) == (0x7F12_3400_0000, 0x1000)
    assert own.address >= fixed.end
    assert [a.address for a in memory.allocations] == sorted(a.address for a in (first, fixed, below, own))


@pytest.mark.parametrize(
    ("address", "nbytes"), [(0x10000, 1), (0x10FF0, 32), (0xFFF0, 32), (0xF000, 0x3000), (0x10000, 0)]
)
def test_overlap_is_refused(address, nbytes):
    memory = GlobalMemory()
    memory.allocate(0x1000, address=0x10000)
    with pytest.raises(ValueError, match="overlap"):
        memory.allocate(nbytes, address=address)


def test_neighbours_may_touch_but_an_access_may_not_cross():
    memory = GlobalMemory()
    memory.allocate(0x1000, address=0x10000)
    memory.allocate(0x1000, address=0x11000)
    assert memory.view(0x11000, 0x1000).size == 0x1000
    with pytest.raises(Fault, match="outside every allocation"):
        memory.view(0x10FFF, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        {"nbytes": -1},
        {"nbytes": 1, "align": 24},
        {"nbytes": 1, "align": 8},
        {"nbytes": 1, "address": 24},
        {"nbytes": 1, "address": 0},
        {"nbytes": 32, "address": (1 << 48) - 16},
    ],
)
def test_impossible_allocations_are_refused(arguments):
    with pytest.raises(ValueError, match=r"cannot allocate|alignment|address"):
        GlobalMemory().allocate(**arguments)


def test_accesses_outside_fault_with_address_and_neighbour():
    memory = GlobalMemory()
    allocation = memory.allocate(100)
    start = allocation.address
    for address, nbytes in ((start - 1, 1), (start + 100, 1), (start + 99, 2), (0, 1)):
        with pytest.raises(Fault, match=f"{nbytes} bytes at {address:#x}"):
            memory.view(address, nbytes)
    with pytest.raises(Fault, match=f"nearest below is 100 bytes at {allocation.address:#x}"):
        memory.view(allocation.end + 5, 1)
    # The last hit is remembered; it must not answer for another range.
    memory.view(allocation.address, 100)
    with pytest.raises(Fault):
        memory.view(allocation.address, 101)


def test_a_forked_worker_writes_the_same_memory():
    memory = GlobalMemory()
    allocation = memory.allocate(1 << 16)
    pid = os.fork()
    if pid == 0:
        memory.view(allocation.address + 77, 3)[:] = 7
        os._exit(0)
    os.waitpid(pid, 0)
    assert allocation.data[76:81].tolist() == [0, 7, 7, 7, 0]


def test_large_sparse_memory_costs_only_what_is_touched():
    memory = GlobalMemory()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    allocation = memory.allocate(40 << 30)
    view = memory.view(allocation.address + (39 << 30), 16)
    view[:] = 5
    assert allocation.data[39 << 30] == 5
    assert np.count_nonzero(allocation.data[(39 << 30) - 4096 : (39 << 30) + 4096]) == 16
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
