# SPDX-License-Identifier: Apache-2.0
"""Operands of PTX instructions: text to values, with names looked up in nested scopes."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from tmagen.emu.module import Addr, FloatImm, Imm, Not, Operand, Pair, Reg, Sink, Special, Sym, Vec

SPECIAL_REGISTERS = frozenset(
    "tid ntid ctaid nctaid laneid warpid nwarpid smid nsmid gridid clusterid nclusterid cluster_ctaid cluster_nctaid "
    "cluster_ctarank cluster_nctarank is_explicit_cluster lanemask_eq lanemask_le lanemask_lt lanemask_ge lanemask_gt "
    "clock clock_hi clock64 globaltimer globaltimer_lo globaltimer_hi dynamic_smem_size total_smem_size "
    "aggr_smem_size current_graph_exec reserved_smem_offset_begin reserved_smem_offset_end "
    "reserved_smem_offset_cap".split()
)

_NUMBER = re.compile(
    r"[-+]?(?:0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\d+U?)$"
)
_NAME = re.compile(r"[A-Za-z_$%][\w$]*(?:\.[xyzw])?$")
_SUM = re.compile(r"(.*[^\s+\-*(,])\s*([+-])\s*([+-]?[^\s+\-]+)$")
_REGISTER_SERIES = re.compile(r"(.*?)(0|[1-9]\d*)$")


class OperandError(ValueError):
    """What is wrong with an operand; the parser knows the line."""


class Scope:
    """Registers and labels of one `{ }`. Names of the outermost scope stay as they are; those of others get the scope's
    number.
    """

    def __init__(self, parent: Scope | None, number: int) -> None:
        self.parent = parent
        self.suffix = f"@{number}" if number else ""
        self.registers: dict[str, str] = {}
        self.series: dict[str, tuple[str, int]] = {}
        self.labels: dict[str, int] = {}
        self.symbols: dict[str, str] = {}
        self.cache: dict[str, Operand] = {}

    def register(self, name: str) -> tuple[str, str] | None:
        """(unique name, type) of a register that is visible here."""
        scope: Scope | None = self
        series = _REGISTER_SERIES.match(name)
        while scope is not None:
            kind = scope.registers.get(name)
            if kind is not None:
                return name + scope.suffix, kind
            if series is not None:
                found = scope.series.get(series[1])
                if found is not None and int(series[2]) < found[1]:
                    return name + scope.suffix, found[0]
            scope = scope.parent
        return None

    def label(self, name: str) -> str | None:
        """Unique name of a label that is visible here."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.labels:
                return name + scope.suffix
            scope = scope.parent
        return None


def number(text: str) -> Imm | FloatImm | None:
    """The literal in `text`, or None where it is none (PTX ISA, "Constants")."""
    if not _NUMBER.match(text):
        return None
    negative = text.startswith("-")
    body = text.lstrip("+-")
    prefix = body[:2].lower()
    if prefix in ("0f", "0d"):
        width = 32 if prefix == "0f" else 64
        bits = int(body[2:], 16)
        return FloatImm(bits ^ (1 << (width - 1)) if negative else bits, width)
    if prefix not in ("0x", "0b") and any(c in body for c in ".eE"):
        value = float(text)
        return FloatImm(int(struct.unpack("<Q", struct.pack("<d", value))[0]), 64)
    body = body.rstrip("U")
    integer = int(body, 8) if len(body) > 1 and body.isdigit() and body[0] == "0" else int(body, 0)
    return Imm(-integer if negative else integer)


def split(text: str) -> list[str]:
    """Split at commas outside brackets."""
    if "{" not in text and "[" not in text and "(" not in text:
        return [part.strip() for part in text.split(",")] if text.strip() else []
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "{[(":
            depth += 1
        elif c in "}])":
            depth -= 1
            if depth < 0:
                raise OperandError(f"'{c}' without an opening bracket")
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    if depth:
        raise OperandError("a closing bracket is missing")
    parts.append(text[start:].strip())
    return parts


def parse(text: str, scope: Scope, use: Callable[[str, str], None]) -> Operand:
    """The operand in `text`. `use(name, type)` hears of each register. Raises OperandError."""
    found = scope.cache.get(text)
    if found is None:
        found = _parse(text, scope, use)
        scope.cache[text] = found
    return found


def _parse(text: str, scope: Scope, use: Callable[[str, str], None]) -> Operand:
    if not text:
        raise OperandError("an operand is missing")
    first = text[0]
    if first == "{":
        if text[-1] != "}":
            raise OperandError(f"expected '}}' at the end of '{text}'")
        return Vec(tuple(parse(part, scope, use) for part in split(text[1:-1])))
    if first == "(":
        if text[-1] != ")":
            raise OperandError(f"expected ')' at the end of '{text}'")
        return Vec(tuple(parse(part, scope, use) for part in split(text[1:-1])))
    if first == "[":
        if text[-1] != "]":
            raise OperandError(f"expected ']' at the end of '{text}'")
        return _address(text[1:-1], scope, use)
    if first == "!":
        inner = parse(text[1:].strip(), scope, use)
        if not isinstance(inner, Reg):
            raise OperandError(f"expected a predicate register after '!' in '{text}'")
        return Not(inner)
    if text == "_":
        return Sink()
    if "|" in text:
        left, right = text.split("|", 1)
        return Pair(parse(left.strip(), scope, use), parse(right.strip(), scope, use))
    literal = number(text)
    if literal is not None:
        return literal
    if _NAME.match(text):
        return _name(text, scope, use)
    total = _SUM.match(text)
    if total:
        base = parse(total[1].strip(), scope, use)
        offset = number(total[3])
        if isinstance(base, Sym) and isinstance(offset, Imm):
            return Sym(base.name, base.offset + (offset.value if total[2] == "+" else -offset.value))
    raise OperandError(f"expected a register, a literal, an address or a vector, not '{text}'")


def _name(text: str, scope: Scope, use: Callable[[str, str], None]) -> Operand:
    found = scope.register(text)
    if found is not None:
        use(*found)
        return Reg(found[0])
    if text[0] == "%":
        if text[1:].split(".")[0] in SPECIAL_REGISTERS:
            return Special(text[1:])
        raise OperandError(f"register {text} is not declared here")
    if text.startswith("WARP_SZ"):
        return Imm(32)
    return Sym(text)


def _address(text: str, scope: Scope, use: Callable[[str, str], None]) -> Addr:
    parts = split(text)
    if not parts:
        raise OperandError("expected an address between '[' and ']'")
    rest = tuple(parse(part, scope, use) for part in parts[1:])
    base = parts[0]
    literal = number(base)
    if literal is not None or _NAME.match(base):
        return Addr(parse(base, scope, use), 0, rest)
    total = _SUM.match(base)
    if total is None:
        raise OperandError(f"expected a register or a name, or its sum with a literal, not '{base}'")
    inner = parse(total[1].strip(), scope, use)
    offset = number(total[3])
    if not isinstance(offset, Imm) or not isinstance(inner, Reg | Sym):
        raise OperandError(f"expected [register + literal] or [name + literal], not '[{base}]'")
    return Addr(inner, offset.value if total[2] == "+" else -offset.value, rest)
