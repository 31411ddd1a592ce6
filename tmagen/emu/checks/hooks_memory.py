# SPDX-License-Identifier: Apache-2.0
"""Loads, stores and atomics under observation. Each takes the place of the function of its name."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmagen.emu.checks.clocks import Lanes
from tmagen.emu.checks.parting import Places
from tmagen.emu.checks.peers import visit
from tmagen.emu.checks.races import NOUNS
from tmagen.emu.checks.shadow import Index
from tmagen.emu.checks.stored import Stored
from tmagen.emu.checks.watch import Watch
from tmagen.emu.isa import access
from tmagen.emu.isa import combine as combining
from tmagen.emu.isa.values import M32, ND
from tmagen.emu.state.fragments import Fragment, lane_set
from tmagen.emu.state.remote import each_cta


def lane_cells(places: Any, nbytes: int) -> Index:
    """Every byte of accesses of `nbytes` at `places`."""
    cells: Index = (np.asarray(places, np.intp).reshape(-1, 1) + np.arange(nbytes, dtype=np.intp)).ravel()
    return cells


def _of_agent(agent: Lanes, frag: Fragment, address: Any) -> Any:
    """The addresses of a group's lanes."""
    mask = agent.mask & frag.lanes.mask
    return address if mask == M32 else address[..., lane_set(mask).index]


def shared(watch: Watch, frag: Fragment, address: Any, nbytes: int, kind: str, stored: Any = None) -> None:
    """An access to shared memory; `address` may hold one row of lanes or several. `stored` is (addresses, vectors of
    values, bytes of a value) of stores.
    """
    memory = watch.shared
    strong = kind == "atom" or watch.site_of(frag).strong
    remote = frag.warp.cta is not watch.cta
    for agent in watch.agents(frag):
        if remote:
            visit(watch, frag, agent, NOUNS[kind], starts=True)
        if address.__class__ is not ND:
            footprint = memory.footprint((address, nbytes), lambda: lane_cells(address, nbytes))
        else:
            active = _of_agent(agent, frag, address)
            key = (active.tobytes(), nbytes)
            footprint = memory.parts.known(key) or memory.footprint(key, lambda a=active: lane_cells(a, nbytes))  # type: ignore[misc]
        note = watch.access(kind, agent, strong=strong)
        note.places = Places(agent.mask & frag.lanes.mask, address, nbytes)
        if stored is not None:
            note.stored = Stored(agent.mask & frag.lanes.mask, *stored)
        if kind == "ld":
            watch.reads(memory, footprint, note, agent)
        else:
            watch.writes(memory, footprint, note, agent)
            if kind == "atom":
                memory.read(footprint, note)


def flag(watch: Watch, frag: Fragment, space: str, address: Any, *, loads: bool, stores: bool) -> None:
    """What a strong access publishes, and learns."""
    flags = watch.session.flags
    if space == "cluster":
        for peer, at in each_cta(frag, watch.cta, address):
            flags.touch(peer.watch, frag, peer.watch.flags, at, loads=loads, stores=stores)
    elif space in ("shared", "global"):
        table = flags.memory if space == "global" else watch.flags
        flags.touch(watch, frag, table, address, loads=loads, stores=stores)


def _loads(watch: Watch, frag: Fragment, space: str, address: Any, nbytes: int) -> None:
    if space == "shared":
        shared(watch, frag, address, nbytes, "ld")
    elif space == "global":
        watch.session.memory.lanes(watch, frag, address, nbytes, "ld")
    elif space == "cluster":
        for peer, at in each_cta(frag, watch.cta, address):
            shared(peer.watch, frag, at, nbytes, "ld")
    if watch.site_of(frag).strong:
        flag(watch, frag, space, address, loads=True, stores=False)


