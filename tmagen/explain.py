# SPDX-License-Identifier: Apache-2.0
"""What `tmagen explain` says about a plan, as sections of tables for a reader."""

from __future__ import annotations

from dataclasses import dataclass

from tmagen.bind import BoundLaunch, bind
from tmagen.budget import budget_of, resident_ctas
from tmagen.descriptors import Descriptor
from tmagen.emit_text import text_of
from tmagen.ir import Shape
from tmagen.pipeline_table import KLoop, Load, k_loop
from tmagen.plan import Plan
from tmagen.tables import Table

VARIABLES = {
    "m": "rows of A and D",
    "n": "rows of B, columns of D",
    "k": "columns of A and B",
    "lda, ldb, ldd": "elements from one row to the next, a multiple of 16 bytes",
}
"""What the expressions of a plan without a shape are over; tile counts come on top."""


@dataclass(frozen=True, slots=True)
class Section:
    """A table under a title, and lines below it."""

    title: str
    rows: Table = ()
    notes: tuple[str, ...] = ()


def sections_of(plan: Plan, shape: Shape | None = None, k_tiles: int | None = None) -> tuple[Section, ...]:
    """Everything about ``plan``, in the order in which one asks.

    With a shape, maps, grid and tiles are numbers; with ``k_tiles``, the K loop of so many tiles is there too. Raises
    :class:`tmagen.errors.SpecError` for a shape other than one that is baked in.
    """
    text = text_of(plan)
    bound = None if shape is None else bind(plan, shape)
    found = [
        Section("Tiles", text.tile_table),
        Section(f"Shared memory: {plan.smem.bytes:,} bytes", text.smem_table, _resident(plan)),
        Section("Barriers", text.barrier_table),
        Section("Roles", text.role_table),
        *([Section("Tensor memory", _tmem_table(plan))] if plan.tmem.columns else []),
        _tensor_maps(plan, shape, bound),
        _mma(plan),
        _descriptor("Shared-memory descriptor of A and B, start address 0", plan.mma.smem_descriptor),
        *_instr_descriptor(plan),
        Section("Epilogue", _epilogue_table(plan)),
        _launch(plan, shape, bound),
    ]
    if bound is not None:
        found.append(_tiles(plan, bound))
    if k_tiles is not None:
        found.append(_k_loop(plan, k_loop(plan, k_tiles)))
    return tuple(found)


def edge_variables(plan: Plan) -> dict[str, str]:
    """What the plan says of the columns that end inside a 16-byte chunk: TMA stores whole chunks only."""
    if not plan.epilogue.ragged:
        return {}
    chunk = plan.epilogue.chunk_cols
    return {
        "n_edge": f"n mod {chunk}, columns of D that leave by ordinary stores",
        "n_first": f"n - n mod {chunk}, the first of them",
        "n_whole": "n_first, or n where that is 0 (the map is then not used)",
    }


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _resident(plan: Plan) -> tuple[str, ...]:
    resident = resident_ctas(budget_of(plan.spec, plan.arch), plan.arch)
    return (f"One SM holds {_count(resident, 'CTA')} at a time, as far as shared memory and TMEM go.",)


def _tmem_table(plan: Plan) -> Table:
    tmem = plan.tmem
    return (
        ("columns allocated", "columns used", "lanes", "of an SM"),
        (str(tmem.columns), str(tmem.used_columns), str(tmem.lanes), f"{plan.arch.tmem_columns} columns"),
    )


def _list(values: tuple[object, ...]) -> str:
    return "[" + ", ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in values) + "]"


def _instr_descriptor(plan: Plan) -> list[Section]:
    descriptor = plan.mma.instr_descriptor
    return [] if descriptor is None else [_descriptor("Instruction descriptor", descriptor)]


def _tensor_maps(plan: Plan, shape: Shape | None, bound: BoundLaunch | None) -> Section:
    heads = ("map", "of", "element", "dims", "strides, bytes", "box", "box steps", "swizzle", "L2 promotion", "copies")
    encoded = {} if bound is None else {tensor_map.name: tensor_map for tensor_map in bound.tensor_maps}
    rows = [
        (
            tensor_map.name,
            tensor_map.operand,
            tensor_map.dtype.value,
            _list(encoded[tensor_map.name].dims if tensor_map.name in encoded else tensor_map.dims),
            _list(encoded[tensor_map.name].strides if tensor_map.name in encoded else tensor_map.strides),
            _list(tensor_map.box),
            _list(tensor_map.element_strides),
            f"{tensor_map.swizzle_bytes} bytes" if tensor_map.swizzle_bytes else "none",
            f"{tensor_map.l2_promotion_bytes} bytes",
            tensor_map.copies,
        )
        for tensor_map in plan.tensor_maps
        if bound is None or tensor_map.name in encoded
    ]
    if bound is not None:
        lds = bound.leading_dims
        notes = [f"Leading dimensions: lda {lds.a:,}, ldb {lds.b:,}, ldd {lds.d:,} elements, the least that TMA takes."]
        if bound.shape.k == 0:
            notes.append("k = 0: A and B are not read, and their maps stay empty.")
    elif shape is not None:
        notes = ["m or n is 0: nothing is encoded."]
    else:
        notes = [f"{names}: {meaning}." for names, meaning in (VARIABLES | edge_variables(plan)).items()]
        notes.append("Dims and strides are expressions, since no shape is known; --shape M,N,K makes them numbers.")
    return Section("Tensor maps, innermost dimension first, no interleave, zero fill", (heads, *rows), tuple(notes))


