# SPDX-License-Identifier: Apache-2.0
"""What each side decides: launch, tensor maps, shared memory, barriers, tensor memory, descriptors, tile order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from tmagen.diff.code import Code
from tmagen.diff.facts import Fact, Group, facts, paired
from tmagen.diff.layout import Map
from tmagen.diff.notes import noted
from tmagen.diff.roles import roles
from tmagen.diff.tile_order import first_wave, name_of, order_of, share_of, tiles_text
from tmagen.diff.view import View
from tmagen.emu.errors import EmulatorError
from tmagen.emu.instr_descriptor import decode
from tmagen.emu.module import Entry
from tmagen.emu.smem_descriptor import SmemDescriptor

Pairs = list[tuple[str, str]]
SWIZZLE_ATOM_BYTES = 1024
SWIZZLE_ATOM_NOTE = (
    f"a tile with a 128-byte swizzle has to start at a multiple of {SWIZZLE_ATOM_BYTES:,}: declared less, it does so "
    "by the luck of the base"
)
MAP_BYTES = 128  # of a tensor map


def decisions(left: View, right: View) -> tuple[Group, ...]:
    """All of it, side by side."""
    both = (left, right)
    groups = (
        Group("Launch", _launch(*both)),
        Group("Who does what, and what is waited for", roles(*both)),
        Group("Tensor maps", _maps(*both)),
        Group("Shared memory", _smem(*both)),
        Group("mbarriers", _grouped(_barriers, *both)),
        Group("Tensor memory", _tmem(*both)),
        Group("Shared-memory descriptors", _grouped(_smem_descriptors, *both)),
        Group("Instruction descriptor", _grouped(_instr_descriptor, *both)),
        Group("Tile order", _tiles(*both)),
    )
    return noted(groups)


def _grouped(pairs: Callable[[View], Pairs], left: View, right: View) -> tuple[Fact, ...]:
    return paired(pairs(left), pairs(right))


# --- launch -----------------------------------------------------------------------------------------------------------


def _launch(left: View, right: View) -> tuple[Fact, ...]:
    mine, theirs = left.launch, right.launch
    entries = (left.side.code.entry, right.side.code.entry)
    bounds = [bounds_of(entry.directives) for entry in entries]
    return facts(
        ("grid, CTAs", _dims(mine.grid), _dims(theirs.grid)),
        ("block, threads", _dims(mine.block), _dims(theirs.block)),
        ("cluster, CTAs", _dims(mine.cluster), _dims(theirs.cluster)),
        ("dynamic shared memory, bytes", mine.dynamic_smem_bytes, theirs.dynamic_smem_bytes),
        ("launch bounds", *bounds),
        (
            "parameters",
            *(parameters_of(entry) for entry in entries),
            "a tensor map takes 128 bytes; the rest is what is known at run time only: tile counts, and the edge of D",
        ),
    )


def _dims(values: tuple[int, int, int]) -> str:
    return " x ".join(str(value) for value in values)


def parameters_of(entry: Entry) -> str:
    """Tensor maps and the rest."""
    maps = sum(param.size == MAP_BYTES for param in entry.params)
    others = sum(param.size for param in entry.params if param.size != MAP_BYTES)
    return f"{maps} tensor maps" + (f" and {others:,} bytes" if others else "")


def bounds_of(directives: dict[str, tuple[int, ...]]) -> str:
    """The launch bounds of a kernel."""
    words = {"maxntid": "threads at most", "reqntid": "threads", "minnctapersm": "CTAs per SM at least"}
    found = [f"{directives[name][0]} {what}" for name, what in words.items() if name in directives]
    return ", ".join(found) or "none"


# --- tensor maps ------------------------------------------------------------------------------------------------------


def _maps(left: View, right: View) -> tuple[Fact, ...]:
    mine, theirs = left.maps, right.maps
    found = list(
        facts(
            (
                "maps",
                len(mine),
                len(theirs),
                "copies that differ in nothing can share one map: each is 128 bytes of parameters and an entry of the "
                "descriptor cache",
            )
        )
    )
    for operand in "ABD":
        ours, others = ([m for m in maps if m.operand == operand] for maps in (mine, theirs))
        if not ours and not others:
            continue
        found += facts((f"{operand}: maps", len(ours), len(others)))
        found += [
            Fact(f"{operand}: {fact.name}", fact.left, fact.right, _map_note(operand, fact))
            for fact in paired(_map_fields(ours), _map_fields(others))
        ]
    return tuple(found)


def _map_fields(maps: list[Map]) -> Pairs:
    """The fields of an operand's maps; of several, every value that occurs."""
    columns: dict[str, list[str]] = {}
    for found in maps:
        fields = found.fields
        rows = (
            ("dims, elements", _list(fields.dims)),
            ("strides, bytes", _list(fields.strides)),
            ("box, elements", _list(fields.box)),
            ("type", fields.data_type.name.lower()),
            ("swizzle", fields.swizzle.name),
            ("L2 promotion", fields.l2_promotion.name),
            ("element strides", _list(fields.element_strides)),
            ("interleave", fields.interleave.name),
            ("out of bounds", fields.oob_fill.name),
        )
        for name, value in rows:
            columns.setdefault(name, []).append(value)
    return [(name, " and ".join(dict.fromkeys(values))) for name, values in columns.items()]


