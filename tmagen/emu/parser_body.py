# SPDX-License-Identifier: Apache-2.0
"""The body of one PTX kernel: nested scopes, declarations, labels, source lines, instructions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tmagen.emu import operands
from tmagen.emu.errors import ParseError
from tmagen.emu.module import Addr, Instruction, Not, Operand, Pair, Reg, Source, Sym, Variable, Vec
from tmagen.emu.operands import OperandError, Scope
from tmagen.emu.parser_call import Call, Function, read_call
from tmagen.emu.source_lines import SourceLines

if TYPE_CHECKING:
    from tmagen.emu.parser import Parser

_WORD = re.compile(r"\.?[A-Za-z_$%][\w$]*")
_LABEL = re.compile(r"([A-Za-z_$%][\w$]*)\s*:(?!:)")
_INSTRUCTION = re.compile(r"(?:@(!?)\s*([\w$%]+)\s+)?([a-z_][\w.:]*(?:\s+\.[\w.:]+)*)\s*(.*)$", re.S)
_REG = re.compile(r"\.reg\s+((?:\.\w+\s*)+)\s*(.*)$", re.S)
_SERIES = re.compile(r"(.+?)<(\d+)>$")
_PARAM_ACCESS = re.compile(r"(ld|st)\.param(?:::func)?(?=\.)")
_RETURN = "@return"
_DEEPEST_CALL = 32

_TAKES_CARRY = ("addc", "subc", "madc")


class Body:
    """The braces of one entry."""

    def __init__(self, parser: Parser, name: str) -> None:
        self.parser = parser
        self.name = name
        self.scopes = 0
        self.scope = Scope(None, 0)
        self.used: dict[str, str] = {}
        self.instructions: list[Instruction] = []
        self.branches: list[tuple[int, Scope]] = []
        self.positions: dict[str, int] = {}
        self.variables: list[Variable] = []
        self.branch_targets: dict[str, tuple[str, ...]] = {}
        self.pending_targets: list[tuple[str, list[str], Scope, int]] = []
        self.calls: tuple[str, ...] = ()  # functions that are being laid open, outermost first
        self.call_memory: set[str] = set()  # variables of the parameter space, by unique name
        self.source: Source | None = None
        self.lines = SourceLines(parser.files, parser.names)

    def parse(self) -> None:
        parser = self.parser
        text = parser.text
        parser.at += 1
        last_label = ""
        while True:
            parser.skip_space()
            at = parser.at
            mark = text[at : at + 1]
            if mark == "}":
                parser.at += 1
                if self.scope.parent is None:
                    return
                self.scope = self.scope.parent
            elif mark == "{":
                parser.at += 1
                self.scopes += 1
                self.scope = Scope(self.scope, self.scopes)
            elif mark == ".":
                self.directive(last_label)
            elif mark == ";":
                parser.at += 1
            elif not mark:
                raise parser.error(f"expected '}}' at the end of kernel {self.name}")
            else:
                label = _LABEL.match(text, at)
                if label:
                    last_label = label[1]
                    self.label(last_label)
                    parser.at = label.end()
                else:
                    self.instruction()

    def label(self, name: str) -> None:
        if name in self.scope.labels:
            raise self.parser.error(f"label {name} is defined twice in one scope")
        self.scope.labels[name] = len(self.instructions)
        self.positions[name + self.scope.suffix] = len(self.instructions)

    def directive(self, last_label: str) -> None:
        parser = self.parser
        word = _WORD.match(parser.text, parser.at)
        name = word[0] if word else ""
        at = parser.at
        if name == ".loc":
            self.loc()
        elif name == ".reg":
            self.reg(parser.statement(), at)
        elif name == ".pragma":
            parser.statement()
        elif name in (".shared", ".local", ".global", ".const"):
            variable = parser.variable(parser.statement(), at)
            if self.scope.suffix:
                self.scope.symbols[variable.name] = variable.name + self.scope.suffix
                variable = replace(variable, name=variable.name + self.scope.suffix)
            self.variables.append(variable)
        elif name == ".param":
            self.call_parameter(parser.variable(parser.statement(), at))
        elif name == ".branchtargets":
            targets = [t.strip() for t in parser.statement()[len(name) :].split(",")]
            self.pending_targets.append((last_label + self.scope.suffix, targets, self.scope, at))
        elif name in (".callprototype", ".calltargets"):
            parser.statement()
        elif name == ".file":
            parser.file_directive()
        else:
            raise parser.error(f"expected a directive of a kernel body, not {parser.near()}")

    def loc(self) -> None:
        parser = self.parser
        found = self.lines.read(parser.text, parser.at)
        if found is None:
            raise parser.error("expected .loc FILE LINE COLUMN")
        self.source, parser.at = found

    def reg(self, text: str, at: int) -> None:
        found = _REG.match(text.strip())
        if found is None:
            raise self.parser.error("expected .reg .TYPE NAMES", at)
        kind = found[1].split()[-1].lstrip(".")
        if ".v2" in found[1] or ".v4" in found[1]:
            raise self.parser.error("expected a scalar register; vector registers are not supported", at)
        for name in (n.strip() for n in found[2].split(",")):
            series = _SERIES.match(name)
            if series:
                self.scope.series[series[1]] = (kind, int(series[2]))
            elif name:
                self.scope.registers[name] = kind
            else:
                raise self.parser.error("expected a register's name", at)
        self.scope.cache.clear()

    def call_parameter(self, variable: Variable) -> None:
        """A variable through which a call passes something: memory of the thread here."""
        unique = f"{variable.name}@call{self.scope.suffix}"
        self.scope.symbols[variable.name] = unique
        self.call_memory.add(unique)
        self.variables.append(replace(variable, name=unique, space="local"))

    def call(self, raw: str, rest: str, guard: Reg | Not | None, at: int) -> None:
        """Lay the called function open, or leave a call that tells why not when it is reached."""
        parser = self.parser
        line, text = parser.line(at), " ".join(raw.split())
        called = read_call(rest)
        function = parser.bodies.get(called.name) if called else None
        why = ""
        if called is None or called.name.startswith("%"):
            why = "an address"
        elif function is None or function.body is None:
            why = called.name
        elif function.name in self.calls:
            why = f"{called.name}, which is recursive"
        elif len(self.calls) >= _DEEPEST_CALL:
            why = f"{called.name}, {_DEEPEST_CALL} calls deep"
        elif function.formals is None or len(function.formals) != len(called.actuals):
            why = f"{called.name}, whose parameters are not those of the call"
        self.scopes += 1
        inner = Scope(None, self.scopes)
        if guard is not None:
            self.jump(guard.reg if isinstance(guard, Not) else Not(guard), inner, line, text)
        if why or called is None or function is None:
            self.instructions.append(Instruction("call", (Sym(why),), None, line, self.source, text))
        else:
            self.open(called, function, inner)
        inner.labels[_RETURN] = len(self.instructions)
        self.positions[_RETURN + inner.suffix] = len(self.instructions)

    def open(self, called: Call, function: Function, inner: Scope) -> None:
        """The body of `function`, with its parameters as names for what the call passes."""
        parser = self.parser
        for formal, actual in zip(function.formals or (), called.actuals, strict=True):
            inner.symbols[formal] = _symbol(actual, self.scope)
        kept = parser.at, self.scope, self.source, self.calls
        parser.at, self.scope, self.calls = function.body or 0, inner, (*self.calls, called.name)
        self.parse()
        parser.at, self.scope, self.source, self.calls = kept

    def jump(self, guard: Reg | Not | None, scope: Scope, line: int, text: str) -> None:
        """To the end of the function that `scope` is in."""
        self.branches.append((len(self.instructions), scope))
        self.instructions.append(Instruction("bra", (Sym(_RETURN),), guard, line, self.source, text))

    def is_call_memory(self, operand: Operand) -> bool:
        return isinstance(operand, Addr) and isinstance(operand.base, Sym) and operand.base.name in self.call_memory

    def use(self, name: str, kind: str) -> None:
        self.used[name] = kind

    def with_carry(self, parts: list[str], parsed: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """The carry flag as what it is, a register: beside the result, and as the last source."""
        carry = Reg("%cc")
        self.use(carry.name, "pred")
        if "cc" in parts:
            parsed = (Pair(parsed[0], carry), *parsed[1:])
        return (*parsed, carry) if parts[0] in _TAKES_CARRY else parsed

    def instruction(self) -> None:
        parser = self.parser
        at = parser.at
        raw = parser.statement()
        found = _INSTRUCTION.match(raw)
        if found is None:
            raise parser.error(f"expected an instruction, not '{' '.join(raw.split())[:60]}'", at)
        scope = self.scope
        opcode = "".join(found[3].split())  # qualifiers may stand apart
        try:
            rest = found[4].strip()
            parsed: tuple[Operand, ...] = ()
            if rest and opcode.split(".")[0] != "call":
                parsed = tuple(operands.parse(part, scope, self.use) for part in operands.split(rest))
            parts = opcode.split(".")
            if parsed and (parts[0] in _TAKES_CARRY or "cc" in parts):
                parsed = self.with_carry(parts, parsed)
            guard: Reg | Not | None = None
            if found[2]:
                reg = operands.parse(found[2], scope, self.use)
                if not isinstance(reg, Reg):
                    raise OperandError(f"expected a predicate register after '@', not '{found[2]}'")
                guard = Not(reg) if found[1] else reg
        except OperandError as error:
            raise parser.error(str(error), at) from None
        if opcode.split(".")[0] == "call":
            self.call(raw, rest, guard, at)
            return
        if self.calls and opcode in ("ret", "ret.uni"):
            self.jump(guard, scope, parser.line(at), " ".join(raw.split()))
            return
        if scope.suffix or scope.symbols or opcode.startswith(("bra", "brx")):
            self.branches.append((len(self.instructions), scope))
        self.instructions.append(
            Instruction(opcode, parsed, guard, parser.line(at), self.source, " ".join(raw.split()))
        )

    def finished(self) -> list[Instruction]:
        """The instructions, with the names of nested scopes' labels and variables put in."""
        parser = self.parser
        for index, scope in self.branches:
            instruction = self.instructions[index]
            if instruction.opcode.startswith(("bra", "brx")):
                target = instruction.operands[-1] if instruction.operands else None
                name = scope.label(target.name) if isinstance(target, Sym) else None
                if name is None:
                    shown = target.name if isinstance(target, Sym) else instruction.text
                    raise ParseError(
                        f"{parser.filename}:{instruction.line}: expected a label that exists, not '{shown}'",
                        ptx_line=instruction.line,
                    )
                self.instructions[index] = replace(instruction, operands=(*instruction.operands[:-1], Sym(name)))
            elif any(scope_symbols(scope)):
                renamed = tuple(_rename(operand, scope) for operand in instruction.operands)
                opcode = instruction.opcode
                if any(
                    isinstance(o, Addr) and isinstance(o.base, Sym) and o.base.name in self.call_memory for o in renamed
                ):
                    opcode = _PARAM_ACCESS.sub(r"\1.local", opcode)
                self.instructions[index] = replace(instruction, opcode=opcode, operands=renamed)
        for name, targets, scope, at in self.pending_targets:
            resolved = [scope.label(t) for t in targets]
            if None in resolved:
                raise parser.error("expected labels that exist after .branchtargets", at)
            self.branch_targets[name] = tuple(str(r) for r in resolved)
        return self.instructions


def scope_symbols(scope: Scope | None) -> list[str]:
    """Names of variables that `scope` and those around it declare for themselves."""
    names: list[str] = []
    while scope is not None:
        names += scope.symbols
        scope = scope.parent
    return names


def _symbol(name: str, scope: Scope | None) -> str:
    """The unique name of a variable, where a scope declares it."""
    while scope is not None:
        if name in scope.symbols:
            return scope.symbols[name]
        scope = scope.parent
    return name


def _rename(operand: Operand, scope: Scope) -> Operand:
    if isinstance(operand, Sym):
        return replace(operand, name=_symbol(operand.name, scope))
    if isinstance(operand, Addr):
        return replace(operand, base=_rename(operand.base, scope))
    if isinstance(operand, Vec):
        return replace(operand, items=tuple(_rename(item, scope) for item in operand.items))
    return operand
