# SPDX-License-Identifier: Apache-2.0
"""TIRx scripts through TVM: the same CUDA as the chapter's kernels, and right on the emulator."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests import tirx_text
from tmagen import emu, tirx
from tmagen.bind import default_leading_dims
from tmagen.diff.launching import launch_of_tirx
from tmagen.emu import GlobalMemory
from tmagen.ir import DType, Gemm, Pipeline, Policy, Problem, Schedule, Shape, Tile
from tmagen.plan import plan
from tmagen.tirx import build
from tmagen.toolchain import compile_ptx, find_nvcc
from tmagen.verify.buffers import allocate
from tmagen.verify.inputs import integer_inputs
from tmagen.verify.reference import exact_reference

PIPELINES = {4: Pipeline(1, Policy.SERIAL), 5: Pipeline(2), 6: Pipeline(2)}
CHAPTER_SHAPES = [(4096, 4096, 4096), (512, 384, 256)]
F16, BF16, F32 = DType.F16, DType.BF16, DType.F32


def gemm(
    shape: tuple[int, int, int],
    *,
    tile: tuple[int, int] = (128, 64),
    depth: int = 2,
    types: tuple[DType, DType] = (F16, F16),
    schedule: Schedule | None = None,
) -> Gemm:
    ab, d = types
    pipeline = Pipeline(depth, Policy.SERIAL if depth == 1 else Policy.PREFETCH)
    return Gemm(
        problem=Problem(a=ab, b=ab, d=d, shape=Shape(*shape)),
        tile=Tile(128, *tile),
        pipeline=pipeline,
        schedule=schedule or Schedule(),
    )


def persistent(ctas: int, l2_group: int = 8) -> Schedule:
    return Schedule(persistent=True, ctas=ctas, l2_group=l2_group)


# Each store box width, loads of one width and of several, passes, every pair of types, each depth, tails of groups.
CASES = [
    *(gemm((256, 2 * n, 128), tile=(n, 64)) for n in (16, 112, 240)),
    *(gemm((128, n, 128), tile=(n, 64), types=(F16, F32)) for n in (48, 256)),
    *(gemm((128, 256, 5 * k), tile=(128, k), depth=depth, types=(BF16, BF16)) for k, depth in ((32, 1), (128, 3))),
    *(gemm((640, 192, 256), tile=(64, 64), types=(F16, d), schedule=persistent(4, 2)) for d in (BF16, F32)),
    gemm((384, 384, 128), depth=1, schedule=persistent(2)),
    gemm((384, 512, 512), tile=(256, 64), depth=4, schedule=persistent(4, 3)),
]


@pytest.fixture(scope="module", autouse=True)
def _available() -> None:
    tirx_text.require()


@cache
def built() -> dict[Gemm, tirx.TirxKernel]:
    """What TVM makes of the kernels of the chapter and of every case, in one process."""
    specs = [*(chapter_spec(step, shape) for step in PIPELINES for shape in CHAPTER_SHAPES), *CASES]
    return dict(zip(specs, build.build_scripts([tirx.tirx_script(spec) for spec in specs]), strict=True))


def chapter_spec(step: int, shape: tuple[int, int, int]) -> Gemm:
    return Gemm(problem=Problem(shape=Shape(*shape)), pipeline=PIPELINES[step], schedule=Schedule(persistent=step == 6))


def renamings(ours: str, theirs: str) -> dict[str, str]:
    """The variables of the kernel `ours` under the names that `theirs` has for them.

    Asserts that nothing else differs: the functions before the kernel are the same byte for byte, and so is the kernel
    but for names, each of which stands for one other throughout. Functions that are called keep theirs.
    """
    (prelude, *kernel), (their_prelude, *their_kernel) = (
        re.split(r'(?=extern "C" __global__)', t) for t in (ours, theirs)
    )
    assert prelude == their_prelude
    tokens, their_tokens = (re.findall(r"[A-Za-z_]\w*|[^A-Za-z_]+", "".join(t)) for t in (kernel, their_kernel))
    names: dict[str, str] = {}
    for token, their_token in zip(tokens, their_tokens, strict=True):
        if re.match(r"[A-Za-z_]", token):
            assert names.setdefault(token, their_token) == their_token, token
        else:
            assert token == their_token
    assert len(set(names.values())) == len(names), "two names have become one"
    changed = {name: other for name, other in names.items() if name != other}
    called = {name for name in changed if re.search(rf"\b{name}\(", "".join(kernel))}
    assert all(name.endswith("_kernel") for name in called), called
    return changed


@pytest.mark.parametrize("shape", CHAPTER_SHAPES, ids=str)
@pytest.mark.parametrize("step", PIPELINES)
def test_the_chapters_kernels_but_for_names(step: int, shape: tuple[int, int, int]) -> None:
    want = tirx_text.lowered(tirx_text.CASES)[(step, *shape)]
    got = built()[chapter_spec(step, shape)]
    assert len(renamings(got.text, want["text"])) > 8
    assert [list(got.grid), list(got.block), got.dynamic_smem_bytes] == [
        want[name] for name in ("grid", "block", "dynamic_smem_bytes")
    ]
    for ours, theirs in zip(got.maps, want["maps"], strict=True):
        assert {name: list(v) if isinstance(v := getattr(ours, name), tuple) else v for name in MAP_FIELDS} == {
            name: theirs[name] for name in MAP_FIELDS
        }


MAP_FIELDS = "buffer dtype dims strides box element_strides interleave swizzle l2_promotion oob_fill".split()


HEAD = 'void f();\nextern "C" __global__ void '


def test_a_name_that_takes_anothers_place_is_seen() -> None:
    assert renamings(HEAD + "k() { a = b + a; f(); }", HEAD + "k() { x = y + x; f(); }") == {"a": "x", "b": "y"}
    for ours, theirs in (("a = b + a;", "x = y + y;"), ("a = b;", "a = a;"), ("a[1]", "a[2]"), ("f(1)", "g(1)")):
        with pytest.raises(AssertionError):
            renamings(HEAD + ours, HEAD + theirs)


def label(spec: Gemm) -> str:
    return plan(spec).name


@pytest.mark.parametrize("completion", ["eager", "newest-first"])
@pytest.mark.parametrize("spec", CASES, ids=label)
def test_every_element_is_exact(spec: Gemm, completion: str) -> None:
    shape, problem = spec.problem.shape, spec.problem
    assert shape is not None
    kernel = built()[spec]
    lds = default_leading_dims(plan(spec), shape)
    memory = GlobalMemory()
    a, b, d = (
        allocate(memory, name, element, rows, columns, ld)
        for name, element, rows, columns, ld in (
            ("A", problem.a, shape.m, shape.k, lds.a),
            ("B", problem.b, shape.n, shape.k, lds.b),
            ("D", problem.d, shape.m, shape.n, lds.d),
        )
    )
    inputs = integer_inputs(shape, (problem.a, problem.b), seed=1)
    a.write(inputs.a)
    b.write(inputs.b)
    d.fill_poison()
    emu.run(
        module(spec),
        launch_of_tirx(kernel, kernel.kernel, {"A": a.address, "B": b.address, "D": d.address}),
        memory,
        completion=completion,
    )
    assert np.array_equal(d.bits(), exact_reference(inputs, problem.d).bits)
    assert d.stray_writes() == ()


@cache
def module(spec: Gemm) -> emu.Module:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.cu")
        source.write_text(built()[spec].text)
        return emu.parse(compile_ptx(find_nvcc(), source, flags=tirx_text.FLAGS))


def test_a_script_runs_by_itself_and_prints_what_the_backend_prints(tmp_path: Path) -> None:
    spec = CASES[-1]
    script = tmp_path / "script.py"
    script.write_text(tirx.tirx_script(spec))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == built()[spec].text
    assert done.stderr == ""


def test_tvm_never_loads_into_this_process() -> None:
    assert built()
    assert "tvm" not in sys.modules


def test_a_script_that_tvm_rejects_is_an_error_with_its_reason() -> None:
    with pytest.raises(tirx.TirxError) as caught:
        tirx.build_script(tirx.tirx_script(CASES[0]).replace("K_TILES = K // BLOCK_K", "K_TILES = undefined"))
    assert "undefined" in caught.value.report()
