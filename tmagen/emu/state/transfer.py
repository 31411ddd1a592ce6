# SPDX-License-Identifier: Apache-2.0
"""Work under way, as what a policy can look into: bytes that move, an mbarrier or a bulk group that is told, an MMA.

Called, each does all of it at once. A load into shared memory can `move` its bytes before it `tell`s the mbarrier; a
store into global memory can `read` its source before it `land`s. Both say which bytes they write.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.emu import reduce, tma
from tmagen.emu.errors import EmulatorError
from tmagen.emu.memory import Bytes
from tmagen.emu.state.mbarrier import complete_bytes
from tmagen.emu.tensormap import TensorMap


class Load(ABC):
    """A copy into a CTA's shared memory."""

    __slots__ = ()
    receiver: Any  # the CTA that gets the bytes

    def __call__(self) -> None:
        self.tell(self.move())

    @abstractmethod
    def move(self) -> int:
        """Write the bytes; how many the mbarrier is told of."""

    @abstractmethod
    def tell(self, nbytes: int) -> None:
        """The mbarrier learns of them."""

    @abstractmethod
    def region(self) -> tuple[int, int]:
        """First shared address, and bytes from there on, that hold all that is written."""

    def spoil(self, value: int) -> None:
        """Give every byte that will be written a value: from now on nobody may read what was there."""
        first, nbytes = self.region()
        receiver = self.receiver
        if first < receiver.first_shared or first + nbytes > receiver.shared_end:
            return  # which the copy itself will say
        if receiver.mma_queue:
            receiver.flush_mma()
        receiver.smem[first : first + nbytes] = value


def constant(raw: bytes) -> Callable[[], Bytes]:
    """A source whose bytes are known when the copy is issued."""
    data = np.frombuffer(raw, np.uint8)
    return lambda: data


