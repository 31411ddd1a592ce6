# SPDX-License-Identifier: Apache-2.0
"""The words of an emitted file: tables, C++ type names and operand lists, made from a plan for the templates."""

from __future__ import annotations

from dataclasses import dataclass

from tmagen.descriptors import Descriptor
from tmagen.ir import DType
from tmagen.plan import Plan
from tmagen.spec import to_command

HOST_TYPES = {DType.F16: "__half", DType.BF16: "__nv_bfloat16", DType.F32: "float"}
MAP_TYPES = {
    DType.F16: "CU_TENSOR_MAP_DATA_TYPE_FLOAT16",
    DType.BF16: "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16",
    DType.F32: "CU_TENSOR_MAP_DATA_TYPE_FLOAT32",
}
PACKED_TYPES = {DType.F16: "f16x2", DType.BF16: "bf16x2"}
SWIZZLED_ADDRESS_BITS = {128: "4-6 with bits 7-9", 64: "4-5 with bits 7-8", 32: "4 with bit 7"}
REGISTERS_PER_LINE = 8

Table = tuple[tuple[str, ...], ...]
"""Rows of cells, the heads first."""


@dataclass(frozen=True, slots=True)
class FieldText:
    """One descriptor field as a C++ constant, already shifted into place."""

    constant: str
    value: str
    meaning: str


@dataclass(frozen=True, slots=True)
class DescriptorText:
    """A descriptor as C++ constants."""

    fields: tuple[FieldText, ...]
    sum: str
    hex: str


@dataclass(frozen=True, slots=True)
class WgmmaText:
    """The operand list of wgmma.mma_async: accumulators first, then the operands' numbers."""

    register_lines: tuple[str, ...]
    output_lines: tuple[str, ...]
    a: int
    b: int
    accumulate: int


@dataclass(frozen=True, slots=True)
class Text:
    """Every phrase that the templates print and the plan does not hold."""

    summary: str
    command: str
    include_guard: str
    tile_table: Table
    smem_table: Table
    role_table: Table
    barrier_table: Table
    atoms: str
    static_shape: str
    static_m: int
    static_n: int
    static_k: int
    problem_parameter: str
    edge_parameter: str
    edge_argument: str
    d_word: str
    forward_declarations: tuple[str, ...]
    a_type: str
    b_type: str
    d_type: str
    d_bytes: int
    a_map_type: str
    b_map_type: str
    d_map_type: str
    operand_swizzle: str
    d_swizzle: str
    d_swizzle_bits: str
    d_swizzle_row: str
    packed_type: str
    register_lines: tuple[str, ...]
    output_lines: tuple[str, ...]
    wgmma: WgmmaText
    warpgroups: str
    accumulator_parameters: str
    accumulator_arguments: str
    tear_down: str
    pipeline_owner: str
    smem_descriptor_section: str
    smem_descriptor: DescriptorText
    instr_descriptor: DescriptorText | None