def _map_note(operand: str, fact: Fact) -> str:
    if operand == "D" and fact.name == "dims, elements" and fact.left.count(",") != fact.right.count(","):
        return (
            "rank 3 folds swizzle atoms of columns into a dimension: where N ends inside an atom, the columns past it "
            "are not clipped"
        )
    return ""


def _list(values: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, values))}]"


# --- shared memory ----------------------------------------------------------------------------------------------------


def _smem(left: View, right: View) -> tuple[Fact, ...]:
    aligns = [declared_alignment(view.side.code) for view in (left, right)]
    found = facts(
        ("bytes", left.launch.dynamic_smem_bytes, right.launch.dynamic_smem_bytes),
        (
            "declared alignment, bytes",
            *aligns,
            SWIZZLE_ATOM_NOTE,
        ),
    )
    return (*found, *paired(_smem_map(left), _smem_map(right)))


def declared_alignment(code: Code) -> int:
    """Of dynamic shared memory, bytes."""
    module, entry = code.module, code.entry
    dynamic = [v for v in (*module.variables, *entry.variables) if v.space == "shared" and v.nbytes is None]
    return max((variable.align for variable in dynamic), default=16)


def _smem_map(view: View) -> Pairs:
    """Where each thing lies, from the start of dynamic shared memory: as the run used it."""
    names = view.names
    base = names.dynamic_base
    found: dict[str, tuple[int, int]] = {}
    for operand, stage, start, size in names.stages:
        found[f"{operand}, stage {stage}"] = (start - base, size)
    boxes = [event.operands for event in view.recording.events if event.kind == "tma_store"]
    if boxes:
        spans = [(place, place + names.maps[at].fields.footprint) for place, at, _ in boxes if at in names.maps]
        if spans:
            low, high = min(low for low, _ in spans), max(high for _, high in spans)
            found["D staging"] = (low - base, high - low)
    for address, name in names.barriers.items():
        found[name] = (address - base, 8)
    for event in view.recording.events:
        if event.kind == "tmem_alloc":
            found["TMEM address"] = (event.operands[0] - base, 4)
    return [(name, f"{offset:,} + {size:,}") for name, (offset, size) in found.items()]


def _barriers(view: View) -> Pairs:
    rows: Pairs = []
    counts = {e.operands[0]: e.operands[1] for e in view.recording.events if e.kind == "barrier_init"}
    for address, name in view.names.barriers.items():
        count = counts.get(address, 0)
        expected = {
            e.operands[2]
            for e in view.recording.events
            if e.kind == "barrier_arrive" and len(e.operands) == 3 and e.operands[0] == address and e.operands[2]
        }
        waits = {e.who for e in view.events if e.op == "wait" and e.about == name.partition("[")[0]}
        tx = ", ".join(f"{value:,}" for value in sorted(expected)) or "0"
        arrival = f"{count} arrival{'' if count == 1 else 's'}"
        rows.append((name, f"{arrival}, {tx} tx bytes, waited for by {' and '.join(sorted(waits)) or 'nobody'}"))
    return rows


# --- tensor memory and descriptors ------------------------------------------------------------------------------------


