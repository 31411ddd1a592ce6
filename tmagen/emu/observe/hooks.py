# SPDX-License-Identifier: Apache-2.0
"""Functions around those that generated code calls, in an observed run: each tells the observer what an instruction is
about to issue, or that a wait need not wait. They go around the checks' functions too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tmagen.emu.instr_descriptor import decode
from tmagen.emu.isa.values import ND
from tmagen.emu.observe.work import Work
from tmagen.emu.state.convergence import pick
from tmagen.emu.state.fragments import WAIT, Fragment
from tmagen.emu.state.issue import signed_coords
from tmagen.emu.state.remote import commit_targets, receivers, within

Function = Callable[..., Any]
_START = 0x3FFF  # the start address in a matrix descriptor, units of 16 bytes (PTX ISA, "Matrix Descriptor")


def wrapped(names: dict[str, Any]) -> dict[str, Function]:
    """The functions to take the place of those of their names."""
    issuing: dict[str, Callable[..., Iterator[Work]]] = {
        "tma_load": _tma_load, "cluster_load": _cluster_load, "bulk_load": _bulk_load,
        "cluster_bulk_load": _cluster_bulk_load, "st_async": _st_async, "tma_store": _tma_store,
        "cluster_bulk_reduce": _cluster_bulk_reduce, "red_async": _red_async, "tma_reduce": _tma_store,
        "bulk_store": _bulk_store, "bulk_reduce": _bulk_store, "mma": _mma,
        "mma_of_pair": _pair_mma, "tmem_cp": _tmem_cp, "commit": _commit, "cluster_commit": _cluster_commit,
        "cp_async": _cp_async,
    }  # fmt: skip
    found = {name: _issues(names[name], describe) for name, describe in issuing.items() if name in names}
    found["mbar_init"] = _init(names["mbar_init"])
    found["mbar_wait"] = _wait(names["mbar_wait"])
    found["mbar_test"] = _test(names["mbar_test"])
    for name in ("bar_sync", "bar_red", "bar_arrive"):
        found[name] = _bar(names[name], waits=name != "bar_arrive", reduces=name == "bar_red")
    return found


def _issues(original: Function, describe: Callable[..., Iterator[Work]]) -> Function:
    def call(frag: Fragment, cta: Any, *operands: Any) -> Any:
        works = cta.observer.works
        works.clear()
        try:
            works.extend(describe(frag, cta, *operands))
        except Exception:  # the instruction itself says what is wrong with its operands
            works.clear()
        cta.frames += 1
        try:
            return original(frag, cta, *operands)
        finally:
            cta.frames -= 1

    return call


# --- copies -----------------------------------------------------------------------------------------------------------


def _tma_load(
    frag: Fragment, cta: Any, place: Any, tmap: Any, coords: tuple[Any, ...], barrier: Any, mask: Any
) -> Iterator[Work]:
    for lane in frag.lanes.lanes:
        nbytes = cta.tensor_map(pick(tmap, lane)).box_bytes
        told = (cta, within(pick(barrier, lane)))
        yield Work("load", nbytes, within(pick(place, lane)), signed_coords(coords, lane), told)


def _cluster_load(
    frag: Fragment, cta: Any, place: Any, tmap: Any, coords: tuple[Any, ...], barrier: Any, mask: Any, pair: bool
) -> Iterator[Work]:
    for lane in frag.lanes.lanes:
        nbytes = cta.tensor_map(pick(tmap, lane)).box_bytes
        dst, at = pick(place, lane), pick(barrier, lane)
        for _, holder in receivers(cta, dst, at, None if mask is None else pick(mask, lane), pair):
            yield Work("load", nbytes, within(dst), signed_coords(coords, lane), (holder, within(at)))


def _bulk_load(
    frag: Fragment, cta: Any, place: Any, source: Any, nbytes: Any, barrier: Any, mask: Any
) -> Iterator[Work]:
    for lane in frag.lanes.lanes:
        told = (cta, within(pick(barrier, lane)))
        yield Work("load", pick(nbytes, lane), within(pick(place, lane)), None, told)


def _cluster_bulk_load(
    frag: Fragment, cta: Any, place: Any, source: Any, nbytes: Any, barrier: Any, mask: Any, shared: bool
) -> Iterator[Work]:
    for lane in frag.lanes.lanes:
        dst, at = pick(place, lane), pick(barrier, lane)
        for _, holder in receivers(cta, dst, at, None if mask is None else pick(mask, lane), False):
            yield Work("load", pick(nbytes, lane), within(dst), None, (holder, within(at)))


def _st_async(
    frag: Fragment, cta: Any, address: Any, nbytes: int, values: tuple[Any, ...], barrier: Any
) -> Iterator[Work]:
    for lane in frag.lanes.lanes:
        holder, at = cta.at(pick(barrier, lane))
        yield Work("load", nbytes * len(values), within(pick(address, lane)), None, (holder, at))


def _red_async(
    frag: Fragment, cta: Any, address: Any, nbytes: int, combine: Any, value: Any, barrier: Any
) -> Iterator[Work]:
    yield from _st_async(frag, cta, address, nbytes, (value,), barrier)


def _cluster_bulk_reduce(
    frag: Fragment, cta: Any, place: Any, source: Any, nbytes: Any, barrier: Any, *_: str
) -> Iterator[Work]:
    yield from _cluster_bulk_load(frag, cta, place, source, nbytes, barrier, None, True)


def _tma_store(frag: Fragment, cta: Any, place: Any, tmap: Any, coords: tuple[Any, ...], *_: Any) -> Iterator[Work]:
    for lane in frag.lanes.lanes:
        nbytes = cta.tensor_map(pick(tmap, lane)).box_bytes
        yield Work("store", nbytes, within(pick(place, lane)), signed_coords(coords, lane))


def _bulk_store(frag: Fragment, cta: Any, target: Any, place: Any, nbytes: Any, *_: Any) -> Iterator[Work]:
    for lane in frag.lanes.lanes:
        yield Work("store", pick(nbytes, lane), within(pick(place, lane)))


def _cp_async(frag: Fragment, cta: Any, place: Any, source: Any, nbytes: int, size: Any) -> Iterator[Work]:
    yield Work("copy", nbytes * frag.lanes.count, within(pick(place, frag.lanes.first)))


# --- tensor cores -----------------------------------------------------------------------------------------------------


def start_of(descriptor: int) -> int:
    """The shared address in a matrix descriptor."""
    return (descriptor & _START) << 4


def _mma(
    frag: Fragment, cta: Any, kind: str, d: Any, a: Any, b: Any, idesc: Any, accumulate: Any, in_tmem: bool, *_: Any
) -> Iterator[Work]:
    for lane in frag.lanes.lanes:
        desc = decode(kind, pick(idesc, lane))
        place = start_of(pick(b if in_tmem else a, lane))
        yield Work("mma", 0, place, None, None, (desc.m, desc.n, desc.k), desc.a.nbytes, not in_tmem)


def _pair_mma(
    frag: Fragment, cta: Any, kind: str, d: Any, a: Any, b: Any, idesc: Any, accumulate: Any, in_tmem: bool, *_: Any
) -> Iterator[Work]:
    for lane in frag.lanes.lanes:
        desc = decode(kind, pick(idesc, lane), 2)
        place = start_of(pick(b if in_tmem else a, lane))
        # With M = 256 each CTA computes 128 x N, with M = 128 64 rows in two halves: 128 x N/2.
        columns = desc.n if desc.m == 256 else desc.n // 2
        yield Work("mma", 0, place, None, None, (128, columns, desc.k), desc.a.nbytes, not in_tmem)


def _tmem_cp(frag: Fragment, cta: Any, shape: str, address: Any, descriptor: Any, pair: bool) -> Iterator[Work]:
    for lane in frag.lanes.lanes:
        rows, bits = (int(number) for number in shape.split(".")[0].removesuffix("b").split("x"))
        yield Work("tmem copy", rows * bits // 8, start_of(pick(descriptor, lane)))


def _commit(frag: Fragment, cta: Any, barrier: Any, mask: Any) -> Iterator[Work]:
    for lane in frag.lanes.lanes:
        yield Work("commit", told=(cta, within(pick(barrier, lane))))


def _cluster_commit(frag: Fragment, cta: Any, barrier: Any, mask: Any) -> Iterator[Work]:
    for lane in frag.lanes.lanes:
        for holder, at in commit_targets(cta, pick(barrier, lane), None if mask is None else pick(mask, lane)):
            yield Work("commit", told=(holder, at))


# --- barriers ---------------------------------------------------------------------------------------------------------


def _init(original: Function) -> Function:
    def mbar_init(frag: Fragment, cta: Any, address: Any, count: Any) -> None:
        original(frag, cta, address, count)
        for lane in frag.lanes.lanes:
            cta.observer.made(cta, cta.mbarriers[pick(address, lane)])

    return mbar_init


def _wait(original: Function) -> Function:
    def mbar_wait(
        frag: Fragment, cta: Any, address: Any, state: Any, by_parity: bool, next_block: int, number: int
    ) -> int:
        code: int = original(frag, cta, address, state, by_parity, next_block, number)
        if frag.state != WAIT and address.__class__ is not ND:
            cta.observer.passed(cta, frag, address)
        return code

    return mbar_wait


def _test(original: Function) -> Function:
    def mbar_test(frag: Fragment, cta: Any, address: Any, state: Any, by_parity: bool) -> Any:
        seen = original(frag, cta, address, state, by_parity)
        if address.__class__ is not ND and (seen.__class__ is ND or seen):
            cta.observer.passed(cta, frag, address)
        return seen

    return mbar_test


def _bar(original: Function, *, waits: bool, reduces: bool) -> Function:
    def bar(frag: Fragment, cta: Any, index: Any, *operands: Any) -> Any:
        if reduces and frag.wait is not None:
            return original(frag, cta, index, *operands)  # it has waited, and comes for the result
        number = pick(index, frag.lanes.first)
        cta.observer.arrives(cta, frag, number)
        code = original(frag, cta, index, *operands)
        cta.observer.arrived(cta, frag, number, waits)
        return code

    return bar
