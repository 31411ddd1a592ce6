# SPDX-License-Identifier: Apache-2.0
"""What may exist: every rule between a spec and its target is one function here, with one message.

>>> from tmagen import Gemm, Pipeline
>>> from tmagen.legality import check
>>> [diagnostic.hint for diagnostic in check(Gemm(pipeline=Pipeline(depth=7)))]
['--pipe-depth 6']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tmagen.arch import Arch, arch_of
from tmagen.budget import budget_of, deepest_pipeline, tmem_columns_of
from tmagen.errors import Diagnostic, SpecError
from tmagen.ir import Cluster, DType, Gemm, Layout, Policy, Schedule, Tile
from tmagen.typecheck import wrong_type, wrong_types
from tmagen.words import one_of

Rule = Callable[[Gemm, Arch], Iterator[Diagnostic]]

INT32_MAX = 2**31 - 1
"""TMA coordinates are signed 32-bit integers (PTX ISA "cp.async.bulk.tensor": tensorCoords is a vector of .s32)."""


def check(spec: Gemm) -> tuple[Diagnostic, ...]:
    """Everything that is wrong with ``spec``, nothing if a kernel of it may exist. Never raises."""
    if type(spec) is not Gemm:
        return (wrong_type("the spec", spec, (Gemm,)),)
    mistyped = tuple(wrong_types(spec))
    if mistyped:  # the other rules compare and multiply, and could not
        return mistyped
    arch = arch_of(spec.target)
    return tuple(diagnostic for rule in RULES for diagnostic in rule(spec, arch))


def require_legal(spec: Gemm) -> None:
    """Raises :class:`SpecError` with every diagnostic of :func:`check`, if there is one."""
    diagnostics = check(spec)
    if diagnostics:
        raise SpecError(*diagnostics)


def _values(dtypes: Iterable[DType]) -> str:
    return one_of(dtype.value for dtype in dtypes)


# --- tile -----------------------------------------------------------------------------------------


def _nearest(value: int, legal: tuple[int, ...]) -> int:
    return min(legal, key=lambda candidate: (abs(candidate - value), candidate))


def _legal_tile(tile: Tile, arch: Arch) -> Tile:
    """The legal tile nearest to ``tile``."""
    return Tile(_nearest(tile.m, arch.block_m), _nearest(tile.n, arch.block_n), _nearest(tile.k, arch.block_k))


def _tile_is_legal(spec: Gemm, arch: Arch) -> bool:
    return _legal_tile(spec.tile, arch) == spec.tile


def _try_tile(tile: Tile, arch: Arch) -> str:
    legal = _legal_tile(tile, arch)
    return f"--tile {legal.m},{legal.n},{legal.k}"


def tile_m(spec: Gemm, arch: Arch) -> Iterator[Diagnostic]:
    """M of the tile is M of the MMA: the warpgroup reads one row of TMEM per thread."""
    if spec.tile.m not in arch.block_m:
        yield Diagnostic(
            f"tile.m = {spec.tile.m:,} is no M of the MMA on {arch.target.value}: it is {one_of(arch.block_m)}",
            hint=_try_tile(spec.tile, arch),
        )


def tile_n(spec: Gemm, arch: Arch) -> Iterator[Diagnostic]:
    """N of the tile is N of the MMA."""
    if spec.tile.n not in arch.block_n:
        yield Diagnostic(
            f"tile.n = {spec.tile.n:,} is no N of the MMA on {arch.target.value}: it is {one_of(arch.block_n)}",
            hint=_try_tile(spec.tile, arch),
        )


def tile_k(spec: Gemm, arch: Arch) -> Iterator[Diagnostic]:
    """A row of an operand tile is one swizzle atom of 64 or 128 bytes, or two of 128."""
    if spec.tile.k not in arch.block_k:
        yield Diagnostic(
            f"tile.k = {spec.tile.k:,} is no whole number of swizzle atoms: it is {one_of(arch.block_k)}",
            hint=_try_tile(spec.tile, arch),
        )


def tmem_columns(spec: Gemm, arch: Arch) -> Iterator[Diagnostic]:
    """The accumulator fits into tensor memory."""
    if spec.tile.n < 1:
        return
    columns = tmem_columns_of(spec, arch)
    if columns > arch.tmem_columns:
        yield Diagnostic(
            f"tile.n = {spec.tile.n:,} needs {columns:,} TMEM columns; {arch.target.value} has {arch.tmem_columns:,}",
            detail=("one 32-bit column for each column of the tile, rounded up to a power of two",),
            hint=_try_tile(spec.tile, arch),
        )


# --- pipeline -------------------------------------------------------------------------------------


def depth(spec: Gemm, arch: Arch) -> Iterator[Diagnostic]:
    """There is at least one stage."""
    stages = spec.pipeline.depth
    if stages < 1:
        yield Diagnostic(f"pipeline.depth = {stages:,} leaves no stage to load into", hint="--pipe-depth 2")


def policy(spec: Gemm, arch: Arch) -> Iterator[Diagnostic]:
    """Serial has one stage, and prefetch has one to fill while another is read."""
    pipeline = spec.pipeline
    if pipeline.policy is Policy.SERIAL and pipeline.depth > 1:
        yield Diagnostic(
            f"pipeline.policy = serial uses one stage; pipeline.depth = {pipeline.depth:,}",
            hint="--pipe-depth 1, or --policy prefetch",
        )
    if pipeline.policy is Policy.PREFETCH and pipeline.depth == 1:
        yield Diagnostic(
            "pipeline.policy = prefetch needs at least two stages; pipeline.depth = 1",
            hint="--pipe-depth 2, or --policy serial",
        )


def smem_bytes(spec: Gemm, arch: Arch) -> Iterator[Diagnostic]:
    """The block's shared memory fits into what it may opt in to."""
    if not _tile_is_legal(spec, arch) or spec.pipeline.depth < 1:
        return  # no layout, no size
    cost = budget_of(spec, arch)
    if cost.smem_bytes <= arch.smem_per_block_bytes:
        return
    tile, problem, stages = spec.tile, spec.problem, spec.pipeline.depth
    deepest = deepest_pipeline(spec, arch)
    yield Diagnostic(
        f"pipeline.depth = {stages:,} needs {cost.smem_bytes:,} bytes of shared memory; "
        f"{arch.target.value} allows {arch.smem_per_block_bytes:,} per block",
        detail=(
            f"{stages:,} stage{'s' if stages > 1 else ''} of A {tile.m}x{tile.k} {problem.a.value} "
            f"({cost.stage_a_bytes:,}) + B {tile.n}x{tile.k} {problem.b.value} ({cost.stage_b_bytes:,}) "
            f"= {cost.ring_bytes:,}; epilogue buffer {cost.staging_bytes:,}; barriers {cost.barrier_bytes:,}",
        ),
        hint=f"--pipe-depth {deepest}" if deepest else "a smaller --tile",
    )


