# SPDX-License-Identifier: Apache-2.0
"""A comparison as a document: headings, paragraphs and tables, whatever it is printed as."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tmagen.diff.align import Block, Mark, Row
from tmagen.diff.compare import Comparison
from tmagen.diff.cost import MAIN_LOOP, REGISTERS
from tmagen.diff.event import Event
from tmagen.diff.facts import Fact, Group
from tmagen.diff.reasons import reason
from tmagen.diff.results import Results
from tmagen.diff.roles import AFTER
from tmagen.diff.sections import FILL, K_TILE
from tmagen.ir import Shape

LONGEST_EQUAL_RUN = 4
WEIGHTY = (
    REGISTERS,
    "CTAs of one SM",
    MAIN_LOOP,
    "loops around single instructions (BRA.U.ANY)",
    'asm without a "memory" clobber',
    "lines",
    "of them before the kernel: declarations that nothing uses",
    "parameters of a function, at most",
    "variables named by number",
    "grid, CTAs",
    "dynamic shared memory, bytes",
    "parameters",
    "one thread is chosen by",
    "loaded stages are waited for by",
    f"{AFTER} before each first tcgen05.ld",
    "a store is waited for until",
    "maps",
    "D: dims, elements",
    "declared alignment, bytes",
    "columns allocated",
    "allocation permit given back",
    "TMEM address read from shared memory in CTA 0",
    "order",
    "every CTA takes the same tiles in the same order",
)
"""Facts whose difference is worth telling at once."""
WHOLE = ("Tile order",)
"""Subjects of which everything is told, differing or not."""
MARKS = {
    Mark.SAME: "the same",
    Mark.CHANGED: "done otherwise",
    Mark.LEFT: "on the left alone",
    Mark.RIGHT: "on the right alone",
    Mark.MOVED: "on both, at another place",
}


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a table: its mark, its cells, and what is to be said of it."""

    mark: str
    cells: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under heads."""

    heads: tuple[str, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """A title of level 2 or 3."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Prose."""

    text: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    texts: tuple[str, ...]


Part = Heading | Paragraph | Table | Items


@dataclass(frozen=True, slots=True)
class Document:
    """The whole."""

    title: str
    parts: tuple[Part, ...]


def document_of(comparison: Comparison, *, times: bool = True) -> Document:
    """Everything that was compared, the verdict first; without `times` nothing that differs from run to run."""
    left, right = comparison.left, comparison.right
    parts: list[Part] = [
        Table(
            ("side", "made by"),
            (Line("", (left.label, left.made_by)), Line("", (right.label, right.made_by))),
        ),
        Paragraph(_problems(comparison)),
        Paragraph(_made_with(comparison)),
        *_verdict(comparison),
        *_in_short(comparison),
    ]
    if comparison.unseen:
        names = " and ".join(comparison.unseen)
        parts.append(Paragraph(f"No steps, plan or cost: a run of {names} did not end."))
    if comparison.unlaunched:
        names = " and ".join(comparison.unlaunched)
        parts.append(Paragraph(f"Nothing says how {names} is launched: what follows is what stands in the code."))
    if comparison.code:
        parts += [Heading(2, "What stands in the code"), *_groups(comparison, comparison.code, fold=False)]
    if comparison.events is not None:
        parts += _events(comparison, comparison.events)
    if comparison.plan is not None:
        parts += [Heading(2, "What each decides"), *_groups(comparison, comparison.plan, fold=True)]
    if comparison.cost is not None:
        parts += [Heading(2, "What each costs"), *_groups(comparison, comparison.cost, fold=False)]
        parts += _times(comparison) if times else ()
    if comparison.result is not None:
        parts += _result(comparison, comparison.result)
    return Document(f"{left.label} against {right.label}", tuple(parts))


def _size(shape: Shape) -> str:
    return f"{shape.m} x {shape.n} x {shape.k}"


def _problems(comparison: Comparison) -> str:
    if comparison.unlaunched:
        return "Not run."
    of_a, of_b, of_d = (element.value for element in comparison.problem.elements)
    return (
        f"A {of_a}, B {of_b}, D {of_d}. Plan and cost are for {_size(comparison.problem.shape)} (M x N x K); steps and "
        f"results are from the emulator, on {_size(comparison.trial.shape)}."
    )


