# SPDX-License-Identifier: Apache-2.0
"""wgmma: where elements lie in registers and in shared memory. Operands are small integers, whose sums are exact."""

from __future__ import annotations

import numpy as np

from tests.emu.warpgroup import Image, a_words, integers
from tests.gpu.conformance.question import Question
from tests.gpu.conformance.wgmma_text import COMMIT, FENCE, mma, product, wait, wgmma

MATRIX = "Matrix-descriptor Format of wgmma"
CANONICAL = "Shared Memory Matrix Layout: canonical layouts of wgmma"
F16 = ("f16", "f16")


def _n(n: int, span: int) -> Question:
    asks = f"Which columns of D has each thread where N is {n}?"
    return product(f"wgmma-n{n}", asks, F16, integers(n, 64, 16), integers(n + 1, n, 16), spans=(32, span))


def _layout(span: int, mn: bool) -> Question:
    name = f"{'mn' if mn else 'k'}-major-{span or 'none'}"
    mode = f"the {span}-byte swizzle" if span else "no swizzle"
    asks = f"Where do elements of A and B lie with {mode}, {'MN' if mn else 'K'}-major?"
    a, b = integers(span, 64, 16), integers(span + 1, 64, 16)
    return product(f"wgmma-{name}", asks, F16, a, b, spans=(span, span), major=(mn, mn), ptx=CANONICAL)


def _types(a_kind: str, b_kind: str, asks: str) -> Question:
    k = 8 if a_kind == "tf32" else 16 if a_kind == "bf16" else 32
    return product(f"wgmma-{a_kind}-{b_kind}", asks, (a_kind, b_kind), integers(5, 64, k), integers(6, 16, k))


def _whole(a_kind: str, b_kind: str) -> Question:
    def values(seed: int, rows: int, kind: str) -> np.ndarray:
        low, high = (-128, 128) if kind == "s8" else (0, 256)
        return integers(seed, rows, 32, low=low, high=high)

    asks = f"Are elements of {a_kind} and {b_kind} extended each by its own sign?"
    a, b = values(7, 64, a_kind), values(8, 16, b_kind)
    return product(f"wgmma-{a_kind}-{b_kind}", asks, (a_kind, b_kind), a, b, d="s32")


def _overflow(saturate: bool) -> Question:
    a = np.where(np.arange(64)[:, None] % 2, 127, -128) * np.ones((1, 32), int)
    start = np.where(np.arange(64)[:, None] % 2, 2**31 - 5, -(2**31) + 5) * np.ones((1, 8), int)
    asks = "Does a sum of s32 clamp at both ends with .satfinite?" if saturate else "Does a sum of s32 wrap?"
    name = "wgmma-satfinite" if saturate else "wgmma-wrap"
    b = np.full((8, 32), 127)
    return product(name, asks, ("s8", "s8"), a, b, d="s32", start=start, suffix=".satfinite" if saturate else "")


def _from_registers(kind: str, asks: str, **options: object) -> Question:
    k = {"f16": 16, "tf32": 8, "e4m3": 32, "s8": 32}[kind]
    a, b = integers(11, 64, k), integers(12, 16, k)
    if options.get("major"):
        b = integers(12, 64, k)
    return product(
        f"wgmma-a-registers-{kind}",
        asks,
        (kind, kind),
        a,
        b,
        in_registers=True,
        d="s32" if kind == "s8" else "f32",
        **options,
    )


