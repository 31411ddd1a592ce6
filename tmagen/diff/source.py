# SPDX-License-Identifier: Apache-2.0
"""A CUDA text as a reader meets it: what its lines are, and the clobbers of its inline assembly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

ORDERED = ("tcgen05.mma", "tcgen05.ld", "tcgen05.st", "tcgen05.commit", "cp.async.bulk", "mbarrier", "fence", "bar.")
"""Instructions that the compiler must not move other accesses across: their asm has to name memory as clobbered."""

_WORD = re.compile(r"[A-Za-z_]\w*")
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
_DECLARED = re.compile(
    r"^\s*(?:const |constexpr |alignas\(\d+\) )*[A-Za-z_][\w:]*(?:<[^<>]*>)?\s*[*&]*\s+[*&]?(\w+)\s*(?:[=;{]|\[)"
)
_NUMBERED = re.compile(r"\w*[a-z]_v?\d+(?:_ptr)?|_ptr(?:_\d+)?|v_?\d+")
_NO_NAMES = frozenset(
    "__device__ __host__ __global__ __forceinline__ static inline constexpr const template typename".split()
)


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Counts of one text. Each line is of one of the seven kinds that stand first."""

    blank_and_comments: int
    host: int  # what launches the kernel, with its checks and tensor maps
    kernel: int  # the body of the __global__ function
    wrappers: int  # functions of one asm statement, of those that the kernel uses
    called: int  # other functions, types and constants that the kernel uses
    directives: int  # directives of the preprocessor, and static_assert
    unused: int  # declarations that neither the kernel nor the host part uses
    lines: int  # all
    widest_line: int
    most_parameters: int  # of one function
    numbered: tuple[str, ...]  # variables of the kernel whose name is a number, as cse_v4
    unclobbered: tuple[str, ...]  # instructions of ORDERED whose asm does not clobber memory


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A declaration at the outermost level, or a directive: its lines of code, what it names and what it mentions."""

    lines: int
    names: frozenset[str]
    words: frozenset[str]
    is_wrapper: bool
    is_directive: bool


def source_facts(text: str) -> SourceFacts:
    """Reads a text of one kernel."""
    lines = text.splitlines()
    code = _without_comments(text).splitlines()
    kernel = next((i for i, line in reversed(list(enumerate(code))) if "__global__" in line), len(lines))
    end = next((i for i in range(kernel, len(lines)) if lines[i].startswith("}")), len(lines) - 1)
    chunks = _chunks(code[:kernel])
    body = code[kernel : end + 1]
    asserts = [chunk for chunk in chunks if chunk.is_directive]
    known = set(_WORD.findall("\n".join([*body, *code[end + 1 :]]))).union(*(chunk.words for chunk in asserts))
    used = _used([chunk for chunk in chunks if not chunk.is_directive], known)
    directives = sum(chunk.lines for chunk in asserts) + _count(code[:kernel]) - sum(chunk.lines for chunk in chunks)
    return SourceFacts(
        lines=len(lines),
        blank_and_comments=sum(not line.strip() for line in code),
        host=_count(code[end + 1 :]),
        kernel=_count(body),
        wrappers=sum(chunk.lines for chunk in used if chunk.is_wrapper),
        called=sum(chunk.lines for chunk in used if not chunk.is_wrapper),
        directives=directives,
        unused=_count(code[:kernel]) - directives - sum(chunk.lines for chunk in used),
        widest_line=max(map(len, lines), default=0),
        most_parameters=max((found.count(",") + 1 for found in _parameter_lists(text)), default=0),
        numbered=tuple(dict.fromkeys(_numbered(body))),
        unclobbered=tuple(dict.fromkeys(_unclobbered(text))),
    )


def _count(lines: list[str]) -> int:
    return sum(bool(line.strip()) for line in lines)


def _without_comments(text: str) -> str:
    """The text with comments blanked and line breaks kept."""

    def blank(found: re.Match[str]) -> str:
        return found[0] if found[0].startswith('"') else "\n" * found[0].count("\n")

    return re.sub(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', blank, text, flags=re.DOTALL)


def _chunks(lines: list[str]) -> list[_Chunk]:
    """Outermost declarations and directives; a namespace is no level, and neither is extern "C"."""
    found: list[_Chunk] = []
    gathered: list[str] = []
    depth = 0
    directive = False
    for line in lines:
        if not line.strip():
            continue
        stripped = line.strip()
        if not gathered and re.match(r"(?:namespace\b.*|extern \"C\"\s*)\{$|\}$", stripped):
            continue
        if not gathered and stripped.startswith("#"):
            directive = True
        gathered.append(line)
        if directive:
            if not stripped.endswith("\\"):
                found.append(_chunk(gathered))
                gathered, directive = [], False
            continue
        bare = _LITERAL.sub("", stripped)
        depth += bare.count("{") - bare.count("}")
        if depth == 0 and bare.endswith((";", "}", ")")) and not bare.startswith("template"):
            if bare.endswith(")") and not re.match(r"[A-Z_]+\(", bare):
                continue  # the head of a function whose body begins on the next line
            found.append(_chunk(gathered))
            gathered = []
    return [*found, *([_chunk(gathered)] if gathered else [])]


def _chunk(lines: list[str]) -> _Chunk:
    text = "\n".join(lines)
    head = text.partition("{")[0]
    if text.lstrip().startswith("#"):
        names = set(re.findall(r"#\s*define\s+(\w+)", text))
    else:
        names = set(re.findall(r"(\w+)\s*(?:<[^<>]*>\s*)?\(", head)[:2]) - {"__align__", "alignas", "decltype"}
        names |= set(
            re.findall(r"\b(?:struct|using|enum|class|union)\s+(?:alignas\(\d+\)\s+|__align__\(\d+\)\s+)?(\w+)", head)
        )
        names |= set(re.findall(r"(\w+)\s*=", head)) if "constexpr" in head else set()
    bodies = text.count("asm volatile") + len(re.findall(r"\basm\s*\(", text))
    plain = text.lstrip()
    return _Chunk(
        lines=len(lines),
        names=frozenset(names - _NO_NAMES),
        words=frozenset() if plain.startswith("#") else frozenset(_WORD.findall(_LITERAL.sub("", text))),
        is_wrapper=bodies == 1,
        is_directive=plain.startswith("static_assert") or (plain.startswith("#") and not names),
    )


def _used(chunks: list[_Chunk], words: set[str]) -> list[_Chunk]:
    """What the kernel needs: what it names, and what that names in turn."""
    found: dict[int, _Chunk] = {}
    grown = True
    while grown:
        grown = False
        for at, chunk in enumerate(chunks):
            if at not in found and chunk.names & words:
                found[at], grown = chunk, True
                words |= chunk.words
    return [found[at] for at in sorted(found)]


def _numbered(body: list[str]) -> Iterator[str]:
    for line in body:
        declared = _DECLARED.match(line)
        if declared is not None and _NUMBERED.fullmatch(declared[1]):
            yield declared[1]


def _parameter_lists(text: str) -> list[str]:
    return re.findall(r"__device__[^;{}()]*\(([^(){};]*)\)\s*\{", text)


def _unclobbered(text: str) -> list[str]:
    found = []
    for statement in re.findall(r"\basm\b[^;]*?\((.*?)\)\s*;\s*(?=[\n}])", text, re.DOTALL):
        if '"memory"' in statement:
            continue
        literals = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', statement)).replace("\\n", " ").replace("\\t", " ")
        for opcode in re.findall(r"(?:^|[\s;{])((?:tcgen05|cp|mbarrier|fence|bar)\.[\w.:]+)", literals):
            if opcode.startswith(ORDERED):
                found.append(_short(opcode))
    return found


def _short(opcode: str) -> str:
    """Enough of an opcode to know it by."""
    if "commit_group" in opcode or "wait_group" in opcode:
        return opcode
    return ".".join(opcode.split(".")[:2])