def _made_with(comparison: Comparison) -> str:
    tools = comparison.tools
    read = f" Machine code is read by {tools.disassembler}." if tools.disassembler else ""
    tvm = (
        f" TIRx scripts are lowered by {tools.tvm}; its own call of nvcc adds --use_fast_math and ptxas's "
        "--register-usage-level, which gives other figures than these."
        if tools.tvm
        else ""
    )
    return f"Both are compiled by {tools.nvcc} with {tools.ptxas}, {' '.join(tools.flags)}.{read}{tvm}"


# --- the verdict ------------------------------------------------------------------------------------------------------


def _verdict(comparison: Comparison) -> Iterator[Part]:
    result = comparison.result
    if result is None:
        return
    left, right = comparison.left.label, comparison.right.label
    if result.unjudged:
        yield Paragraph(f"Not judged: {result.unjudged}.")
        return
    if result.same:
        runs = len(result.cases)
        yield Paragraph(f"Both compute the same, bit for bit, in {runs} run{'' if runs == 1 else 's'} of each.")
    else:
        wrong = next(case for case in result.cases if not case.same)
        yield Paragraph(
            f"They do not compute the same ({wrong.inputs} inputs, {wrong.completion} order): {wrong.message}."
        )
    for label, fired in ((left, [c for c in result.checks if c.left]), (right, [c for c in result.checks if c.right])):
        found = "; ".join(f"{check.rule}, {check.title} ({check.severity})" for check in fired)
        yield Paragraph(f"Checks of the emulator on {label}: {found or 'none fires'}.")


def _in_short(comparison: Comparison) -> Iterator[Part]:
    """The differences that matter most, costs first, and that there are more."""
    groups = [*(comparison.cost or ()), *(comparison.plan or ())]
    labels = (comparison.left.label, comparison.right.label)
    lines = [
        Line("~", (_brief(group.title, fact.name), fact.left, fact.right), fact.note)
        for group in groups
        for fact in group.facts
        if fact.differs and fact.name in WEIGHTY
    ]
    reasons = [
        text
        for block in comparison.events or ()
        for row in block.rows
        if row.mark is not Mark.SAME and (text := reason(row, block)) is not None
    ]
    if lines or reasons:
        yield Heading(2, "In short")
    if lines:
        yield Table(("", "", *labels, "why"), tuple(_once(iter(lines))))
    if reasons:
        distinct = len(dict.fromkeys(reasons))
        yield Paragraph(f"{distinct} kinds of difference in the steps, each with its reason, are told below.")


def _brief(title: str, name: str) -> str:
    """A row's name where it stands alone: with its subject, where the name does not say it."""
    if title == "Source" or title.startswith(("Tensor maps", "Shared memory", "Tile order")):
        return f"{title.lower()}: {name.removeprefix('of them ')}"
    return name


# --- events -----------------------------------------------------------------------------------------------------------


def _events(comparison: Comparison, blocks: Sequence[Block]) -> Iterator[Part]:
    left, right = comparison.left.label, comparison.right.label
    yield Heading(2, "What each does")
    legend = ", ".join(f"{mark.value} {words}" for mark, words in MARKS.items())
    yield Paragraph(f"The steps of CTA 0, as its busiest thread meets them, and who takes each. {legend}.")
    yield Paragraph(
        "Barriers are named by their use: full[s] is the one that loads of stage s complete on, mma_done the one that "
        "tcgen05.commit arrives on."
    )
    for block in blocks:
        yield Heading(3, _block_title(block))
        if block.alone is not None:
            label = left if block.alone is Mark.LEFT else right
            yield Paragraph(f"On {label} alone, whose CTA goes on: each step as in its tile 1.")
            continue
        yield Table(("", left, right, "why"), tuple(_once(_event_lines(block))))
        if block.varying:
            yield Paragraph(_varying(block, left, right))
    yield Heading(3, "Steps of CTA 0 in all")
    totals = comparison.totals
    yield Table(
        ("", "step", left, right),
        tuple(Line("=" if mine == theirs else "~", (name, str(mine), str(theirs))) for name, mine, theirs in totals),
    )