# --- schedule -------------------------------------------------------------------------------------


def ctas(spec: Gemm, arch: Arch) -> Iterator[Diagnostic]:
    """A CTA count belongs to a persistent grid, and the grid has a limit."""
    count = spec.schedule.ctas
    if count is None:
        return
    if not 1 <= count <= arch.grid_x:
        yield Diagnostic(
            f"schedule.ctas = {count:,} is no grid size: it is 1 to {arch.grid_x:,}", hint=f"--ctas {arch.sm_count}"
        )
    if not spec.schedule.persistent:
        yield Diagnostic(
            f"schedule.ctas = {count:,} without persistent: a grid of one CTA per tile takes its size from the shape",
            hint="--persistent, or no --ctas",
        )


def l2_group(spec: Gemm, arch: Arch) -> Iterator[Diagnostic]:
    """A group is at least one row of tiles, and only a persistent grid orders its tiles."""
    rows = spec.schedule.l2_group
    if not 1 <= rows <= INT32_MAX:
        yield Diagnostic(f"schedule.l2_group = {rows:,} is no number of tile rows: it is 1 to {INT32_MAX:,}")
    elif not spec.schedule.persistent and rows != Schedule().l2_group:
        yield Diagnostic(
            f"schedule.l2_group = {rows:,} without persistent: a grid of one CTA per tile has no tile order",
            hint="--persistent, or no --l2-group",
        )


def cluster(spec: Gemm, arch: Arch) -> Iterator[Diagnostic]:
    """The cluster is one that a kernel of this target is written for."""
    size = spec.cluster
    if (size.m, size.n) not in arch.clusters:
        legal = (repr(Cluster(m, n)) for m, n in arch.clusters)
        yield Diagnostic(f"cluster = {size!r} is not supported on {arch.target.value}: it is {one_of(legal)}")


