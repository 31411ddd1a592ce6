# SPDX-License-Identifier: Apache-2.0
"""The synchronisation instructions of a PTX text, and each change of one: left out, or put past a neighbour."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SYNC = re.compile(
    r"\b(mbarrier\.\w+|bar\.\w+|barrier\.\w+|fence\.\w+|membar\.\w+|elect\.sync|cp\.async\.(?:bulk\.)?(?:commit_group|"
    r"wait_group|wait_all|mbarrier)|tcgen05\.(?:commit|wait|fence|alloc|dealloc|relinquish)|wgmma\.(?:fence|"
    r"commit_group|wait_group)|griddepcontrol|setmaxnreg|clusterlaunchcontrol\.try_cancel|tensormap\.cp_fenceproxy|"
    r"(?:ld|st|atom|red)\.(?:acquire|release|relaxed|acq_rel))[\w.:]*"
)
_EFFECT = re.compile(
    r"\b((?:ld|st|atom|red)\.(?!param|local)\w+|ldmatrix|stmatrix|cp\.async|cp\.reduce|st\.async|tcgen05\.(?:mma|ld|st|"
    r"cp)|wgmma\.mma_async|tensormap\.replace|clusterlaunchcontrol\.try_cancel)[\w.:]*"
)
_ENDS = re.compile(r"\b(bra|brx|ret|exit|trap)\b")
_REGISTER = re.compile(r"%[A-Za-z_]\w*")
_GUARD = re.compile(r"^\s*@!?%?\w+\s+")
# What has no register as its destination; the rest writes its first operand.
_NO_RESULT = re.compile(
    r"^(st|red|bar|barrier|fence|membar|mbarrier\.(?!try_wait|test_wait)|cp|tcgen05\.(?!ld)|wgmma\.(?!mma)|tensormap|"
    r"prefetch|setmaxnreg|griddepcontrol|clusterlaunchcontrol\.try|bra|ret|exit|trap|stmatrix|discard|applypriority)"
)
# No instruction of the machine comes of these: to change places with one is no change.
_EMPTY = re.compile(r"tcgen05\.fence|fence\.mbarrier_init")
OPERATIONS = ("leave out", "later", "earlier")


@dataclass(frozen=True)
class Statement:
    """One instruction, on lines `first` to `last`, and the inline assembly that it is of: lines `outer`."""

    first: int
    last: int
    text: str
    outer: tuple[int, int]


@dataclass(frozen=True)
class Change:
    """One change of one synchronisation instruction: the `number`-th of its opcode, counted from 0."""

    operation: str
    opcode: str
    number: int
    past: str  # the opcode of the neighbour that it changes places with
    what: str  # the instruction
    text: str  # of the whole kernel, changed

    @property
    def title(self) -> str:
        """Which change it is, without line numbers, which move with every release of a compiler."""
        past = f" than {self.past}" if self.past else ""
        return f"{self.operation}: {self.opcode} #{self.number}{past}"


def changes(text: str) -> list[Change]:
    """Every change of every synchronisation instruction, in the order of the text; those that registers allow."""
    lines = text.split("\n")
    statements = _statements(lines)
    counts: dict[str, int] = {}
    found: list[Change] = []
    for index, statement in enumerate(statements):
        match = _SYNC.search(statement.text)
        loop = None if match else _loop_of(lines, statements, index)
        if match is None and loop is None:
            continue
        opcode = match[0] if match else "branch of a wait"
        number = counts[opcode] = counts.get(opcode, -1) + 1
        for operation in OPERATIONS:
            changed = _changed(lines, statements, index, operation, is_branch=match is None)
            if changed is not None:
                past, text = changed
                found.append(Change(operation, opcode, number, past, " ".join(statement.text.split()), text))
    return found


def _statements(lines: list[str]) -> list[Statement]:
    found: list[Statement] = []
    outer: int | None = None
    inside: list[int] = []
    start: int | None = None
    for i, line in enumerate(lines):
        bare = line.split("//")[0].strip()
        if "begin inline asm" in line:
            outer, inside = i, []
        elif "end inline asm" in line:
            for at in inside:
                found[at] = Statement(found[at].first, found[at].last, found[at].text, (outer or 0, i))
            outer = None
        if not bare:
            continue
        if start is None:
            if bare.startswith((".", "{", "}")) and ";" not in bare.replace(".reg", "").split("{")[-1].lstrip("."):
                continue
            if re.fullmatch(r"[\w$%]+:", bare) or bare.startswith((".reg", ".loc", ".pragma", ".version", ".target")):
                continue
            start = i
        if bare.endswith((";", "}")):
            body = "\n".join(each.split("//")[0] for each in lines[start : i + 1])
            found.append(Statement(start, i, body, (start, i)))
            if outer is not None:
                inside.append(len(found) - 1)
            start = None
    return found


def _loop_of(lines: list[str], statements: list[Statement], index: int) -> int | None:
    """The try_wait whose loop this branch closes: a branch back to a label just before it."""
    match = re.search(r"\bbra(?:\.uni)?\s+([\w$%]+)\s*;", statements[index].text)
    if match is None:
        return None
    label = match[1] + ":"
    target = None
    own = statements[index]
    # Labels of inline assembly are its own.
    low = own.outer[0] if own.outer != (own.first, own.last) else 0
    for at in range(own.first, low - 1, -1):
        if lines[at].strip().startswith(label):
            target = at
            break
    if target is None:
        return None
    inner = [each for each in statements[:index] if each.first >= target]
    waits = [each for each in inner if re.search(r"mbarrier\.(try|test)_wait", each.text)]
    return statements.index(waits[0]) if waits and len(inner) <= 6 else None


def _changed(
    lines: list[str], statements: list[Statement], index: int, operation: str, *, is_branch: bool
) -> tuple[str, str] | None:
    """(the neighbour, the text)"""
    statement = statements[index]
    if operation == "leave out":
        left = _left_out(lines, statement)
        return None if left is None else ("", "\n".join(left))
    if (
        is_branch
        or re.search(r"mbarrier\.(try|test)_wait|elect\.sync", statement.text)
        or _EMPTY.search(statement.text)
    ):
        return None  # the first two are tied to the branches around them
    step = 1 if operation == "later" else -1
    passed: list[Statement] = []
    at = index + step
    while 0 <= at < len(statements):
        other = statements[at]
        between = lines[min(statement.first, other.first) : max(statement.first, other.first) + 1]
        if _ENDS.search(other.text) or any(re.match(r"\s*[\w$%]+:", line) for line in between):
            return None
        passed.append(other)
        neighbour = _SYNC.search(other.text) or _EFFECT.search(other.text)
        if other.outer != statement.outer and neighbour and not _same(statement, other):
            break
        at += step
    else:
        return None
    passed = [each for each in passed if each.outer != statement.outer]
    mine = [each for each in statements if each.outer == statement.outer]
    if _tied(mine, passed):
        return None
    assert neighbour is not None
    low, high = statement.outer
    moved, target = lines[low : high + 1], passed[-1].outer
    rest = lines[:low] + lines[high + 1 :]
    if operation == "later":
        place = target[1] + 1 - len(moved)
        return neighbour[0], "\n".join(rest[:place] + moved + rest[place:])
    return neighbour[0], "\n".join(rest[: target[0]] + moved + rest[target[0] :])


def _same(statement: Statement, other: Statement) -> bool:
    """Whether to change places is no change: nothing comes of the neighbour, or both make an mbarrier."""
    return bool(_EMPTY.search(other.text) or ("mbarrier.init." in statement.text and "mbarrier.init." in other.text))


def _left_out(lines: list[str], statement: Statement) -> list[str] | None:
    text = statement.text
    if re.match(r"\s*(@!?%?\w+\s+)?(atom|ld)\.", text):
        return None  # its result is used
    new = ""
    if match := re.search(r"mbarrier\.(?:try|test)_wait\S*\s+(%?\w+)\s*,", text):
        new = f"setp.eq.u32 {match[1]}, 0, 0;"
    elif match := re.search(r"elect\.sync\s+(\S+?)\|(%?\w+)", text):
        new = f"setp.eq.u32 {match[2]}, 0, 0;" + ("" if match[1] == "_" else f" mov.u32 {match[1]}, 0;")
    elif re.search(r"mbarrier\.arrive\S*\s+%", text):
        return None
    out = list(lines)
    first = lines[statement.first]
    label = re.match(r"\s*([\w$%]+:)", first)
    out[statement.first] = f"{label[1] if label else ''} {new}"
    for line in range(statement.first + 1, statement.last + 1):
        out[line] = ""
    return out


def _tied(mine: list[Statement], passed: list[Statement]) -> bool:
    """Whether registers forbid the change of order."""
    reads, writes = _registers(mine)
    other_reads, other_writes = _registers(passed)
    return bool(writes & (other_reads | other_writes) or reads & other_writes)


def _registers(statements: list[Statement]) -> tuple[set[str], set[str]]:
    reads: set[str] = set()
    writes: set[str] = set()
    for statement in statements:
        body = statement.text.strip().lstrip("{").strip()
        guard = _GUARD.match(body)
        if guard:
            reads |= set(_REGISTER.findall(guard[0]))
            body = body[guard.end() :]
        opcode, _, rest = body.partition(" ") if " " in body else body.partition("\t")
        operands = rest.strip()
        if _NO_RESULT.match(opcode.strip()):
            reads |= set(_REGISTER.findall(operands))
            continue
        end = operands.find("}") + 1 if operands.startswith("{") else operands.find(",")
        writes |= set(_REGISTER.findall(operands[:end] if end > 0 else operands))
        reads |= set(_REGISTER.findall(operands[end:] if end > 0 else ""))
    return reads, writes
