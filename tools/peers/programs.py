# SPDX-License-Identifier: Apache-2.0
"""Programs that Triton compiles besides matrix products: what each is given, and what is right."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
F32 = np.float32
_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], F32)
_POINTERS = {"float32": "*fp32", "float16": "*fp16", "int32": "*i32", "int8": "*i8", "uint8": "*u8"}


@dataclass(frozen=True)
class Given:
    """Arrays, which kernels get in this order and may write; numbers after them; and what has to be where at the end:
    number of an array, its content, and by how much it may differ.
    """

    arrays: tuple[Array, ...]
    numbers: tuple[int, ...]
    grid: tuple[int, int, int]
    want: tuple[tuple[int, Array, float], ...]


@dataclass(frozen=True)
class Program:
    """One kernel of `triton_programs`."""

    kernel: str
    target: int
    make: Callable[[np.random.Generator], Given]
    names: tuple[str, ...]  # of parameters: those of the arrays, then of the numbers
    constants: dict[str, Any] = field(default_factory=dict)
    warps: int = 4
    depth: int = 3
    tag: str = ""

    @property
    def name(self) -> str:
        """Unique, and readable in a table."""
        return f"{self.kernel}{self.tag}_sm{self.target}"

    def given(self) -> Given:
        """The same inputs each time."""
        return self.make(np.random.default_rng(1))

    def request(self) -> dict[str, Any]:
        """What the compiling process is told."""
        given = self.given()
        kinds = [_POINTERS.get(array.dtype.name, "*fp8e4nv") for array in given.arrays] + ["i32"] * len(given.numbers)
        return {
            "program": self.kernel, "name": self.name, "target": self.target, "constants": self.constants,
            "signature": dict(zip(self.names, kinds, strict=True)), "warps": self.warps, "depth": self.depth,
        }  # fmt: skip


def rows(function: Callable[[Array], Array], tolerance: float) -> Callable[[np.random.Generator], Given]:
    """Three rows of 1000 numbers."""

    def make(rng: np.random.Generator) -> Given:
        x = rng.standard_normal((3, 1000)).astype(F32)
        return Given((x, np.zeros_like(x)), (1000,), (3, 1, 1), ((1, function(x.astype(float)), tolerance),))

    return make


def _softmax(x: Array) -> Array:
    power = np.exp(x - x.max(1, keepdims=True))
    result: Array = power / power.sum(1, keepdims=True)
    return result


def _layer_norm(x: Array) -> Array:
    result: Array = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    return result


def _functions(rng: np.random.Generator) -> Given:
    x = (3 * rng.standard_normal((2, 256))).astype(F32)

    def one(v: float) -> float:
        waves = math.sin(v) + math.cos(v) + 1 / (1 + math.exp(-v)) + math.erf(v)
        return waves + math.log(abs(v) + 1) + math.sqrt(abs(v)) + math.floor(v) + math.ceil(v)

    return Given((x, np.zeros_like(x)), (256,), (2, 1, 1), ((1, np.vectorize(one)(x), 1e-4),))


def integers(function: Callable[[Array], Array], width: int) -> Callable[[np.random.Generator], Given]:
    """Two rows of integers."""

    def make(rng: np.random.Generator) -> Given:
        x = rng.integers(-1000, 1000, (2, width)).astype(np.int32)
        return Given((x, np.zeros_like(x)), (width,), (2, 1, 1), ((1, function(x), 0),))

    return make


def _histogram(rng: np.random.Generator) -> Given:
    x = rng.integers(0, 64, (2, 512)).astype(np.int32)
    return Given((x, np.zeros(64, np.int32)), (512,), (2, 1, 1), ((1, np.bincount(x.ravel(), minlength=64), 0),))


def _gather(rng: np.random.Generator) -> Given:
    x, index = rng.standard_normal(128).astype(F32), rng.integers(0, 128, 128).astype(np.int32)
    return Given((x, index, np.zeros_like(x)), (128,), (1, 1, 1), ((2, x[index], 0),))


def _transpose(rng: np.random.Generator) -> Given:
    x = rng.standard_normal((64, 64)).astype(F32)
    return Given((x, np.zeros_like(x)), (64,), (1, 1, 1), ((1, x.T, 0),))


def _locked_sum(rng: np.random.Generator) -> Given:
    x = rng.integers(-5, 5, (6, 128)).astype(F32)
    lock = np.zeros(1, np.int32)
    return Given((x, np.zeros(128, F32), lock), (128,), (6, 1, 1), ((1, x.sum(0), 0), (2, lock, 0)))


def _last_sums(rng: np.random.Generator) -> Given:
    x = rng.integers(-9, 9, (8, 128)).astype(np.int32)
    arrays = (x, np.zeros(8, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32))
    return Given(arrays, (128,), (8, 1, 1), ((2, np.array([x.sum()]), 0), (3, np.array([8]), 0)))


def _split_k(rng: np.random.Generator) -> Given:
    a, b = (rng.integers(-3, 4, (r, 200)).astype(np.float16) for r in (70, 50))
    want = a.astype(F32) @ b.astype(F32).T
    return Given((a, b, np.zeros_like(want)), (70, 50, 200), (2, 1, 4), ((2, want, 0),))


def _attention(n: int, depth: int) -> Callable[[np.random.Generator], Given]:
    def make(rng: np.random.Generator) -> Given:
        q, k, v = (rng.standard_normal((n, depth)).astype(np.float16) for _ in range(3))
        score = q.astype(float) @ k.astype(float).T * 0.18033688
        power = np.exp2(score - score.max(1, keepdims=True))
        want = power @ v.astype(float) / power.sum(1, keepdims=True)
        return Given((q, k, v, np.zeros_like(q)), (n,), (n // 128, 1, 1), ((3, want, 4e-3),))

    return make


def _scaled(packed: bool) -> Callable[[np.random.Generator], Given]:
    def make(rng: np.random.Generator) -> Given:
        m, n, k = 128, 128, 256
        codes = [rng.integers(0, 16, (r, k)).astype(np.uint8) for r in (m, n)]
        factors = [rng.integers(125, 130, (r, k // 32)).astype(np.uint8) for r in (m, n)]
        left, right = (
            _E2M1[c] * np.exp2(f.astype(F32) - 127).repeat(32, 1) for c, f in zip(codes, factors, strict=True)
        )
        if packed:
            stored = [(c[:, ::2] | c[:, 1::2] << 4).astype(np.uint8) for c in codes]
        else:
            stored = [_E2M1[c].astype(ml_dtypes.float8_e4m3fn) for c in codes]
        want = left @ right.T
        arrays = (stored[0], factors[0], stored[1], factors[1], np.zeros_like(want))
        return Given(arrays, (n, k), (1, 1, 1), ((4, want, 0),))

    return make


def _integer_product(rng: np.random.Generator) -> Given:
    a, b = (rng.integers(-128, 128, (64, 128)).astype(np.int8) for _ in range(2))
    want = a.astype(np.int32) @ b.astype(np.int32).T
    return Given((a, b, np.zeros_like(want)), (128,), (1, 1, 1), ((2, want, 0),))


def _of(target: int) -> list[Program]:
    xyn = ("x", "y", "n")
    tiles = {"tm": 128, "tn": 128, "tk": 128}
    scaled = ("a", "a_scale", "b", "b_scale", "d", "n", "k")
    return [
        Program("softmax", target, rows(_softmax, 1e-5), xyn, {"width": 1024}),
        Program("layer_norm", target, rows(_layer_norm, 1e-5), xyn, {"width": 1024}),
        Program("functions", target, _functions, xyn, {"width": 256}),
        Program("scan", target, integers(lambda x: x.cumsum(1), 512), xyn, {"width": 512}),
        Program("sort", target, integers(lambda x: np.sort(x, 1), 256), xyn, {"width": 256}),
        Program("histogram", target, _histogram, xyn, {"width": 512}),
        Program("gather", target, _gather, ("x", "index", "y", "n"), {"width": 128}),
        Program("transpose", target, _transpose, xyn, {"width": 64}),
        Program("locked_sum", target, _locked_sum, ("x", "y", "lock", "n"), {"width": 128}),
        Program(
            "last_sums", target, _last_sums, ("x", "parts", "y", "counter", "n"), {"width": 128, "programs": 8}
        ),
        Program(
            "split_k", target, _split_k, ("a", "b", "d", "m", "n", "k"), {"tm": 64, "tn": 64, "tk": 32, "parts": 4}
        ),
        Program(
            "attention", target, _attention(256, 64), ("q", "k", "v", "o", "n"), {"depth": 64, "tm": 128, "tn": 64}
        ),
        Program(
            "attention", target, _attention(256, 128), ("q", "k", "v", "o", "n"), {"depth": 128, "tm": 128, "tn": 128},
            warps=8, depth=2, tag="_128",
        ),
        Program("scaled", target, _scaled(False), scaled, {**tiles, "kind": "e4m3"}),
        Program("scaled", target, _scaled(True), scaled, {**tiles, "kind": "e2m1"}, tag="_fp4"),
        Program("integers", target, _integer_product, ("a", "b", "d", "k"), {"tm": 64, "tn": 64, "tk": 64}),
    ]  # fmt: skip


PROGRAMS = tuple(program for target in (100, 90) for program in _of(target))
