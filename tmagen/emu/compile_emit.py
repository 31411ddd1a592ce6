# SPDX-License-Identifier: Apache-2.0
"""Writing the Python text of one basic block: names for registers, literals, the select of a guarded instruction."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from tmagen.emu.compile_wgmma import WgmmaTable
from tmagen.emu.isa.registry import Unknown
from tmagen.emu.module import FloatImm, Imm, Instruction, Not, Operand, Reg, Sink, Special, Sym, Vec
from tmagen.emu.timing.cost import Clock

# Addresses of the windows in generic address space. A bit above every address that GlobalMemory hands out.
SHARED_WINDOW = 1 << 56
LOCAL_WINDOW = 1 << 57
PARAM_WINDOW = 1 << 58

SPECIAL = {
    "tid.x": "own(F, F.warp.tx)", "tid.y": "own(F, F.warp.ty)", "tid.z": "own(F, F.warp.tz)",
    "ntid.x": "C.ntid[0]", "ntid.y": "C.ntid[1]", "ntid.z": "C.ntid[2]",
    "ctaid.x": "C.ctaid[0]", "ctaid.y": "C.ctaid[1]", "ctaid.z": "C.ctaid[2]",
    "nctaid.x": "C.nctaid[0]", "nctaid.y": "C.nctaid[1]", "nctaid.z": "C.nctaid[2]",
    "clusterid.x": "C.clusterid[0]", "clusterid.y": "C.clusterid[1]", "clusterid.z": "C.clusterid[2]",
    "nclusterid.x": "C.nclusterid[0]", "nclusterid.y": "C.nclusterid[1]", "nclusterid.z": "C.nclusterid[2]",
    "cluster_ctaid.x": "C.cluster_ctaid[0]", "cluster_ctaid.y": "C.cluster_ctaid[1]",
    "cluster_ctaid.z": "C.cluster_ctaid[2]", "cluster_nctaid.x": "C.cluster_nctaid[0]",
    "cluster_nctaid.y": "C.cluster_nctaid[1]", "cluster_nctaid.z": "C.cluster_nctaid[2]",
    "cluster_ctarank": "C.rank", "cluster_nctarank": "C.cluster_nctarank",
    "is_explicit_cluster": "C.is_explicit_cluster",
    "laneid": "own(F, F.warp.lane)", "warpid": "F.warp.index", "nwarpid": "C.nwarps",
    "smid": "C.smid", "nsmid": "C.nsmid", "gridid": "0",
    "lanemask_eq": "lanemask_eq(F)", "lanemask_lt": "lanemask_lt(F)", "lanemask_le": "lanemask_le(F)",
    "lanemask_gt": "lanemask_gt(F)", "lanemask_ge": "lanemask_ge(F)",
    "dynamic_smem_size": "C.dynamic_smem_bytes", "total_smem_size": "C.total_smem_bytes",
    "clock": "C.tick(32)", "clock64": "C.tick(64)", "globaltimer": "C.tick(64)", "globaltimer_lo": "C.tick(32)",
}  # fmt: skip

WIDTH = {
    "pred": 1, "b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16,
    "b32": 32, "u32": 32, "s32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32, "b64": 64, "u64": 64, "s64": 64, "f64": 64,
    "b128": 128,
}  # fmt: skip


# What checks hear of by an event, as no function of the emulator runs for it.
_WATCHED = frozenset(("fence", "warp_sync", "tmem_relinquish", "tmem_wait", "tcgen05_fence", "wgmma_fence"))


@dataclass
class Symbols:
    """Where names are. Shared and local offsets and parameter offsets are fixed when an entry is compiled; global
    addresses are not.
    """

    shared: dict[str, int] = field(default_factory=dict)
    local: dict[str, int] = field(default_factory=dict)
    param: dict[str, int] = field(default_factory=dict)
    memory: set[str] = field(default_factory=set)  # .global and .const variables


class Emitter:
    """The text of one block. Emit functions call it; it keeps the source line of each instruction."""

    def __init__(
        self,
        slots: dict[str, int],
        widths: list[int],
        symbols: Symbols,
        wgmma: WgmmaTable,
        listening: bool,
        checked: bool,
        clustered: bool,
        clock: Clock | None,
    ) -> None:
        self.clock = clock  # of an observed run
        self.slots = slots
        self.wgmma = wgmma
        self.widths = widths
        self.symbols = symbols
        self.listening = listening
        self.checked = checked
        self.clustered = clustered
        self.lines: list[str] = []
        self.owners: list[Instruction | None] = []
        self.current: Instruction | None = None
        self.guard: str | None = None
        self.constants: dict[str, str] = {}
        self.next_block = -1
        self.wait_number = -1
        self.returned = False
        self._selects: list[tuple[str, str, int]] = []
        self._kept: list[tuple[str, str]] = []  # accumulator registers and the temporaries with their new values
        self._temporaries = 0

    # --- output -------------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append(text)
        self.owners.append(self.current)

    def event(self, kind: str, *arguments: str) -> None:
        """Tell the listeners; no text at all when nobody listens."""
        if self.listening:
            self.line(f"C.listen({kind!r}, F, {', '.join(arguments)})")
        elif self.checked and kind in _WATCHED:
            self.line(f"C.watch.{kind}(F, {', '.join(arguments)})")

    def meets(self) -> None:
        """Tell the checks that the lanes have exchanged something."""
        if self.checked:
            self.line("C.watch.meets(F)")

    def temporary(self) -> str:
        self._temporaries += 1
        return f"t{self._temporaries}"

    def ret(self, text: str) -> None:
        """End the block with `return text`, after its registers are stored."""
        self.returned = True
        self.line(f"return {text}")

    # --- operands -----------------------------------------------------------------------------------------------------

    def name(self, reg: Reg) -> str:
        slot = self.slots[reg.name]
        number = self.wgmma.numbers.get(slot)
        return f"v{slot}" if number is None else f"W[{number}]"

    def width_of(self, operand: Operand) -> int | None:
        """Declared width of a register; None for anything else."""
        return self.widths[self.slots[operand.name]] if isinstance(operand, Reg) else None

    def src(self, operand: Operand, width: int) -> str:
        """An expression for a source of `width` bits. Registers of other widths are the caller's business."""
        if isinstance(operand, Reg):
            return self.constants.get(operand.name) or self.name(operand)
        if isinstance(operand, Imm):
            return str(operand.value & ((1 << width) - 1))
        if isinstance(operand, FloatImm):
            return str(float_bits(operand, width))
        if isinstance(operand, Special):
            return self.special(operand.name)
        if isinstance(operand, Sym):
            return self.address_of(operand)
        raise Unknown(f"operand {operand} as a value")

    def sized(self, operand: Operand, width: int) -> str:
        """A source of `width` bits; a wider register is cut, a narrower one refused (PTX ISA, "Operand Size Exceeding
        Instruction-Type Size").
        """
        have = self.width_of(operand)
        text = self.src(operand, width)
        if have is None or have == width:
            return text
        if have < width:
            raise Unknown(f"a {have}-bit register where {width} bits are read")
        if text.isdigit():
            return str(int(text) & ((1 << width) - 1))
        return f"resize({text}, {width})"

    def pred(self, operand: Operand) -> str:
        """An expression for a predicate source."""
        if isinstance(operand, Not):
            return f"({self.pred(operand.reg)} ^ True)"
        if isinstance(operand, Imm) and operand.value in (0, 1, -1):
            return str(bool(operand.value))
        if isinstance(operand, Special):
            return self.special(operand.name)
        if isinstance(operand, Reg) and self.width_of(operand) == 1:
            return self.constants.get(operand.name) or self.name(operand)
        raise Unknown(f"operand {operand} as a predicate")

    def literal(self, operand: Operand) -> int | None:
        """The value of a literal, or of a register that holds one in this block."""
        if isinstance(operand, Imm):
            return operand.value
        if isinstance(operand, Reg):
            known = self.constants.get(operand.name)
            return int(known) if known is not None and known.isdigit() else None
        return None

    def special(self, name: str) -> str:
        text = SPECIAL.get(name)
        if text is None:
            raise Unknown(f"special register %{name}")
        return text

    def address_of(self, sym: Sym) -> str:
        """The address of a variable within its own state space."""
        symbols = self.symbols
        if self.clustered and sym.name in symbols.shared:
            return f"(C.base + {symbols.shared[sym.name] + sym.offset})"
        for table in (symbols.shared, symbols.local, symbols.param):
            if sym.name in table:
                return str(table[sym.name] + sym.offset)
        if sym.name in symbols.memory:
            return f"(C.symbols[{sym.name!r}] + {sym.offset})" if sym.offset else f"C.symbols[{sym.name!r}]"
        raise Unknown(f"address of {sym.name}")

    def dst(self, operand: Operand) -> str:
        """A name to assign a result to. Under a guard that is a temporary, selected afterwards."""
        if isinstance(operand, Sink):
            return "_"
        if not isinstance(operand, Reg):
            raise Unknown(f"operand {operand} as a destination")
        self.constants.pop(operand.name, None)
        name = self.name(operand)
        if name[0] == "W":
            # It belongs to the warp, so lanes that do not run this must keep theirs.
            kept, name = name, self.temporary()
            self._kept.append((kept, name))
            if self.guard is not None:
                self.line(f"{name} = {kept}")
        if self.guard is None:
            return name
        temporary = self.temporary()
        self._selects.append((name, temporary, self.widths[self.slots[operand.name]]))
        return temporary

    def dsts(self, operand: Operand) -> list[str]:
        """Names for the items of a vector destination, or for one."""
        return [self.dst(item) for item in operand.items] if isinstance(operand, Vec) else [self.dst(operand)]

    def constant(self, operand: Operand, text: str) -> None:
        """`operand` holds the literal `text` from here to the end of the block."""
        if self.guard is None and isinstance(operand, Reg):
            self.constants[operand.name] = text

    def finish_guard(self) -> None:
        """Select between the temporaries of a guarded instruction and the registers' old values."""
        guard = self.guard
        for name, temporary, width in self._selects:
            uniform = f"({temporary} if {guard} else {name}) if {guard}.__class__ is not ND"
            self.line(f"{name} = {uniform} else where{width}({guard}, {temporary}, {name})")
        self._selects.clear()
        self.guard = None

    def finish_kept(self) -> None:
        """Give accumulator registers their new values, in the lanes that run this."""
        for name, temporary in self._kept:
            self.line(f"keep(F, C, W, {name[2:-1]}, {temporary})")
        self._kept.clear()


def float_bits(literal: FloatImm, width: int) -> int:
    """The bits of a floating-point literal at another width."""
    if literal.width == width:
        return literal.bits
    value = (
        struct.unpack("<d", literal.bits.to_bytes(8, "little"))[0]
        if literal.width == 64
        else struct.unpack("<f", literal.bits.to_bytes(4, "little"))[0]
    )
    if width == 32:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    if width == 64:
        return int(struct.unpack("<Q", struct.pack("<d", value))[0])
    raise Unknown(f"a floating-point literal of {width} bits")
