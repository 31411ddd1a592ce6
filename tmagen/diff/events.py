# SPDX-License-Identifier: Apache-2.0
"""What a kernel does, as sentences: each recorded event in words of tiles, stages and barriers, runs folded."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tmagen.diff.event import Event, area, prefetch_text
from tmagen.diff.folding import folded
from tmagen.diff.layout import Box, Names
from tmagen.diff.record import Executed
from tmagen.emu.compile_emit import PARAM_WINDOW
from tmagen.emu.errors import EmulatorError
from tmagen.emu.instr_descriptor import decode
from tmagen.emu.module import Instruction

_WGMMA_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)$")

COLUMN_MASK = 0xFFFF
"""The column of a tensor-memory address (PTX ISA "Tensor Memory Addressing": lane above, column below)."""


def events_of(recorded: Sequence[Executed], names: Names, threads: int) -> list[Event]:
    """The events worth telling, in order, runs of the same step folded into one."""
    writer = _Writer(names, threads)
    return folded(writer.write(event) for event in recorded)


class _Writer:
    """Puts one recorded event into words."""

    def __init__(self, names: Names, threads: int) -> None:
        self.names = names
        self.threads = threads

    def write(self, event: Executed) -> Event | None:
        """None for what is of no interest: parameters, and addresses read back from shared memory."""
        write: Callable[[Executed], Event | None] | None = getattr(self, f"on_{event.kind}", None)
        return self._other(event) if write is None else write(event)

    def _event(
        self,
        event: Executed,
        op: str,
        text: str,
        about: str = "",
        facts: Sequence[tuple[str, object]] = (),
        varying: Sequence[tuple[str, object]] = (),
    ) -> Event:
        return Event(
            op=op,
            about=about,
            facts=tuple((name, str(value)) for name, value in facts),
            varying=tuple((name, str(value)) for name, value in varying),
            who=who(event.threads, self.threads),
            text=text,
            line=event.instruction.line,
        )

    def _barrier(self, address: int) -> str:
        return self.names.barriers.get(address, f"the mbarrier at {address - self.names.dynamic_base:+,}")

    def _of_barrier(self, address: int) -> tuple[str, tuple[tuple[str, object], ...]]:
        """A barrier's family, which aligns, and its stage, which varies."""
        name, _, index = self._barrier(address).partition("[")
        return name, (("stage", index.rstrip("]")),) if index else ()

    # --- set-up and synchronisation -----------------------------------------------------------------------------------

    def on_barrier_init(self, event: Executed) -> Event:
        address, count = event.operands
        name = self._barrier(address)
        return self._event(event, "init", f"init {name}, {_arrivals(count)}", "mbarriers", ((name, _arrivals(count)),))

    def on_barrier_inval(self, event: Executed) -> Event:
        return self._event(event, "inval", f"invalidate {self._barrier(event.operands[0])}")

    def on_barrier_arrive(self, event: Executed) -> Event:
        if len(event.operands) == 2:  # a named barrier
            index, count = event.operands
            return self._event(event, "arrive", f"bar.arrive {index}, {count}", str(index), (("threads", count),))
        address, count, expected = event.operands
        name, stage = self._of_barrier(address)
        if expected is None:
            return self._event(event, "arrive", f"arrive on {self._barrier(address)}", name, (("count", count),), stage)
        text = f"arrive on {self._barrier(address)}, expect {expected:,} bytes"
        return self._event(event, "expect", text, name, (("bytes", f"{expected:,}"),), stage)

    def on_barrier_wait(self, event: Executed) -> Event:
        address, parity = event.operands
        name, stage = self._of_barrier(address)
        text = f"wait for {self._barrier(address)}, parity {parity}"
        return self._event(event, "wait", text, name, (), (*stage, (f"{name} parity", parity)))

    def on_barrier(self, event: Executed) -> Event:
        index, count = event.operands
        threads = self.threads if count is None else count
        text = f"bar.sync {index}: {threads} threads meet"
        return self._event(event, "meet", text, "", (("barrier", index), ("threads", threads)))

    def on_fence(self, event: Executed) -> Event:
        return self._event(event, "fence", event.instruction.opcode, event.instruction.opcode)

    def on_tcgen05_fence(self, event: Executed) -> Event:
        return self._event(event, "fence", event.instruction.opcode, event.instruction.opcode)

    def on_warp_sync(self, event: Executed) -> None:
        return None

    # --- copies -------------------------------------------------------------------------------------------------------

    def on_tma_load(self, event: Executed) -> Event:
        place, tensor_map, coords, barrier = event.operands
        box = self._box(tensor_map, coords)
        name, stage = self._of_barrier(barrier)
        index = self.names.stage_of(place)
        where = f"stage {index}" if index is not None else f"shared memory {place - self.names.dynamic_base:+,}"
        return self._event(
            event,
            "TMA load",
            f"TMA load of {area(box)} into {where}, {box.bytes:,} bytes on {self._barrier(barrier)}",
            box.operand,
            (("rows", box.rows), ("columns", box.columns), ("bytes", f"{box.bytes:,}"), ("barrier", name)),
            (*stage, ("row", box.row), ("column", box.column)),
        )

    def on_tma_store(self, event: Executed) -> Event:
        _, tensor_map, coords = event.operands
        box = self._box(tensor_map, coords)
        return self._event(
            event,
            "TMA store",
            f"TMA store of {area(box)}, {box.bytes:,} bytes",
            box.operand,
            (("rows", box.rows), ("columns", box.columns), ("bytes", f"{box.bytes:,}")),
            (("row", box.row), ("column", box.column)),
        )

    def on_map_prefetch(self, event: Executed) -> Event:
        address, space = event.operands
        found = self.names.maps.get(address + PARAM_WINDOW if space == "param" else address)
        operand = "?" if found is None else found.operand
        return self._event(event, "prefetch", prefetch_text([operand]), "tensor maps", ((operand, "1"),))

    def on_tma_prefetch(self, event: Executed) -> Event:
        tensor_map, coords = event.operands
        box = self._box(tensor_map, coords)
        return self._event(
            event,
            "prefetch",
            f"prefetch {area(box)} into L2",
            box.operand,
            (("rows", box.rows), ("columns", box.columns)),
            (("row", box.row), ("column", box.column)),
        )

    def _box(self, tensor_map: int, coords: tuple[int, ...]) -> Box:
        found = self.names.maps.get(tensor_map)
        signed = tuple((value ^ 1 << 31) - (1 << 31) for value in coords)
        if found is None:
            return Box("?", 0, 0, 0, 0, 0)
        strides = found.fields.strides
        pitch = self.names.pitches.get(found.operand, strides[0] if strides else 1)
        return found.box_at(signed, pitch)

    def on_bulk_commit(self, event: Executed) -> Event:
        return self._event(event, "commit_group", "cp.async.bulk.commit_group")

    def on_bulk_wait(self, event: Executed) -> Event:
        count, read = event.operands
        text = f"cp.async.bulk.wait_group{'.read' if read else ''} {count}"
        return self._event(
            event, "wait_group", text, "", (("waits for", "reads" if read else "writes"), ("left", count))
        )

    # --- tensor memory and MMA ----------------------------------------------------------------------------------------

    def on_tmem_alloc(self, event: Executed) -> Event:
        columns = event.operands[1]
        return self._event(event, "alloc", f"allocate {columns} TMEM columns", "", (("columns", columns),))

    def on_tmem_relinquish(self, event: Executed) -> Event:
        return self._event(event, "relinquish", "give the allocation permit back")

    def on_tmem_dealloc(self, event: Executed) -> Event:
        columns = event.operands[1]
        return self._event(event, "dealloc", f"free {columns} TMEM columns", "", (("columns", columns),))

    def on_mma(self, event: Executed) -> Event:
        d, _, b, idesc, accumulate = event.operands
        shape = _mma_shape(event.instruction, idesc)
        stage = self.names.stage_of((b & 0x3FFF) << 4)
        text = f"MMA {shape}, A and B of stage {stage}, {'adds' if accumulate else 'overwrites'}"
        return self._event(
            event,
            "MMA",
            text,
            "",
            (("shape", shape), ("D column", d & COLUMN_MASK)),
            (("stage", stage), ("first", "adds" if accumulate else "overwrites")),
        )

    def on_wgmma(self, event: Executed) -> Event:
        shape = _WGMMA_SHAPE.sub(
            r"\1x\2x\3", next(part for part in event.instruction.parts if _WGMMA_SHAPE.match(part))
        )
        stage = self.names.stage_of((event.operands[1] & 0x3FFF) << 4)
        text = f"MMA {shape}, B of stage {stage}"
        return self._event(event, "MMA", text, "", (("shape", shape),), (("stage", stage), ("first", "runs")))

    def on_wgmma_fence(self, event: Executed) -> Event:
        return self._event(event, "fence", event.instruction.opcode, event.instruction.opcode)

    def on_wgmma_commit(self, event: Executed) -> Event:
        return self._event(event, "MMA commit", event.instruction.opcode)

    def on_wgmma_wait(self, event: Executed) -> Event:
        left = event.operands[0]
        return self._event(event, "MMA wait", f"wgmma.wait_group {left}", "", (("left", left),))

    def on_commit(self, event: Executed) -> Event:
        name, stage = self._of_barrier(event.operands[0])
        return self._event(event, "commit", f"tcgen05.commit to {self._barrier(event.operands[0])}", name, (), stage)

    def on_tmem_load(self, event: Executed) -> Event:
        shape, number = _transfer(event.instruction)
        first = event.operands[0] & COLUMN_MASK
        text = f"tcgen05.ld {shape}.x{number} from column {first}"
        return self._event(event, "TMEM load", text, "", (("shape", f"{shape}.x{number}"), ("column", first)))

    def on_tmem_wait(self, event: Executed) -> Event:
        return self._event(event, "TMEM wait", f"tcgen05.{event.operands[0]}", event.operands[0])

    # --- memory -------------------------------------------------------------------------------------------------------

    def on_load(self, event: Executed) -> Event | None:
        space, _, nbytes = event.operands
        if space in ("param", "shared", "local", "generic", "const"):
            return None
        return self._event(event, "load", f"ld.{space} of {nbytes} bytes", space, (("bytes", nbytes),))

    def on_store(self, event: Executed) -> Event | None:
        space, _, nbytes = event.operands
        if space == "local":
            return None
        return self._event(event, "store", f"st.{space} of {nbytes} bytes", space, (("bytes", nbytes),))

    def _other(self, event: Executed) -> Event:
        opcode = event.instruction.opcode
        return self._event(event, opcode, opcode)


def who(threads: dict[int, int], total: int) -> str:
    """Threads in words."""
    lanes = sum(mask.bit_count() for mask in threads.values())
    if lanes == total:
        return f"all {total} threads"
    if lanes == 1:
        return f"1 thread of warp {next(iter(threads))}"
    warps = sorted(threads)
    named = f"warp {warps[0]}" if len(warps) == 1 else f"warps {warps[0]}-{warps[-1]}"
    return named if all(mask == (1 << 32) - 1 for mask in threads.values()) else f"{lanes} threads of {named}"


def _arrivals(count: int) -> str:
    return f"{count} arrival{'' if count == 1 else 's'}"


def _mma_shape(instruction: Instruction, idesc: int) -> str:
    kind = next(part.removeprefix("kind::") for part in instruction.parts if part.startswith("kind::"))
    try:
        fields = decode(kind, idesc)
    except EmulatorError:
        return f"kind::{kind} {idesc:#010x}"
    return f"{fields.m}x{fields.n}x{fields.k}"


def _transfer(instruction: Instruction) -> tuple[str, int]:
    shape = next(part for part in instruction.parts if part[:2].isdigit())
    number = next(part for part in instruction.parts if part[0] == "x" and part[1:].isdigit())
    return shape, int(number[1:])
