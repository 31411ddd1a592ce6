# SPDX-License-Identifier: Apache-2.0
"""PTX text to a :class:`Module`.

Written for what nvcc and hand-written inline asm print: one pass, statement by statement, no grammar tables. What a
statement means is not the parser's business; that it has a form is.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from tmagen.emu import operands
from tmagen.emu.errors import NotJudged, ParseError
from tmagen.emu.module import (
    Entry,
    FloatImm,
    Imm,
    Module,
    Param,
    Variable,
)
from tmagen.emu.parser_body import Body
from tmagen.emu.parser_call import function_at, functions_of
from tmagen.emu.source_lines import function_names

_TRIVIA = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.S)
_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"\.?[A-Za-z_$%][\w$]*")
_FILE = re.compile(r'\.file\s+(\d+)\s+"([^"]*)"[^\n]*')
_STATEMENT = re.compile(r"[^;]*;")
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?")
_DIRECTIVE = re.compile(r"\s*\.(\w+)\s*((?:0x[0-9a-fA-F]+|\d+)(?:\s*,\s*(?:0x[0-9a-fA-F]+|\d+))*)?")
_DECLARATION = re.compile(
    r"\s*((?:\.(?:visible|extern|weak|common)\s+)*)\.(shared|global|const|local|param)\s*((?:\.\w+(?:\s+\d+(?=\s))?\s*)*?)"
    r"([A-Za-z_$%][\w$]*)\s*((?:\[\s*\w*\s*\]\s*)*)(?:=\s*(.*?))?\s*$",
    re.S,
)
_ALIGN = re.compile(r"\.align\s+(\d+)")
_TYPE = re.compile(r"\.((?:[busf]\d+)|f16x2|bf16x2|bf16|pred)\b")
_DIMENSION = re.compile(r"\[\s*(\w*)\s*\]")
_LINKING = (".visible", ".extern", ".weak", ".common")
_SECTION = re.compile(r"\.section\s+[^{]*\{")


def parse(text: str, filename: str = "<ptx>") -> Module:
    """Parse a PTX module. Raises ParseError with the line and what was expected there."""
    return Parser(text, filename).module()


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


class Parser:
    def __init__(self, text: str, filename: str) -> None:
        self.text = _without_comments(text)
        self.filename = filename
        self.at = 0
        self.newlines = [m.start() for m in re.finditer("\n", self.text)]
        # nvcc writes `.file` after the kernels whose `.loc` lines name it.
        self.files = {int(m[1]): m[2] for m in _FILE.finditer(self.text)}
        self.names = function_names(self.text)
        self.bodies = functions_of(self.text)
        self.entries: dict[str, Entry] = {}
        self.variables: list[Variable] = []
        self.functions: list[str] = []
        self.header = {"version": "", "target": ""}

    # --- places and errors --------------------------------------------------------------------------------------------

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

    # --- module level -------------------------------------------------------------------------------------------------

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
            self.filename,
            self.header["version"],
            self.header["target"],
            self.entries,
            tuple(self.variables),
            tuple(self.functions),
            self.files,
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
        found = function_at(self.text, self.at)
        if found is None:
            raise self.error("expected a function's name after .func")
        self.functions.append(found.name)
        self.at = found.end
        if found.body is not None:
            self.skip_braces()
        else:
            self.statement()

    def variable(self, text: str, at: int) -> Variable:
        found = _DECLARATION.match(text)
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
        initial = None if found[6] is None else self.initializer(found[6], element, kind[1], at + found.start(6))
        if count is None and initial is not None:
            count = -(-len(initial) // element_bytes)
        return Variable(
            found[4],
            found[2],
            int(align[1]) if align else element_bytes,
            None if count is None else count * element_bytes,
            ".extern" in found[1],
            initial,
        )

    def initializer(self, text: str, element: int, kind: str, at: int) -> bytes:
        """The bytes of an initial value that stands at `at`."""
        out = bytearray()
        for match in re.finditer(r"[^\s,{}]+", text):
            item = match[0]
            value = operands.number(item)
            if isinstance(value, Imm):
                out += (value.value & ((1 << (8 * element)) - 1)).to_bytes(element, "little")
            elif isinstance(value, FloatImm) and value.width == 8 * element and kind.startswith(("f", "b")):
                out += value.bits.to_bytes(element, "little")
            else:
                why = f"initial value '{item}' of a variable"
                if item in self.bodies:
                    why = f"a variable holds the address of function '{item}': indirect calls are not modelled"
                raise NotJudged(why, ptx_line=self.line(at + match.start()))
        return bytes(out)

    # --- entries ------------------------------------------------------------------------------------------------------

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
        body = Body(self, found[1])
        body.parse()
        self.entries[found[1]] = Entry(
            found[1],
            params,
            body.used,
            tuple(body.finished()),
            body.positions,
            tuple(body.variables),
            body.branch_targets,
            directives,
            self.line(start),
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
