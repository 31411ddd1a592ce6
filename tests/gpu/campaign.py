# SPDX-License-Identifier: Apache-2.0
"""Random legal sm_90a specs on random shapes, bit by bit on a real GPU.

    python -m tests.gpu.campaign compile --count 200 --into build/campaign      anywhere
    python -m tests.gpu.campaign run --count 200 --cubins build/campaign --json results.json      on an H100 or H200
    python -m tests.gpu.campaign emulate --count 200 --json verdicts.json      anywhere: the emulator on the same cases

All find the same specs from the same seed. What is compiled is named after the emitted text, so that cubins of
another text are not taken for it; what is missing is compiled on the spot.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tmagen.arch import arch_of
from tmagen.budget import deepest_pipeline
from tmagen.emit import emit
from tmagen.gpu.device import Gpu, open_gpu
from tmagen.gpu.errors import MissingError
from tmagen.gpu.kernels import PlannedKernel
from tmagen.gpu.torch_reference import find_torch
from tmagen.gpu.validate import RunSettings, validate
from tmagen.ir import DType, Gemm, Pipeline, Policy, Problem, Schedule, Shape, Target, Tile
from tmagen.legality import check
from tmagen.plan import plan
from tmagen.toolchain import compile_cubin, find_nvcc
from tmagen.verify import Verdict, verify

SEED = 20_240_229
COUNT = 200
REPEAT = 4
TARGET = Target.SM_90A


@dataclass(frozen=True, slots=True)
class Draw:
    """A spec and the shapes that it is tried on."""

    spec: Gemm
    shapes: tuple[Shape, ...]


def draws(count: int = COUNT, seed: int = SEED) -> Iterator[Draw]:
    """The first `count` of an endless row of legal specs, the same for each seed."""
    chance = random.Random(seed)
    found = 0
    while found < count:
        spec = _spec(chance)
        if spec is None:
            continue
        found += 1
        static = spec.problem.shape
        yield Draw(spec, (static,) if static is not None else tuple(_shape(chance, kind) for kind in _KINDS))


def cubin_name(text: str) -> str:
    """The file that holds the machine code of an emitted text."""
    return f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.cubin"


def cubin_of(spec: Gemm, folder: Path) -> bytes:
    """The machine code of a spec, from the folder if it is there, else compiled into it."""
    planned = plan(spec)
    text = emit(planned)
    path = folder / cubin_name(text)
    if not path.is_file():
        source = folder / f"{path.stem}.cu"
        source.write_text(text)
        built = compile_cubin(find_nvcc(arch=TARGET.value), source, arch=TARGET.value, flags=("-DTMAGEN_EXTERN_C",))
        source.unlink()
        (resources,) = built.kernels
        if resources.spill_store_bytes or resources.spill_load_bytes:
            raise SystemExit(f"{spec!r} spills registers")
        path.write_bytes(built.data)
    return path.read_bytes()


def run(count: int, seed: int, folder: Path, repeat: int) -> dict[str, object]:
    """Every draw on the GPU: counts, and each failure with what reproduces it."""
    failures: list[dict[str, object]] = []
    cases = launches = 0
    started = time.perf_counter()
    with open_gpu() as gpu:
        torch = find_torch()
        for index, draw in enumerate(draws(count, seed)):
            found = judge(gpu, draw, folder, repeat, torch)
            cases += len(draw.shapes)
            launches += len(draw.shapes) * (1 + repeat)
            if found:
                failures.append({"index": index, "spec": repr(draw.spec), "wrong": found})
            if gpu.lost:
                break
        return {
            "device": str(gpu.info),
            "seed": seed,
            "specs": index + 1,
            "cases": cases,
            "launches": launches,
            "seconds": round(time.perf_counter() - started, 1),
            "failures": failures,
        }


def judge(gpu: Gpu, draw: Draw, folder: Path, repeat: int, torch: object) -> list[str]:
    """What is wrong with the kernel of one draw, in lines; nothing if nothing is."""
    kernel = PlannedKernel(plan(draw.spec), cubin_of(draw.spec, folder), "nvcc")
    settings = RunSettings(inputs=("integer",), seeds=(0,), repeat=repeat, references=("numpy", "torch"))
    cases, _ = validate(kernel, gpu, draw.shapes, settings, torch=torch)
    return [line for case in cases if case.verdict is not Verdict.PASSED for line in case.lines()]


def emulate(count: int, seed: int, jobs: int) -> dict[str, object]:
    """Every draw on the emulator."""
    started = time.perf_counter()
    found = list(draws(count, seed))
    with ProcessPoolExecutor(jobs) as pool:
        reports = list(pool.map(_emulate_one, found))
    return {
        "seed": seed,
        "specs": len(reports),
        "cases": sum(cases for _, cases, _ in reports),
        "seconds": round(time.perf_counter() - started, 1),
        "failures": [
            {"index": index, "spec": repr(found[index].spec), "exit_code": code, "wrong": lines}
            for index, (code, _, lines) in enumerate(reports)
            if code
        ],
    }


def _emulate_one(draw: Draw) -> tuple[int, int, list[str]]:
    """Exit code, cases and report of one draw."""
    report = verify(draw.spec, draw.shapes, inputs="integer", completion="eager", jobs=1)
    return report.exit_code, len(report.cases), report.text().splitlines()


_KINDS = ("tiny", "tails", "short")


def _spec(chance: random.Random) -> Gemm | None:
    arch = arch_of(TARGET)
    element = chance.choice(arch.operands)
    out = chance.choice((element, element, DType.F32))
    tile = Tile(chance.choice(arch.block_m), chance.choice(arch.block_n), chance.choice(arch.block_k))
    shape = _shape(chance, "tails") if chance.random() < 0.2 else None
    problem = Problem(a=element, b=element, d=out, shape=shape)
    whole = Gemm(problem=problem, tile=tile, target=TARGET)
    depth = chance.randint(1, max(1, deepest_pipeline(whole)))
    ctas = chance.choice((None, None, 1, chance.randint(2, 400)))
    schedule = chance.choice((Schedule(), Schedule(True, ctas, chance.randint(1, 12))))
    pipeline = Pipeline(depth, Policy.SERIAL if depth == 1 else Policy.PREFETCH)
    spec = Gemm(problem=problem, tile=tile, pipeline=pipeline, schedule=schedule, target=TARGET)
    return None if check(spec) else spec


def _shape(chance: random.Random, kind: str) -> Shape:
    if kind == "tiny":
        return Shape(chance.randint(1, 9), chance.randint(1, 17), chance.choice((1, 2, 7, 8, 16, 31)))
    if kind == "short":  # many tiles of few K elements, none among them
        return Shape(chance.randint(500, 2500), chance.randint(500, 2500), chance.choice((0, 1, 16, 40, 64)))
    return Shape(chance.randint(65, 900), chance.randint(65, 900), chance.randint(65, 1500))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("compile", "run", "emulate"))
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--cubins", "--into", type=Path, default=Path("build/campaign"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=REPEAT)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    asked.cubins.mkdir(parents=True, exist_ok=True)
    if asked.what == "emulate":
        return _tell(emulate(asked.count, asked.seed, asked.jobs), asked.json)
    if asked.what == "run":
        try:
            with open_gpu():  # before compilers take their time
                pass
        except MissingError as error:
            print(error.report(), file=sys.stderr)
            return 2
    with ThreadPoolExecutor(asked.jobs) as pool:
        specs = [draw.spec for draw in draws(asked.count, asked.seed)]
        sizes = [len(data) for data in pool.map(lambda spec: cubin_of(spec, asked.cubins), specs)]
    print(f"{len(sizes)} kernels, {sum(sizes):,} bytes, none spills registers")
    if asked.what == "compile":
        return 0
    return _tell(run(asked.count, asked.seed, asked.cubins, asked.repeat), asked.json)


def _tell(result: dict[str, object], path: Path | None) -> int:
    print(json.dumps(result, indent=2))
    if path is not None:
        path.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if result["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
