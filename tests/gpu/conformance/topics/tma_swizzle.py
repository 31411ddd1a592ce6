# SPDX-License-Identifier: Apache-2.0
"""TMA: where a swizzle puts the chunks of a row."""

from __future__ import annotations

from tests.gpu.conformance.question import Question
from tests.gpu.conformance.tensors import SWIZZLING, load, store, tensor
from tmagen.emu.tensormap import DataType, OobFill, SwizzleMode

F16, F32, U8 = DataType.FLOAT16, DataType.FLOAT32, DataType.UINT8
_MODES = {32: SwizzleMode.B32, 64: SwizzleMode.B64, 128: SwizzleMode.B128}


def _pattern(span: int) -> Question:
    map_ = tensor(U8, (160, 20), (span, 16), swizzle=_MODES[span])
    asks = f"Which 16-byte chunks of a {span}-byte row does the {span}-byte swizzle exchange, row by row?"
    return load(f"tma-swizzle-{span}", asks, map_, [((16, 3), 0)], 16 * span, ptx=SWIZZLING)


def _phases(span: int) -> Question:
    """Boxes of one repeat of the pattern each, every one 128 bytes further into it."""
    repeat = 8 * span
    map_ = tensor(U8, (160, 20), (span, 8), swizzle=_MODES[span])
    starts = [i * (repeat + 128) for i in range(repeat // 128)]
    asks = f"Does the {span}-byte swizzle take its phase from the address, every 128 of its {repeat} bytes?"
    boxes = [((16, i), at) for i, at in enumerate(starts)]
    return load(f"tma-swizzle-{span}-phases", asks, map_, boxes, starts[-1] + repeat, ptx=SWIZZLING)


QUESTIONS = (
    *(_pattern(span) for span in _MODES),
    *(_phases(span) for span in _MODES),
    load(
        "tma-swizzle-128-narrow",
        "Are rows of 32 bytes 128 apart under the 128-byte swizzle, with the rest of each left alone?",
        tensor(F16, (40, 20), (16, 16), swizzle=SwizzleMode.B128),
        [((8, 1), 0)],
        2048,
        ptx=SWIZZLING,
    ),
    load(
        "tma-swizzle-64-narrow",
        "Are rows of 48 bytes 64 apart under the 64-byte swizzle?",
        tensor(U8, (80, 20), (48, 16), swizzle=SwizzleMode.B64),
        [((16, 1), 0)],
        1024,
        ptx=SWIZZLING,
    ),
    load(
        "tma-swizzle-narrow-nan",
        "Is what a narrow row leaves free filled with NaN where the row is out of bounds?",
        tensor(F16, (40, 20), (16, 8), swizzle=SwizzleMode.B64, oob_fill=OobFill.NAN_REQUEST_ZERO_FMA),
        [((32, 15), 0)],
        512,
        ptx=SWIZZLING,
    ),
    load(
        "tma-swizzle-rank-3",
        "Does the pattern go on from one plane of a box to the next where a plane has 3 rows?",
        tensor(F16, (64, 4, 5), (64, 3, 4), swizzle=SwizzleMode.B128),
        [((0, 1, 1), 0)],
        1536,
        ptx=SWIZZLING,
    ),
    load(
        "tma-swizzle-element-stride",
        "Do rows at an element stride lie dense under a swizzle?",
        tensor(F16, (32, 40), (32, 15), swizzle=SwizzleMode.B64, element_strides=(1, 2)),
        [((0, 1), 0)],
        512,
        ptx=SWIZZLING,
    ),
    store(
        "tma-swizzle-store",
        "Does a store undo the 128-byte swizzle by the address, from the fourth line of its pattern on?",
        tensor(F16, (64, 12), (64, 8), swizzle=SwizzleMode.B128),
        [((0, 2), 384)],
        2048,
        ptx=SWIZZLING,
    ),
    store(
        "tma-swizzle-store-narrow",
        "Does a store of rows of 16 bytes take one chunk from each line of the 32-byte swizzle?",
        tensor(F32, (16, 12), (4, 8), swizzle=SwizzleMode.B32),
        [((8, 2), 128)],
        1024,
        ptx=SWIZZLING,
    ),
)