def text_of(plan: Plan) -> Text:
    """The words for one plan."""
    problem = plan.spec.problem
    shape = problem.shape
    epilogue = plan.epilogue
    tmem = plan.tmem.columns > 0
    map_a, _, map_d = plan.tensor_maps
    host_types = tuple(HOST_TYPES[dtype] for dtype in (problem.a, problem.b, problem.d))
    return Text(
        summary=f"D = A * B^T on {plan.spec.target.value}, {schedule_words(plan)}",
        command=to_command(plan.spec),
        include_guard=f"TMAGEN_GUARD_{plan.name}",
        tile_table=_tile_table(plan),
        smem_table=_smem_table(plan),
        role_table=_role_table(plan),
        barrier_table=_barrier_table(plan),
        atoms="rows" if plan.operand.atoms == 1 else f"{plan.operand.atoms} atoms side by side, with rows",
        static_shape="" if shape is None else f"m = {shape.m}, n = {shape.n}, k = {shape.k}",
        static_m=-1 if shape is None else shape.m,
        static_n=-1 if shape is None else shape.n,
        static_k=-1 if shape is None else shape.k,
        problem_parameter=(", const Problem problem" if shape is None else "")
        + (", const Edge edge" if epilogue.ragged else ""),
        edge_parameter=", const Edge& edge" if epilogue.ragged else "",
        edge_argument=", edge" if epilogue.ragged else "",
        d_word=f"uint{8 * problem.d.bytes}_t",
        forward_declarations=tuple(sorted({name for name in host_types if name.startswith("__")})),
        a_type=host_types[0],
        b_type=host_types[1],
        d_type=host_types[2],
        d_bytes=problem.d.bytes,
        a_map_type=MAP_TYPES[problem.a],
        b_map_type=MAP_TYPES[problem.b],
        d_map_type=MAP_TYPES[problem.d],
        operand_swizzle=swizzle_name(map_a.swizzle_bytes),
        d_swizzle=swizzle_name(map_d.swizzle_bytes),
        d_swizzle_bits=SWIZZLED_ADDRESS_BITS.get(epilogue.box_bytes, ""),
        d_swizzle_row="row" if epilogue.swizzle_row_shift == 0 else f"(row >> {epilogue.swizzle_row_shift})",
        packed_type=PACKED_TYPES.get(epilogue.d_type, ""),
        register_lines=_register_lines(epilogue.box_cols),
        output_lines=_output_lines(epilogue.box_cols, "=r"),
        wgmma=_wgmma_text(plan.spec.tile.n // 2),
        warpgroups="one warpgroup" if plan.launch.threads == 128 else f"{plan.launch.threads // 128} warpgroups",
        accumulator_parameters="uint32_t tmem, bool has_product" if tmem else "const Accumulator& acc",
        accumulator_arguments="tmem, has_product" if tmem else "acc",
        tear_down="tear_down(warp, tmem)" if tmem else "tear_down(warp)",
        pipeline_owner="kept by the elected thread, which is the same one for every tile"
        if tmem
        else "of every thread",
        smem_descriptor_section="tcgen05 shared memory descriptor" if tmem else "Matrix Descriptor Format",
        smem_descriptor=_descriptor_text(plan.mma.smem_descriptor),
        instr_descriptor=_descriptor_text(plan.mma.instr_descriptor) if plan.mma.instr_descriptor else None,
    )


def swizzle_name(swizzle_bytes: int) -> str:
    """The driver's name of a swizzle; 0 bytes is none."""
    return f"CU_TENSOR_MAP_SWIZZLE_{swizzle_bytes}B" if swizzle_bytes else "CU_TENSOR_MAP_SWIZZLE_NONE"


def schedule_words(plan: Plan) -> str:
    """How the kernel runs, in a phrase."""
    depth = plan.spec.pipeline.depth
    ring = "one stage, load and MMA in turn" if depth == 1 else f"a ring of {depth} stages with prefetch"
    grid = f"{plan.schedule.ctas} persistent CTAs" if plan.schedule.persistent else "one CTA per tile"
    return f"{ring}, {grid}"


def comment_table(rows: Table) -> str:
    """Rows as aligned columns behind `//`."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(f"//   {line}" for line in lines)


def _tile_table(plan: Plan) -> Table:
    problem, tile = plan.spec.problem, plan.spec.tile
    operand, epilogue = plan.operand, plan.epilogue
    k_boxes = f"{operand.atoms} box{'es' if operand.atoms > 1 else ''} of"
    return (
        ("matrix", "element", "global", "tile", "moves as"),
        ("A", problem.a.value, "[m, k]", f"{tile.m} x {tile.k}", f"{k_boxes} {tile.m} x {operand.atom_elems}"),
        ("B", problem.b.value, "[n, k]", f"{tile.n} x {tile.k}", f"{k_boxes} {tile.n} x {operand.atom_elems}"),
        (
            "D",
            problem.d.value,
            "[m, n]",
            f"{tile.m} x {tile.n}",
            f"{epilogue.boxes} box{'es' if epilogue.boxes > 1 else ''} of {tile.m} x {epilogue.box_cols}",
        ),
        (
            "product",
            problem.acc.value,
            "-",
            f"{tile.m} x {tile.n}",
            f"{plan.tmem.columns} TMEM columns" if plan.tmem.columns else "registers",
        ),
    )


def _smem_table(plan: Plan) -> Table:
    rows = [("offset", "bytes", "member", "holds")]
    rows += [(f"{region.offset:,}", f"{region.bytes:,}", region.name, region.holds) for region in plan.smem.regions]
    return tuple(rows)


def _role_table(plan: Plan) -> Table:
    rows = [("role", "warps", "threads", "does")]
    rows += [(role.name, role.warps, str(role.threads), role.does) for role in plan.roles]
    return tuple(rows)


def _barrier_table(plan: Plan) -> Table:
    rows = [("barrier", "count", "arrivals", "tx bytes", "arrives", "waits", "then readable", "then reusable")]
    rows += [
        (
            barrier.name,
            str(barrier.count),
            str(barrier.arrivals),
            f"{barrier.tx_bytes:,}",
            barrier.arrives,
            barrier.waits,
            barrier.readable,
            barrier.reusable,
        )
        for barrier in plan.barriers
    ]
    return tuple(zip(*rows, strict=True))  # a column each: the phrases are too long to stand side by side


def _descriptor_text(descriptor: Descriptor) -> DescriptorText:
    suffix, ctype = ("u", "uint32_t") if descriptor.bits == 32 else ("ull", "uint64_t")
    shown = tuple(field for field in descriptor.fields if field.value or field.bits > 1)
    return DescriptorText(
        fields=tuple(
            FieldText(field.constant, f"{ctype}{{{field.value}}} << {field.shift}", field.meaning) for field in shown
        ),
        sum=" | ".join(field.constant for field in shown),
        hex=f"0x{descriptor.value:0{descriptor.bits // 4}X}{suffix}",
    )


def _register_lines(count: int) -> tuple[str, ...]:
    """The register list of tcgen05.ld, in braces: operands %0 up to %count-1."""
    names = [f"%{i}" for i in range(count)]
    lines = [", ".join(names[i : i + REGISTERS_PER_LINE]) for i in range(0, count, REGISTERS_PER_LINE)]
    lines = [f"{line}, " for line in lines[:-1]] + [f"{lines[-1]}}}, "]
    return (f"{{{lines[0]}", *lines[1:])


def _wgmma_text(count: int) -> WgmmaText:
    return WgmmaText(_register_lines(count), _output_lines(count, "+f"), a=count, b=count + 1, accumulate=count + 2)


def _output_lines(count: int, constraint: str) -> tuple[str, ...]:
    outputs = [f'"{constraint}"(values[{i}])' for i in range(count)]
    per_line = REGISTERS_PER_LINE // 2
    return tuple(", ".join(outputs[i : i + per_line]) for i in range(0, count, per_line))
