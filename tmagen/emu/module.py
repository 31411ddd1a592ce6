# SPDX-License-Identifier: Apache-2.0
"""A parsed PTX module: plain values, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Frame:
    """A line of a function. `function` is its name without template arguments, outer namespace and parameters; None for
    the kernel, and where it is not known.
    """

    file: str
    line: int
    function: str | None = None

    @property
    def is_wrapper(self) -> bool:
        """Whether the function only puts a name to an instruction: one of a namespace `ptx`, as in `cuda::ptx`, or one
        of CUDA's own, as `__syncwarp`.
        """
        name = self.function or ""
        return name.startswith(("ptx::", "__")) or "::ptx::" in name


@dataclass(frozen=True)
class Source(Frame):
    """Where the compiler says an instruction comes from: the `.loc` before it. `callers` are the calls that were
    inlined to get there, innermost first; the last is in the kernel.
    """

    callers: tuple[Frame, ...] = ()

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The line itself, then its callers."""
        return (Frame(self.file, self.line, self.function), *self.callers)

    @property
    def told(self) -> Frame:
        """The innermost line that is no wrapper's: what a person looks for."""
        return next((frame for frame in self.frames if not frame.is_wrapper), self.frames[-1])

    @property
    def place(self) -> tuple[str, int]:
        """File and line of :attr:`told`."""
        return self.told.file, self.told.line


# --- operands ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reg:
    """A register, by a name that is unique within its entry (those of nested scopes carry their scope's number)."""

    name: str


@dataclass(frozen=True)
class Imm:
    """An integer literal, sign kept."""

    value: int


@dataclass(frozen=True)
class FloatImm:
    """A floating-point literal by its bits: `0f3F800000` (width 32), `0d...` (width 64) or a decimal (width 64)."""

    bits: int
    width: int


@dataclass(frozen=True)
class Sym:
    """The address of a variable or parameter, or the name of a label or function."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Special:
    """A special register, `%tid.x`."""

    name: str


@dataclass(frozen=True)
class Sink:
    """`_`: a result that nobody wants."""


@dataclass(frozen=True)
class Not:
    """A negated predicate operand, `!p`."""

    reg: Reg


@dataclass(frozen=True)
class Vec:
    """`{a, b, ...}`."""

    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Pair:
    """`d|p`: two results."""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Addr:
    """`[base + offset, rest...]`; `rest` holds the coordinates of a tensor copy."""

    base: Operand
    offset: int = 0
    rest: tuple[Operand, ...] = ()


Operand = Reg | Imm | FloatImm | Sym | Special | Sink | Not | Vec | Pair | Addr


# --- statements -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Instruction:
    """One instruction. `opcode` is the full dotted text (`mbarrier.try_wait.parity.shared::cta.b64`), `guard` its
    predicate.
    """

    opcode: str
    operands: tuple[Operand, ...]
    guard: Reg | Not | None
    line: int
    source: Source | None
    text: str

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The opcode split at dots."""
        return tuple(self.opcode.split("."))


@dataclass(frozen=True)
class Variable:
    """A variable in a state space (`shared`, `global`, `const`, `local`). `nbytes` None: an `extern` array of unknown
    size.
    """

    name: str
    space: str
    align: int
    nbytes: int | None
    extern: bool = False
    initial: bytes | None = None


@dataclass(frozen=True)
class Param:
    """A kernel parameter and its place in the parameter block, bytes."""

    name: str
    offset: int
    size: int
    align: int


@dataclass(frozen=True, eq=False)
class Entry:
    """A kernel. `body` is its instructions in order, `labels` the index of the instruction that each label stands
    before.
    """

    name: str
    params: tuple[Param, ...]
    registers: dict[str, str]  # register name -> type, e.g. "b32", "pred"
    body: tuple[Instruction, ...]
    labels: dict[str, int]
    variables: tuple[Variable, ...] = ()
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)  # maxntid, reqntid, minnctapersm, ...
    line: int = 0

    @property
    def param_bytes(self) -> int:
        """Size of the parameter block."""
        return max((p.offset + p.size for p in self.params), default=0)


@dataclass(frozen=True, eq=False)
class Module:
    """A PTX module. Two modules are equal only when they are one."""

    filename: str
    version: str
    target: str
    entries: dict[str, Entry]
    variables: tuple[Variable, ...]
    functions: tuple[str, ...] = ()
    files: dict[int, str] = field(default_factory=dict)