def _stores(watch: Watch, frag: Fragment, space: str, address: Any, nbytes: int, value: Any) -> None:
    if space == "shared":
        vector = value if value.__class__ is tuple else (value,)
        shared(watch, frag, address, nbytes, "st", ((address,), (vector,), nbytes // len(vector)))
    elif space == "global":
        watch.session.memory.lanes(watch, frag, address, nbytes, "st")
    elif space == "cluster":
        for peer, at in each_cta(frag, watch.cta, address):
            shared(peer.watch, frag, at, nbytes, "st")
    if watch.site_of(frag).strong:
        flag(watch, frag, space, address, loads=False, stores=True)


def ld_shared(frag: Fragment, cta: Any, address: Any, nbytes: int) -> Any:
    value = access.ld_shared(frag, cta, address, nbytes)
    _loads(cta.watch, frag, "shared", address, nbytes)
    return value


def ld_shared_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, count: int) -> tuple[Any, ...]:
    values = access.ld_shared_vector(frag, cta, address, nbytes, count)
    _loads(cta.watch, frag, "shared", address, nbytes * count)
    return values


def st_shared(frag: Fragment, cta: Any, address: Any, nbytes: int, value: Any) -> None:
    access.st_shared(frag, cta, address, nbytes, value)
    _stores(cta.watch, frag, "shared", address, nbytes, value)


def st_shared_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, values: tuple[Any, ...]) -> None:
    access.st_shared_vector(frag, cta, address, nbytes, values)
    _stores(cta.watch, frag, "shared", address, nbytes * len(values), values)


def st_shared_together(
    frag: Fragment, cta: Any, nbytes: int, count: int, addresses: tuple[Any, ...], values: tuple[tuple[Any, ...], ...]
) -> bool:
    if not access.st_shared_together(frag, cta, nbytes, count, addresses, values):
        return False
    shared(cta.watch, frag, np.array(addresses), nbytes * count, "st", (addresses, values, nbytes))
    return True


def ld_global(frag: Fragment, cta: Any, address: Any, nbytes: int) -> Any:
    value = access.ld_global(frag, cta, address, nbytes)
    _loads(cta.watch, frag, "global", address, nbytes)
    return value


def ld_global_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, count: int) -> tuple[Any, ...]:
    values = access.ld_global_vector(frag, cta, address, nbytes, count)
    _loads(cta.watch, frag, "global", address, nbytes * count)
    return values


def st_global(frag: Fragment, cta: Any, address: Any, nbytes: int, value: Any) -> None:
    access.st_global(frag, cta, address, nbytes, value)
    _stores(cta.watch, frag, "global", address, nbytes, value)


def st_global_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, values: tuple[Any, ...]) -> None:
    access.st_global_vector(frag, cta, address, nbytes, values)
    _stores(cta.watch, frag, "global", address, nbytes * len(values), values)


def ld_generic(frag: Fragment, cta: Any, address: Any, nbytes: int) -> Any:
    value = access.ld_generic(frag, cta, address, nbytes)
    for space, at in access.windows(frag, address):
        _loads(cta.watch, frag, space, at, nbytes)
    return value


def ld_generic_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, count: int) -> tuple[Any, ...]:
    values = access.ld_generic_vector(frag, cta, address, nbytes, count)
    for space, at in access.windows(frag, address):
        _loads(cta.watch, frag, space, at, nbytes * count)
    return values


def st_generic(frag: Fragment, cta: Any, address: Any, nbytes: int, value: Any) -> None:
    access.st_generic(frag, cta, address, nbytes, value)
    for space, at in access.windows(frag, address):
        _stores(cta.watch, frag, space, at, nbytes, value)


def st_generic_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, values: tuple[Any, ...]) -> None:
    access.st_generic_vector(frag, cta, address, nbytes, values)
    for space, at in access.windows(frag, address):
        _stores(cta.watch, frag, space, at, nbytes * len(values), values)


def _atomics(watch: Watch, frag: Fragment, space: str, address: Any, nbytes: int) -> None:
    if space == "shared":
        shared(watch, frag, address, nbytes, "atom")
    elif space == "cluster":
        for peer, place in each_cta(frag, watch.cta, address):
            shared(peer.watch, frag, place, nbytes, "atom")
    elif space == "global":
        watch.session.memory.lanes(watch, frag, address, nbytes, "atom")
    flag(watch, frag, space, address, loads=True, stores=True)


def atomic(
    frag: Fragment, cta: Any, space: str, address: Any, nbytes: int, combine: Any, operands: tuple[Any, ...]
) -> Any:
    old = combining.atomic(frag, cta, space, address, nbytes, combine, operands)
    if space == "generic":
        for name, at in access.windows(frag, address):
            _atomics(cta.watch, frag, name, at, nbytes)
    else:
        _atomics(cta.watch, frag, space, address, nbytes)
    return old