def _mma(plan: Plan) -> Section:
    mma = plan.mma
    steps = f"{mma.steps_per_stage} in {_count(plan.operand.atoms, 'swizzle atom')} of {mma.steps_per_atom}"
    return Section(
        "MMA",
        (
            ("instruction", "M", "N", "K", "per stage", "start address from step to step"),
            (
                mma.instruction,
                str(mma.m),
                str(mma.n),
                str(mma.k),
                steps,
                f"+{mma.k_step_units} (units of 16 bytes)",
            ),
        ),
    )


def _bits(lowest: int, highest: int) -> str:
    return str(lowest) if lowest == highest else f"{lowest}-{highest}"


def _descriptor(title: str, descriptor: Descriptor) -> Section:
    rows = [
        (field.name, _bits(field.shift, field.shift + field.bits - 1), str(field.value), field.meaning)
        for field in descriptor.fields
    ]
    return Section(
        f"{title}: 0x{descriptor.value:0{descriptor.bits // 4}X}",
        (("field", "bits", "value", "meaning"), *rows),
        ("All other bits are 0.",),
    )


def _epilogue_table(plan: Plan) -> Table:
    epilogue = plan.epilogue
    return (
        ("box of D", "swizzle", "boxes", "per pass", "passes", "staging bytes", "named barrier"),
        (
            f"{plan.spec.tile.m} x {epilogue.box_cols}",
            f"{epilogue.box_bytes} bytes",
            str(epilogue.boxes),
            str(epilogue.boxes_per_pass),
            str(epilogue.passes),
            f"{epilogue.staging_bytes:,}",
            f"{epilogue.barrier_id}, {epilogue.barrier_threads} threads",
        ),
    )


def _launch(plan: Plan, shape: Shape | None, bound: BoundLaunch | None) -> Section:
    launch = plan.launch
    grid = _list(launch.grid if bound is None else bound.grid)
    rows = [
        ("kernel", launch.kernel),
        ("grid", "nothing is launched: m or n is 0" if shape is not None and bound is None else grid),
        ("block", _list(launch.block)),
        ("cluster", _list(launch.cluster)),
        ("dynamic shared memory", f"{launch.smem_bytes:,} bytes"),
    ]
    values = {} if bound is None else dict(bound.parameters)
    rows += [
        ("parameter", f"{parameter.type} {parameter.name} = {values.get(parameter.name, parameter.value)}")
        for parameter in launch.parameters
    ]
    tile = plan.spec.tile
    notes = (
        f"m_tiles = ceil(m / {tile.m}), n_tiles = ceil(n / {tile.n}), k_tiles = ceil(k / {tile.k}).",
        *(f"{name}: {meaning}." for name, meaning in edge_variables(plan).items()),
    )
    return Section("Launch", (("what", "value"), *rows), () if shape is not None else notes)


def waves_of(plan: Plan, bound: BoundLaunch) -> tuple[int, int]:
    """(waves, CTAs of a full wave): the rounds that a persistent grid takes, or how often all SMs are filled anew."""
    if plan.schedule.persistent:
        return bound.schedule.waves, bound.schedule.ctas
    at_once = plan.arch.sm_count * resident_ctas(budget_of(plan.spec, plan.arch), plan.arch)
    return -(-bound.schedule.tiles // at_once), at_once


def _tiles(plan: Plan, bound: BoundLaunch) -> Section:
    schedule = bound.schedule
    waves, at_once = waves_of(plan, bound)
    shares = [f"{ctas:,} take{'s' if ctas == 1 else ''} {tiles:,}" for ctas, tiles in schedule.share]
    rows = [
        ("output tiles", f"{schedule.tiles:,}: {schedule.m_tiles:,} x {schedule.n_tiles:,}"),
        ("K tiles of each", f"{schedule.k_tiles:,}"),
        ("CTAs", f"{schedule.ctas:,}"),
        ("tiles per CTA", f"{schedule.tiles / schedule.ctas:.2f} on average: {' and '.join(shares)}"),
        ("waves", f"{waves:,} of {_count(at_once, 'CTA')}"),
    ]
    if plan.schedule.persistent:
        rows.append(("order", f"groups of {_count(plan.schedule.l2_group, 'tile row')}, rows first within a group"))
    return Section(f"Output tiles of {bound.shape.m} x {bound.shape.n}", (("what", "value"), *rows))


def _loads(loads: tuple[Load, ...]) -> str:
    return ", ".join(f"tile {k} into stage {stage}" for k, stage in loads) or "-"


def _k_loop(plan: Plan, loop: KLoop) -> Section:
    heads = ("k", "stage", "phase of full", "phase of mma_done", "loads")
    rows = [(str(s.k), str(s.stage), str(s.full_phase), str(s.mma_phase), _loads(s.loads)) for s in loop.steps]
    notes = [f"Before the loop: {_loads(loop.prefetch)}."] if loop.prefetch else []
    if plan.schedule.persistent:
        notes.append(
            f"The next output tile of the CTA goes on at stage {loop.next_stage}, "
            f"phase {loop.next_full_phase} of full and {loop.next_mma_phase} of mma_done."
        )
    k_tiles = len(loop.steps)
    title = f"K loop of {_count(k_tiles, 'K tile')}, {k_tiles * plan.spec.tile.k:,} elements"
    return Section(title, (heads, *rows), tuple(notes))