def _block_title(block: Block) -> str:
    (first, last), (k_first, k_last) = block.tiles, block.k
    if first < 0:
        return block.name.capitalize()
    tiles = f"Tile {first + 1}" if first == last else f"Tiles {first + 1} to {last + 1}"
    if block.alone is not None:
        return tiles
    if block.name == K_TILE:
        shown = "" if block.shown == k_first else f", as K tile {block.shown}"
        return f"{tiles}, K tile{'' if k_first == k_last else 's'} {_range(k_first, k_last)}{shown}"
    return f"{tiles}, {'first loads' if block.name == FILL else block.name}"


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _event_lines(block: Block) -> Iterator[Line]:
    equal: list[Row] = []
    for row in block.rows:
        if row.mark is Mark.SAME:
            equal.append(row)
            continue
        yield from _equal_lines(equal)
        equal = []
        yield Line(row.mark.value, (_step(row.left), _step(row.right)), reason(row, block) or "")
    yield from _equal_lines(equal)


def _equal_lines(rows: list[Row]) -> Iterator[Line]:
    shown = rows if len(rows) <= LONGEST_EQUAL_RUN else rows[:1]
    for row in shown:
        yield Line(Mark.SAME.value, (_step(row.left), "the same"))
    if len(shown) < len(rows):
        yield Line(Mark.SAME.value, (f"... {len(rows) - len(shown)} more steps", "the same"))


def _step(event: Event | None) -> str:
    return "" if event is None else f"{event.text} ({event.who})"


def _once(lines: Iterator[Line]) -> Iterator[Line]:
    """A note that was said in the table already is not said again: it is told where."""
    seen: dict[str, str] = {}
    last = ""
    for line in lines:
        note = line.note
        if note and note in seen:
            yield Line(line.mark, line.cells, "as above" if note == last else f"as at {seen[note]}")
        else:
            yield line
            seen[note] = next((cell for cell in line.cells if cell), "").split(" (")[0]
        last = note


def _varying(block: Block, left: str, right: str) -> str:
    texts = []
    for name, mine, theirs in block.varying:
        texts.append(
            f"{name} {mine}" if mine == theirs else f"{name} {mine or '-'} ({left}), {theirs or '-'} ({right})"
        )
    return f"From one to the next: {'; '.join(texts)}."


# --- facts ------------------------------------------------------------------------------------------------------------


def _groups(comparison: Comparison, groups: Sequence[Group], *, fold: bool) -> Iterator[Part]:
    left, right = comparison.left.label, comparison.right.label
    for group in groups:
        yield Heading(3, group.title)
        folded = fold and group.title not in WHOLE
        shown = [fact for fact in group.facts if fact.differs or not folded]
        if shown:
            lines = (_fact_line(fact) for fact in shown)
            yield Table(("", "", left, right, "why"), tuple(_once(lines)))
        same = [f"{fact.name} {fact.left}" for fact in group.facts if not fact.differs]
        if folded and same:
            yield Paragraph(f"The same on both: {'; '.join(same)}.")


def _times(comparison: Comparison) -> Iterator[Part]:
    left, right = comparison.left, comparison.right
    seconds = (f"{side.code.seconds:.1f} s" if side.code.seconds else "-" for side in (left, right))
    yield Heading(3, "Compile time")
    yield Table(("", left.label, right.label), (Line("", ("nvcc", *seconds)),))


def _fact_line(fact: Fact) -> Line:
    return Line("~" if fact.differs else "=", (fact.name, fact.left, fact.right), fact.note)


# --- result -----------------------------------------------------------------------------------------------------------


def _result(comparison: Comparison, result: Results) -> Iterator[Part]:
    left, right = comparison.left.label, comparison.right.label
    yield Heading(2, "What each computes")
    yield Table(
        ("", "inputs", "order of asynchronous work", "D", f"{left} exact", f"{right} exact"),
        tuple(
            Line(
                "=" if case.same else "~",
                (
                    case.inputs,
                    case.completion,
                    case.message or "the same, bit for bit",
                    _exact(case.left_exact),
                    _exact(case.right_exact),
                ),
            )
            for case in result.cases
        ),
    )
    for label, report in result.reports:
        yield Paragraph(f"{label} in full:")
        yield Items(report)
    if result.checks:
        lines = tuple(
            Line(
                "~" if bool(c.left) != bool(c.right) else "=",
                (c.rule, c.title, c.severity, c.left or "-", c.right or "-"),
            )
            for c in result.checks
        )
        yield Table(("", "check", "about", "severity", left, right), lines)
    else:
        yield Paragraph("No check of the emulator fires on either.")


def _exact(value: bool | None) -> str:
    return "-" if value is None else "yes" if value else "no"
