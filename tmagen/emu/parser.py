"""PTX text to a :class:`Module`.

Written for what nvcc and hand-written inline asm print: one pass, statement by statement, no grammar tables. What a statement means is
not the parser's business; that it has a form is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import replace

from tmagen.emu import operands
from tmagen.emu.errors import NotJudged, ParseError
from tmagen.emu.module import Entry, FloatImm, Imm, Instruction, Module, Not, Param, Reg, Source, Sym, Variable, Vec
from tmagen.emu.operands import OperandError, Scope

_TRIVIA = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.S)
_SPACE = re.compile(r"\s*")
_LABEL = re.compile(r"([A-Za-z_$%][\w$]*)\s*:(?!:)")
_WORD = re.compile(r"\.?[A-Za-z_$%][\w$]*")
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)(?:\s+\d+)?([^\n]*)")
_INLINED = re.compile(r"inlined_at\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'\.file\s+(\d+)\s+"([^"]*)"[^\n]*')
_STATEMENT = re.compile(r"[^;]*;")
_INSTRUCTION = re.compile(r"(?:@(!?)\s*([\w$%]+)\s+)?([a-z_][\w.:]*)\s*(.*)$", re.S)
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?")
_DIRECTIVE = re.compile(r"\s*\.(\w+)\s*((?:0x[0-9a-fA-F]+|\d+)(?:\s*,\s*(?:0x[0-9a-fA-F]+|\d+))*)?")
_DECLARATION = re.compile(
    r"((?:\.(?:visible|extern|weak|common)\s+)*)\.(shared|global|const|local|param)\s*((?:\.\w+(?:\s+\d+(?=\s))?\s*)*?)"
    r"([A-Za-z_$%][\w$]*)\s*((?:\[\s*\w*\s*\]\s*)*)(?:=\s*(.*))?$",
    re.S,
)
_ALIGN = re.compile(r"\.align\s+(\d+)")
_TYPE = re.compile(r"\.((?:[busf]\d+)|f16x2|bf16x2|bf16|pred)\b")
_DIMENSION = re.compile(r"\[\s*(\w*)\s*\]")
_REG = re.compile(r"\.reg\s+((?:\.\w+\s*)+)\s*(.*)$", re.S)
_SERIES = re.compile(r"(.+?)<(\d+)>$")
_LINKING = (".visible", ".extern", ".weak", ".common")
_SECTION = re.compile(r"\.section\s+[^{]*\{")


def parse(text: str, filename: str = "<ptx>") -> Module:
    """Parse a PTX module. Raises ParseError with the line and what was expected there."""
    return _Parser(text, filename).module()


def type_bytes(kind: str) -> int:
    """Size of a fundamental type, by its name without the dot."""
    digits = re.search(r"\d+", kind)
    bits = int(digits[0]) * (2 if kind.endswith("x2") else 1) if digits else 8
    return bits // 8


def _without_comments(text: str) -> str:
    def keep_lines(match: re.Match[str]) -> str:
        found = match[0]
        if found[0] == '"':
            return found
        return " " if found[1] == "/" else " " + "\n" * found.count("\n")

    return _TRIVIA.sub(keep_lines, text)


class _Parser:
    def __init__(self, text: str, filename: str) -> None:
        self.text = _without_comments(text)
        self.filename = filename
        self.at = 0
        self.newlines = [m.start() for m in re.finditer("\n", self.text)]
        # nvcc writes `.file` after the kernels whose `.loc` lines name it.
        self.files = {int(m[1]): m[2] for m in _FILE.finditer(self.text)}
        self.entries: dict[str, Entry] = {}
        self.variables: list[Variable] = []
        self.functions: list[str] = []
        self.header = {"version": "", "target": ""}

    # --- places and errors ------------------------------------------------------------------------------------------------------------

    def line(self, at: int | None = None) -> int:
        return bisect_right(self.newlines, (self.at if at is None else at) - 1) + 1

    def error(self, message: str, at: int | None = None) -> ParseError:
        return ParseError(f"{self.filename}:{self.line(at)}: {message}", ptx_line=self.line(at))

    def skip_space(self) -> None:
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]

    def near(self) -> str:
        rest = self.text[self.at : self.at + 40].split("\n")[0]
        return f"'{rest}'" if rest else "the end of the text"

    def statement(self) -> str:
        """The text up to the next semicolon, which it consumes."""
        found = _STATEMENT.match(self.text, self.at)
        if found is None:
            raise self.error(f"expected ';' after {self.near()}")
        self.at = found.end()
        return found[0][:-1]

    def skip_braces(self) -> None:
        """From an opening brace past its closing one."""
        start, depth = self.at, 0
        for found in re.compile(r'[{}]|"(?:\\.|[^"\\\n])*"').finditer(self.text, self.at):
            if found[0] == "{":
                depth += 1
            elif found[0] == "}":
                depth -= 1
                if depth == 0:
                    self.at = found.end()
                    return
        raise self.error("expected '}' for the '{' here", start)

    # --- module level -----------------------------------------------------------------------------------------------------------------

    def module(self) -> Module:
        while True:
            self.skip_space()
            if self.at >= len(self.text):
                break
            self.top_level()
        for name in ("version", "target"):
            if not self.header[name]:
                raise self.error(f"expected a .{name} directive")
        return Module(
            self.filename, self.header["version"], self.header["target"], self.entries, tuple(self.variables), tuple(self.functions), self.files
        )

    def top_level(self) -> None:
        word = _WORD.match(self.text, self.at)
        if word is None:
            raise self.error(f"expected a directive, not {self.near()}")
        name = word[0]
        if name in (".version", ".target", ".address_size"):
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            value = self.text[word.end() : end].strip()
            if name == ".address_size" and value != "64":
                raise self.error(f"expected .address_size 64, not {value}")
            self.header[name[1:]] = value
            self.at = end
        elif name == ".file":
            self.file_directive()
        elif name == ".section":
            found = _SECTION.match(self.text, self.at)
            if found is None:
                raise self.error("expected '{' after .section")
            self.at = found.end() - 1
            self.skip_braces()
        elif name == ".pragma":
            self.statement()
        elif name in (*_LINKING, ".entry", ".func", ".shared", ".global", ".const", ".alias"):
            self.declaration()
        else:
            raise self.error(f"expected a module-level directive, not {self.near()}")

    def file_directive(self) -> None:
        found = _FILE.match(self.text, self.at)
        if found is None:
            raise self.error('expected .file NUMBER "NAME"')
        self.at = found.end()

    def declaration(self) -> None:
        start = self.at
        while True:
            self.skip_space()
            word = _WORD.match(self.text, self.at)
            if word is None or word[0] not in _LINKING:
                break
            self.at = word.end()
        kind = word[0] if word else ""
        if kind == ".entry":
            self.entry()
        elif kind == ".func":
            self.function()
        elif kind == ".alias":
            self.statement()
        else:
            self.at = start
            self.variables.append(self.variable(self.statement(), start))

    def function(self) -> None:
        found = re.compile(r"\.func\s*(?:\([^)]*\))?\s*(?:\.noreturn\s*)?([\w$]+)\s*(?:\([^)]*\))?[^;{]*").match(self.text, self.at)
        if found is None:
            raise self.error("expected a function's name after .func")
        self.functions.append(found[1])
        self.at = found.end()
        if self.text[self.at : self.at + 1] == "{":
            self.skip_braces()
        else:
            self.statement()

    def variable(self, text: str, at: int) -> Variable:
        found = _DECLARATION.match(text.strip())
        kind = _TYPE.search(found[3]) if found else None
        if found is None or kind is None:
            raise self.error(f"expected a variable declaration, not '{' '.join(text.split())[:60]}'", at)
        align = _ALIGN.search(found[3])
        element = type_bytes(kind[1])
        vector = re.search(r"\.v([24])\b", found[3])
        element_bytes = element * (int(vector[1]) if vector else 1)
        count: int | None = 1
        for dimension in _DIMENSION.findall(found[5]):
            if not dimension:
                count = None
            elif count is not None:
                count *= int(dimension, 0)
        initial = None if found[6] is None else self.initializer(found[6], element, kind[1], at)
        if count is None and initial is not None:
            count = -(-len(initial) // element_bytes)
        return Variable(
            found[4], found[2], int(align[1]) if align else element_bytes, None if count is None else count * element_bytes, ".extern" in found[1], initial
        )

    def initializer(self, text: str, element: int, kind: str, at: int) -> bytes:
        out = bytearray()
        for item in re.split(r"[\s,{}]+", text.strip()):
            if not item:
                continue
            value = operands.number(item)
            if isinstance(value, Imm):
                out += (value.value & ((1 << (8 * element)) - 1)).to_bytes(element, "little")
            elif isinstance(value, FloatImm) and value.width == 8 * element and kind.startswith(("f", "b")):
                out += value.bits.to_bytes(element, "little")
            else:
                raise NotJudged(f"initial value '{item}' of a variable", ptx_line=self.line(at))
        return bytes(out)

    # --- entries ----------------------------------------------------------------------------------------------------------------------

    def entry(self) -> None:
        start = self.at
        found = _ENTRY.match(self.text, self.at)
        if found is None:
            raise self.error("expected a kernel's name after .entry")
        self.at = found.end()
        params = self.params(found[2] or "", start)
        directives: dict[str, tuple[int, ...]] = {}
        while True:
            self.skip_space()
            mark = self.text[self.at : self.at + 1]
            if mark == ";":
                self.at += 1
                return
            if mark == "{":
                break
            directive = _DIRECTIVE.match(self.text, self.at)
            if directive is None:
                raise self.error(f"expected a performance directive or '{{' for kernel {found[1]}, not {self.near()}")
            directives[directive[1]] = tuple(int(v, 0) for v in directive[2].split(",")) if directive[2] else ()
            self.at = directive.end()
        body = _Body(self, found[1])
        body.parse()
        self.entries[found[1]] = Entry(
            found[1], params, body.used, tuple(body.finished()), body.positions, tuple(body.variables), body.branch_targets, directives, self.line(start)
        )

    def params(self, text: str, at: int) -> tuple[Param, ...]:
        found: list[Param] = []
        offset = 0
        for part in (p.strip() for p in text.split(",")):
            if not part:
                continue
            # `.ptr .global .align 16` says something about what a pointer points to, nothing about the parameter.
            plain = re.sub(r"\.ptr\b(?:\s*\.(?:global|shared|const|local))?(?:\s*\.align\s+\d+)?", "", part)
            variable = self.variable(plain, at)
            if variable.space != "param" or variable.nbytes is None:
                raise self.error(f"expected a .param of known size, not '{part}'", at)
            offset = -(-offset // variable.align) * variable.align
            found.append(Param(variable.name, offset, variable.nbytes, variable.align))
            offset += variable.nbytes
        return tuple(found)


class _Body:
    """The braces of one entry."""

    def __init__(self, parser: _Parser, name: str) -> None:
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
        self.source: Source | None = None

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
            parser.statement()  # a call's parameter space; the call itself is not judged
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
        found = _LOC.match(parser.text, parser.at)
        if found is None:
            raise parser.error("expected .loc FILE LINE COLUMN")
        parser.at = found.end()
        outer = None
        for inlined in _INLINED.finditer(found[3]):
            outer = (parser.files.get(int(inlined[1]), inlined[1]), int(inlined[2]))
        self.source = Source(parser.files.get(int(found[1]), found[1]), int(found[2]), outer)

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

    def use(self, name: str, kind: str) -> None:
        self.used[name] = kind

    def instruction(self) -> None:
        parser = self.parser
        at = parser.at
        raw = parser.statement()
        found = _INSTRUCTION.match(raw)
        if found is None:
            raise parser.error(f"expected an instruction, not '{' '.join(raw.split())[:60]}'", at)
        scope = self.scope
        try:
            rest = found[4].strip()
            if found[3].startswith("call"):
                # Its operands are not in use: a call is not judged when it is reached.
                parsed: tuple[operands.Operand, ...] = ()
            else:
                parsed = tuple(operands.parse(part, scope, self.use) for part in operands.split(rest)) if rest else ()
            guard: Reg | Not | None = None
            if found[2]:
                reg = operands.parse(found[2], scope, self.use)
                if not isinstance(reg, Reg):
                    raise OperandError(f"expected a predicate register after '@', not '{found[2]}'")
                guard = Not(reg) if found[1] else reg
        except OperandError as error:
            raise parser.error(str(error), at) from None
        if scope.suffix or found[3].startswith(("bra", "brx")):
            self.branches.append((len(self.instructions), scope))
        self.instructions.append(Instruction(found[3], parsed, guard, parser.line(at), self.source, " ".join(raw.split())))

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
                self.instructions[index] = replace(instruction, operands=renamed)
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


def _rename(operand: operands.Operand, scope: Scope) -> operands.Operand:
    if isinstance(operand, Sym):
        inner: Scope | None = scope
        while inner is not None:
            if operand.name in inner.symbols:
                return replace(operand, name=inner.symbols[operand.name])
            inner = inner.parent
    elif isinstance(operand, operands.Addr):
        return replace(operand, base=_rename(operand.base, scope))
    elif isinstance(operand, Vec):
        return replace(operand, items=tuple(_rename(item, scope) for item in operand.items))
    return operand