def _descriptors(
    name: str, asks: str, change_a: int = 0, change_b: int = 0, *, span: int = 128, **put: int
) -> Question:
    """A product whose descriptors have bits flipped after the operands were laid out."""
    image = Image()
    image.data[:] = integers(20, image.data.size // 2).astype(np.float16).view(np.uint8)
    a_desc = image.put("f16", integers(21, 64, 16), span, **put)
    b_desc = image.put("f16", integers(22, 8, 16), span, **put)
    lines = [FENCE, mma("m64n8k16.f32.f16.f16", a_desc ^ change_a, b_desc ^ change_b), COMMIT, wait()]
    return wgmma(name, asks, image, lines, words=4, ptx=MATRIX)


def _inside_the_atom() -> Question:
    """64 columns of K in rows of 128 bytes: each instruction starts 32 bytes further."""
    image = Image()
    a_desc = image.put("f16", integers(23, 64, 64), 128)
    b_desc = image.put("f16", integers(24, 16, 64), 128)
    steps = [mma("m64n16k16.f32.f16.f16", a_desc + 2 * i, b_desc + 2 * i) for i in range(4)]
    asks = "Does a start 32, 64 and 96 bytes inside the 128-byte atom take the next elements of K?"
    return wgmma("wgmma-k-advance", asks, image, [FENCE, *steps, COMMIT, wait()], words=8, ptx=MATRIX)


def _groups() -> Question:
    """Three groups on three accumulators; the waits come one by one."""
    image = Image()
    descs = [(image.put("f16", integers(i, 64, 16)), image.put("f16", integers(i + 9, 8, 16))) for i in range(3)]
    shape = "m64n8k16.f32.f16.f16"
    lines = [FENCE]
    for (a, b), name in zip(descs, "def", strict=True):
        lines += [mma(shape, a, b, d="{" + name + "}"), COMMIT]
    lines += [COMMIT, wait(3), wait(1), wait(0)]
    asks = "Are three groups and an empty one complete after waits that leave 3, 1 and 0?"
    return wgmma("wgmma-groups", asks, image, lines, words=4, sets="def", ptx="wgmma.wait_group")


def _d_as_a() -> Question:
    image = Image()
    a, b, c = (image.put("f16", integers(i, rows, 16, low=-1, high=2)) for i, rows in ((31, 64), (32, 16), (33, 16)))
    shape, done = "m64n16k16.f16.f16.f16", [COMMIT, wait()]
    first = mma(shape, a, b, scale=0)
    second = mma(shape, "{d}", c, scale=0, tail="1, 1, 0", d="{e}")
    asks = "Do registers of an f16 D of 16 columns serve as A of the next instruction?"
    lines = [FENCE, first, *done, FENCE, second, *done]
    return wgmma("wgmma-d-as-a", asks, image, lines, words=4, sets="de", ptx="Register Fragments of wgmma")


def _two_warpgroups() -> Question:
    """Both use one B; each has rows of A in registers."""
    image = Image()
    b_desc = image.put("f16", integers(41, 24, 16))
    rows = np.concatenate([a_words("f16", integers(42, 64, 16)), a_words("f16", integers(43, 64, 16))])
    lines = [FENCE, mma("m64n24k16.f32.f16.f16", "{a}", b_desc, tail="1, 1, 0"), COMMIT, wait()]
    asks = "Do two warpgroups multiply each its own 64 rows by one B?"
    return wgmma("wgmma-two-warpgroups", asks, image, lines, words=12, a=rows, threads=256)


def _mixed() -> Question:
    image = Image()
    a, b = integers(51, 64, 16), integers(52, 16, 16)
    a_desc, b_desc = image.put("f16", a, 64, True), image.put("f16", b, 32)
    lines = [FENCE, mma("m64n16k16.f32.f16.f16", a_desc, b_desc, tail="1, 1, 1, 0"), COMMIT, wait()]
    asks = "May A be MN-major with one swizzle and B K-major with another?"
    return wgmma("wgmma-mixed-layouts", asks, image, lines, words=8, ptx=CANONICAL)


_LEADING, _STRIDE, _OFFSET = 16, 32, 49

QUESTIONS = (
    _n(8, 128),
    _n(24, 64),
    _n(136, 32),
    _n(256, 32),
    product(
        "wgmma-d-f16",
        "Which two columns share a register of an f16 D?",
        F16,
        integers(13, 64, 16),
        integers(14, 24, 16),
        d="f16",
        start=integers(15, 64, 24, low=-99, high=99),
    ),
    _from_registers("f16", "Which elements of A of 16 bits has each thread; B MN-major?", major=(False, True)),
    _from_registers("tf32", "Which elements of A of tf32 has each thread?"),
    _from_registers("e4m3", "Which elements of A of 8 bits has each thread?"),
    _from_registers("s8", "Which elements of A of s8 has each thread?"),
    _types("bf16", "bf16", "Is bf16 read as bf16?"),
    _types("tf32", "tf32", "Do 8 elements of tf32 make a row of 32 bytes?"),
    _types("e4m3", "e5m2", "May A be e4m3 and B e5m2?"),
    _types("e5m2", "e4m3", "May A be e5m2 and B e4m3?"),
    _whole("s8", "u8"),
    _whole("u8", "s8"),
    _whole("u8", "u8"),
    _overflow(False),
    _overflow(True),
    *(_layout(span, mn) for mn in (False, True) for span in (0, 32, 64, 128)),
    _mixed(),
    _descriptors(
        "wgmma-lbo-ignored",
        "Is the leading offset of a K-major swizzled operand ignored?",
        0x2AA << _LEADING,
        0x155 << _LEADING,
    ),
    _descriptors(
        "wgmma-sbo-of-one-group",
        "Is the stride offset ignored where B has just 8 rows?",
        0,
        0x3FF << _STRIDE,
    ),
    _descriptors(
        "wgmma-wide-stride",
        "May groups of 8 rows lie farther apart than their size, under a swizzle?",
        stride=2048,
    ),
    _descriptors(
        "wgmma-unswizzled-strides",
        "Are the two offsets free without a swizzle: 144 bytes for 8 rows, 4112 for 16 bytes of K?",
        span=0,
        leading=4112,
        stride=144,
    ),
    _descriptors(
        "wgmma-unswizzled-start",
        "May an operand without a swizzle start at any multiple of 16?",
        span=0,
        shift=16 * 3,
    ),
    _descriptors(
        "wgmma-start-in-pattern",
        "Does the 128-byte swizzle of a tile that starts 384 bytes into its pattern follow the address?",
        shift=384,
    ),
    _descriptors(
        "wgmma-start-in-pattern-32",
        "Does the 32-byte swizzle of a tile that starts 128 bytes into its pattern follow the address?",
        span=32,
        shift=128,
    ),
    _descriptors(
        "wgmma-base-offset",
        "Is the base offset subtracted from the swizzle's phase?",
        5 << _OFFSET,
        3 << _OFFSET,
    ),
    _descriptors(
        "wgmma-base-offset-64",
        "Do the two low bits of the base offset count for the 64-byte swizzle, and not the third?",
        4 << _OFFSET,
        6 << _OFFSET,
        span=64,
    ),
    _descriptors(
        "wgmma-base-offset-unswizzled",
        "Is the base offset ignored without a swizzle?",
        5 << _OFFSET,
        7 << _OFFSET,
        span=0,
    ),
    _inside_the_atom(),
    product(
        "wgmma-scale-d",
        "Is an old D of NaN ignored where scale-d is false?",
        F16,
        integers(61, 64, 16),
        integers(62, 8, 16),
        start=np.full((64, 8), np.nan),
        scale=0,
    ),
    product(
        "wgmma-negate-a",
        "Does an immediate of -1 for A negate the products and leave the old D?",
        F16,
        integers(63, 64, 16),
        integers(64, 8, 16),
        start=integers(65, 64, 8),
        signs="-1, 1",
    ),
    product(
        "wgmma-negate-both",
        "Do two immediates of -1 cancel?",
        ("bf16", "bf16"),
        integers(66, 64, 16),
        integers(67, 8, 16),
        start=integers(68, 64, 8),
        signs="-1, -1",
    ),
    product(
        "wgmma-negate-f16",
        "Does an immediate of -1 for B negate products into an f16 D?",
        F16,
        integers(69, 64, 16),
        integers(70, 8, 16),
        d="f16",
        start=integers(71, 64, 8),
        signs="1, -1",
    ),
    _groups(),
    _d_as_a(),
    _two_warpgroups(),
)