# --- problem --------------------------------------------------------------------------------------


def dtypes(spec: Gemm, arch: Arch) -> Iterator[Diagnostic]:
    """The MMA multiplies these types, and the epilogue converts the accumulator to the output's.

    f16 operands with a bf16 output and the reverse are legal: D is rounded from f32 whatever the operands were.
    """
    problem = spec.problem
    for field, dtype in (("a", problem.a), ("b", problem.b)):
        if dtype not in arch.operands:
            yield Diagnostic(
                f"problem.{field} = {dtype.value} is no operand of the MMA: it is {_values(arch.operands)}",
                hint=f"--dtype {arch.operands[0].value}",
            )
    if problem.a is not problem.b:
        yield Diagnostic(
            f"problem.a = {problem.a.value} and problem.b = {problem.b.value}: A and B have one type",
            hint=f"--dtype {(problem.a if problem.a in arch.operands else arch.operands[0]).value}",
        )
    if problem.acc not in arch.accumulators:
        yield Diagnostic(f"problem.acc = {problem.acc.value} is no accumulator: it is {_values(arch.accumulators)}")
    if problem.d not in arch.outputs:
        yield Diagnostic(
            f"problem.d = {problem.d.value} is no output: it is {_values(arch.outputs)}",
            hint=f"--out-dtype {arch.outputs[0].value}",
        )


def layouts(spec: Gemm, arch: Arch) -> Iterator[Diagnostic]:
    """Operands are read along K, and D is written along N."""
    problem = spec.problem
    for field, layout, legal in (
        ("layout_a", problem.layout_a, Layout.K_MAJOR),
        ("layout_b", problem.layout_b, Layout.K_MAJOR),
        ("layout_d", problem.layout_d, Layout.ROW_MAJOR),
    ):
        if layout is not legal:
            yield Diagnostic(f"problem.{field} = {layout.value} is not supported: it is {legal.value}")


def shape(spec: Gemm, arch: Arch) -> Iterator[Diagnostic]:
    """A baked-in shape has coordinates that TMA can express, and a grid that can be launched."""
    sizes = spec.problem.shape
    if sizes is None:
        return
    outside = {field: size for field in ("m", "n", "k") if not 0 <= (size := getattr(sizes, field)) <= INT32_MAX}
    for field, size in outside.items():
        yield Diagnostic(f"problem.shape.{field} = {size:,} is out of range: it is 0 to {INT32_MAX:,} elements")
    if outside or not _tile_is_legal(spec, arch):
        return
    rows, columns = -(-sizes.m // spec.tile.m), -(-sizes.n // spec.tile.n)
    if spec.schedule.persistent:
        if rows * columns > INT32_MAX:
            yield Diagnostic(
                f"problem.shape has {rows:,} x {columns:,} output tiles; a tile index is at most {INT32_MAX:,}",
                hint="a larger --tile",
            )
    elif rows and columns > arch.grid_y:
        yield Diagnostic(
            f"problem.shape.n = {sizes.n:,} has {columns:,} tiles of {spec.tile.n} columns; "
            f"grid.y is at most {arch.grid_y:,}",
            hint="--persistent, or a wider --tile",
        )


# --- name -----------------------------------------------------------------------------------------


def name(spec: Gemm, arch: Arch) -> Iterator[Diagnostic]:
    """The name can stand in C++ source, whatever else is included."""
    if spec.name is None:
        return
    from tmagen.names import MAX_CHARACTERS, refusal  # compiles long patterns, which a spec without a name never needs

    reason = refusal(spec.name)
    if reason is not None:
        shown = repr(spec.name) if len(spec.name) <= MAX_CHARACTERS else f"{spec.name[:MAX_CHARACTERS]!r}..."
        yield Diagnostic(f"name = {shown} {reason}")


RULES: tuple[Rule, ...] = (
    tile_m,
    tile_n,
    tile_k,
    tmem_columns,
    depth,
    policy,
    smem_bytes,
    ctas,
    l2_group,
    cluster,
    dtypes,
    layouts,
    shape,
    name,
)
"""Every rule. Each takes a spec whose fields have the right types, and the row of its target."""