class BoxLoad(Load):
    """A box of a tensor. `alive` names CTAs that have to live still when the bytes arrive."""

    __slots__ = ("alive", "at", "coords", "dst", "holder", "phase", "receiver", "tmap")

    def __init__(
        self,
        receiver: Any,
        holder: Any,
        tmap: TensorMap,
        dst: int,
        coords: tuple[int, ...],
        at: int,
        phase: int,
        alive: Callable[[], None] | None = None,
    ) -> None:
        self.receiver, self.holder = receiver, holder
        self.tmap, self.dst, self.coords = tmap, dst, coords
        self.at, self.phase, self.alive = at, phase, alive

    def move(self) -> int:
        if self.alive is not None:
            self.alive()
        return write_box(self.receiver, self.tmap, self.dst, self.coords)

    def tell(self, nbytes: int) -> None:
        if self.alive is not None:
            self.alive()
        complete_bytes(self.holder, self.at, self.phase, nbytes)

    def region(self) -> tuple[int, int]:
        return self.dst, self.tmap.footprint

    def spoil(self, value: int) -> None:
        cta, tmap = self.receiver, self.tmap
        try:
            tma.check(tmap, cta.smem, self.dst, self.coords, "load")
        except EmulatorError:
            return  # which the copy itself will say
        if cta.mma_queue:
            cta.flush_mma()
        # What a narrow row of a swizzled box leaves free is not the box's.
        base, units = tma.shared_units(tmap, self.dst)
        unit = tmap.pattern.unit
        cells = cta.smem[base:]
        cells[: cells.size // unit * unit].reshape(-1, unit)[units.ravel()] = value


class SpanLoad(Load):
    """Contiguous bytes, which `source` gives."""

    __slots__ = ("align", "alive", "at", "dst", "holder", "nbytes", "phase", "receiver", "source", "what")

    def __init__(
        self,
        receiver: Any,
        holder: Any,
        dst: int,
        nbytes: int,
        source: Callable[[], Bytes],
        at: int,
        phase: int,
        what: str,
        alive: Callable[[], None] | None = None,
        align: int = 1,
    ) -> None:
        self.receiver, self.holder = receiver, holder
        self.dst, self.nbytes, self.source = dst, nbytes, source
        self.at, self.phase, self.what, self.alive, self.align = at, phase, what, alive, align

    def move(self) -> int:
        cta, dst, n = self.receiver, self.dst, self.nbytes
        if self.alive is not None:
            self.alive()
        if cta.mma_queue:
            cta.flush_mma()
        cta.check_shared(dst, n, self.what, self.align)
        cta.check_overwrite(dst, n, self.what)
        if n:
            cta.smem[dst : dst + n] = self.source()
        return n

    def tell(self, nbytes: int) -> None:
        if self.alive is not None:
            self.alive()
        complete_bytes(self.holder, self.at, self.phase, nbytes)

    def region(self) -> tuple[int, int]:
        return self.dst, self.nbytes


class SpanReduction(SpanLoad):
    """A copy that combines with what is there when it takes effect: nothing else may be there until then."""

    __slots__ = ()

    def spoil(self, value: int) -> None:
        """Its destination is read."""


def write_box(cta: Any, tmap: TensorMap, dst: int, coords: tuple[int, ...]) -> int:
    """Fill a box of a CTA's shared memory; the bytes that an mbarrier is told of."""
    if cta.mma_queue:
        cta.flush_mma()
    if cta.low_barrier < dst + tmap.footprint and dst < cta.high_barrier:
        cta.check_overwrite(dst, tmap.footprint, "tensor copy")
    if dst < cta.first_shared:
        cta.bad_shared(dst, tmap.footprint, "tensor copy")
    return tma.load(tmap, cta.memory, cta.smem, dst, coords)


class Store(ABC):
    """A copy or a reduction out of a CTA's shared memory into global memory."""

    __slots__ = ("cta", "image")
    reduces = False

    def __init__(self, cta: Any) -> None:
        self.cta = cta
        self.image: Bytes | None = None

    def __call__(self) -> None:
        cta = self.cta
        if cta.mma_queue:
            cta.flush_mma()
        self.write(cta.smem)

    def read(self) -> None:
        """Take the source as it is now; what happens to it after this does not matter any more."""
        cta = self.cta
        if cta.mma_queue:
            cta.flush_mma()
        first, nbytes = self.source()
        # As large as shared memory, since its index is an address; pages that are not written cost nothing.
        self.image = np.empty(cta.smem.size, np.uint8)
        self.image[first : first + nbytes] = cta.smem[first : first + nbytes]

    def land(self) -> None:
        """Write what was read."""
        assert self.image is not None
        self.write(self.image)
        self.image = None

    @abstractmethod
    def write(self, smem: Bytes) -> None:
        """Put the bytes of `smem`, as it was when it was read, where they go."""

    @abstractmethod
    def source(self) -> tuple[int, int]:
        """First shared address, and bytes, of what is read."""

    @abstractmethod
    def target(self) -> npt.NDArray[Any] | None:
        """What is written, in place; None for nothing. Raises EmulatorError where that cannot be."""


class BoxStore(Store):
    """A box of a tensor."""

    __slots__ = ("coords", "src", "tmap")

    def __init__(self, cta: Any, tmap: TensorMap, src: int, coords: tuple[int, ...]) -> None:
        super().__init__(cta)
        self.tmap, self.src, self.coords = tmap, src, coords

    def write(self, smem: Bytes) -> None:
        tma.store(self.tmap, self.cta.memory, smem, self.src, self.coords)

    def source(self) -> tuple[int, int]:
        return self.src, self.tmap.footprint

    def target(self) -> npt.NDArray[Any] | None:
        cta, tmap = self.cta, self.tmap
        tma.check(tmap, cta.smem, self.src, self.coords, "store")
        tma.check_target(tmap, self.coords, "store")
        return tma.global_view(tmap, cta.memory, self.coords, storing=True)


class BoxReduce(BoxStore):
    """A box that is reduced into a tensor."""

    __slots__ = ("name",)
    reduces = True

    def __init__(self, cta: Any, tmap: TensorMap, src: int, coords: tuple[int, ...], name: str) -> None:
        super().__init__(cta, tmap, src, coords)
        self.name = name

    def write(self, smem: Bytes) -> None:
        reduce.box(self.tmap, self.cta.memory, smem, self.src, self.coords, self.name)


class SpanStore(Store):
    """Contiguous bytes."""

    __slots__ = ("dst", "nbytes", "src")

    def __init__(self, cta: Any, dst: int, src: int, nbytes: int) -> None:
        super().__init__(cta)
        self.dst, self.src, self.nbytes = dst, src, nbytes

    def write(self, smem: Bytes) -> None:
        if self.nbytes:
            self.cta.memory.view(self.dst, self.nbytes)[:] = smem[self.src : self.src + self.nbytes]

    def source(self) -> tuple[int, int]:
        return self.src, self.nbytes

    def target(self) -> npt.NDArray[Any] | None:
        return self.cta.memory.view(self.dst, self.nbytes) if self.nbytes else None


class SpanReduce(SpanStore):
    """Contiguous bytes that are reduced into global memory."""

    __slots__ = ("kind", "name")
    reduces = True

    def __init__(self, cta: Any, dst: int, src: int, nbytes: int, name: str, kind: str) -> None:
        super().__init__(cta, dst, src, nbytes)
        self.name, self.kind = name, kind

    def write(self, smem: Bytes) -> None:
        reduce.span(self.cta.memory, smem, self.dst, self.src, self.nbytes, self.name, self.kind)


class StartMma:
    """An MMA of one CTA or of a pair joins those that run when somebody needs the result."""

    __slots__ = ("cta", "line", "op")

    def __init__(self, cta: Any, op: Any, line: int) -> None:
        self.cta, self.op, self.line = cta, op, line

    def __call__(self) -> None:
        self.cta.mma_queue.append(self.op)
        self.cta.mma_lines.append(self.line)