def _tmem(left: View, right: View) -> tuple[Fact, ...]:
    columns = [_allocated(view) for view in (left, right)]
    used = [_used_columns(view) for view in (left, right)]
    ctas = [512 // count if count else None for count in columns]
    return facts(
        (
            "columns allocated",
            *columns,
            "the SM has 512: what one CTA takes beyond its need makes others wait",
        ),
        ("columns used", *used),
        ("CTAs that an SM has columns for", *ctas),
        (
            "allocation permit given back",
            *(_permit(view) for view in (left, right)),
            "a CTA that keeps it makes the next one of its SM wait at tcgen05.alloc",
        ),
        ("TMEM address read from shared memory in CTA 0", *(_address_reads(view) for view in (left, right))),
    )


def _allocated(view: View) -> int:
    return sum(event.operands[1] for event in view.recording.events if event.kind == "tmem_alloc")


def _used_columns(view: View) -> int:
    shapes = {event.operands[3] for event in view.recording.events if event.kind == "mma"}
    return max(((bits >> 17 & 0x3F) << 3 for bits in shapes), default=0)


def _permit(view: View) -> str:
    kinds = [event.kind for event in view.recording.events]
    if "tmem_relinquish" not in kinds:
        return "never"
    return "before the first load" if kinds.index("tmem_relinquish") < kinds.index("tma_load") else "at the end"


def _address_reads(view: View) -> int:
    cells = {event.operands[0] for event in view.recording.events if event.kind == "tmem_alloc"}
    return sum(
        event.kind == "load" and event.operands[0] in ("shared", "generic") and event.operands[1] in cells
        for event in view.recording.events
    )


def _smem_descriptors(view: View) -> Pairs:
    """The fields of A's and B's descriptors, and what is added from one MMA, and from one stage, to the next."""
    rows: Pairs = []
    mmas = [event.operands for event in view.recording.events if event.kind == "mma"]
    for operand, position in (("A", 1), ("B", 2)):
        words = [operands[position] for operands in mmas]
        if not words:
            continue
        start = ((words[0] & 0x3FFF) << 4) - view.names.dynamic_base
        rows.append((f"{operand}: start", f"{start:,}"))
        try:
            fields = SmemDescriptor.decode(words[0])
        except EmulatorError:
            rows.append((f"{operand}: word", f"{words[0]:#018x}"))
            continue
        rows += [
            (f"{operand}: leading byte offset (not used when swizzled)", f"{fields.leading:,}"),
            (f"{operand}: stride byte offset", f"{fields.stride:,}"),
            (f"{operand}: swizzle", fields.swizzle.name),
            (f"{operand}: base offset", str(fields.base_offset)),
        ]
        steps = dict.fromkeys(((b - a) & 0x3FFF) << 4 for a, b in pairwise(words))
        if steps:
            rows.append((f"{operand}: K step, bytes", f"{next(iter(steps)):,}"))
        firsts = [size for name, stage, _, size in view.names.stages if name == operand]
        if len(firsts) > 1:
            rows.append((f"{operand}: stage step, bytes", f"{firsts[0]:,}"))
    return rows


def _instr_descriptor(view: View) -> Pairs:
    mmas = [event for event in view.recording.events if event.kind == "mma"]
    if not mmas:
        return []
    bits = mmas[0].operands[3]
    kind = next(part.removeprefix("kind::") for part in mmas[0].instruction.parts if part.startswith("kind::"))
    rows: Pairs = [("word", f"{bits:#010x}"), ("kind", kind)]
    try:
        fields = decode(kind, bits)
    except EmulatorError:
        return rows
    return [
        *rows,
        ("M, N, K", f"{fields.m}, {fields.n}, {fields.k}"),
        ("A, B, D", ", ".join(f.value[0] for f in (fields.a, fields.b, fields.d))),
        ("A, B major", f"{fields.a_major.name}, {fields.b_major.name}"),
        ("A, B negated", f"{'yes' if fields.negate_a else 'no'}, {'yes' if fields.negate_b else 'no'}"),
    ]


# --- tile order -------------------------------------------------------------------------------------------------------


def _tiles(left: View, right: View) -> tuple[Fact, ...]:
    """Of the problem that is asked about, from the schedulers alone; and of the emulated one, from the whole run."""
    mine, theirs = left.order, right.order
    if mine.untold or theirs.untold:
        return facts(("order", *(order.untold or name_of(order.sequence) for order in (mine, theirs)))) + _emulated(
            left, right
        )
    asked = facts(
        ("output tiles", len(mine.sequence), len(theirs.sequence)),
        ("order", name_of(mine.sequence), name_of(theirs.sequence)),
        ("a CTA takes", share_of(mine), share_of(theirs)),
        ("tiles of CTA 0, by (m, n)", *(tiles_text(next(iter(order.ctas.values()), ())) for order in (mine, theirs))),
        (
            "rows of tiles that the first tile of each CTA needs",
            first_wave(mine),
            first_wave(theirs),
            "tiles that are computed at a time share rows of A and of B: the fewer of them, the more is found in L2",
        ),
        ("every CTA takes the same tiles in the same order", "yes", "yes" if mine == theirs else "no"),
    )
    return asked + _emulated(left, right)


def _emulated(left: View, right: View) -> tuple[Fact, ...]:
    if not (left.recording.complete and right.recording.complete):
        return ()
    mine, theirs = (
        order_of(
            view.recording.stores,
            [found for found in view.names.maps.values() if found.operand == "D"],
            view.names.pitches["D"],
        )
        for view in (left, right)
    )
    return facts(
        ("emulated: CTAs", len(mine.ctas), len(theirs.ctas)),
        ("emulated: tiles of CTA 0", *(tiles_text(next(iter(order.ctas.values()), ())) for order in (mine, theirs))),
        ("emulated: the same tiles in the same order", "yes", "yes" if mine == theirs else "no"),
    )
