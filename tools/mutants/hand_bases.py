# SPDX-License-Identifier: Apache-2.0
"""What each of the hand-written kernels is launched for, and what has to come out."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from tmagen.emu import Launch, Predecessor, TensorMap
from tmagen.emu.tensormap import DataType, SwizzleMode
from tools.mutants.hand import Hand, Room, params, rows

Setting = Callable[[Room], tuple[Launch, ...]]


def _roles(m: int, n: int, k: int, ctas: int) -> Setting:
    def setting(room: Room) -> tuple[Launch, ...]:
        a, b = room.integers(m, k), room.integers(n, k)
        at, bt = room.operand(a.astype(np.float16)), room.operand(b.astype(np.float16))
        d = room.result((a @ b.T).astype(np.float16))
        tiles_m, tiles_n = -(-m // 128), -(-n // 64)
        block = params(
            rows(at, "float16", (m, k), (128, 64)), rows(bt, "float16", (n, k), (64, 64)),
            rows(d, "float16", (m, n), (128, 64), SwizzleMode.NONE), tiles_m, tiles_m * tiles_n, -(-k // 64),
        )  # fmt: skip
        return (Launch("roles", (ctas, 1, 1), (192, 1, 1), dynamic_smem_bytes=65536, params=block),)

    return setting


ROLES = Hand(
    "roles",
    "a product by roles, two accumulators, TMA stores (sm_100a)",
    (_roles(200, 128, 200, 1), _roles(128, 64, 64, 1), _roles(300, 192, 72, 2), _roles(96, 40, 320, 3)),
)


def _pair(m: int, n: int, k: int, clusters: int) -> Setting:
    def setting(room: Room) -> tuple[Launch, ...]:
        a, b = room.integers(m, k), room.integers(n, k)
        at, bt = room.operand(a.astype(np.float16)), room.operand(b.astype(np.float16))
        d = room.result((a @ b.T).astype(np.float32))
        tiles_m, tiles_n = m // 256, n // 64
        block = params(
            rows(at, "float16", (m, k), (128, 64)), rows(bt, "float16", (n, k), (32, 64)), d,
            tiles_m, tiles_m * tiles_n, -(-k // 64),
        )  # fmt: skip
        launch = Launch("pair", (2 * clusters, 1, 1), (192, 1, 1), (2, 1, 1), dynamic_smem_bytes=40960, params=block)
        return (launch,)

    return setting


PAIR = Hand(
    "pair",
    "a product of a CTA pair, cta_group::2 (sm_100a)",
    (_pair(256, 128, 200, 1), _pair(256, 64, 64, 1), _pair(512, 192, 72, 2), _pair(512, 64, 320, 1)),
)


def _multicast(m: int, n: int, k: int, clusters: int) -> Setting:
    def setting(room: Room) -> tuple[Launch, ...]:
        a, b, c = room.integers(m, k), room.integers(n, k), room.integers(m, n)
        at, bt, ct = (room.operand(matrix.astype(np.float16)) for matrix in (a, b, c))
        d = room.result((a @ b.T + c).astype(np.float32))
        tiles_m, tiles_n = m // 256, n // 64
        block = params(
            rows(at, "float16", (m, k), (128, 64)), rows(bt, "float16", (n, k), (32, 64)),
            rows(ct, "float16", (m, n), (128, 64), SwizzleMode.NONE), d, tiles_m, tiles_m * tiles_n, -(-k // 64),
        )  # fmt: skip
        shared = 65536
        return (Launch("multicast", (2 * clusters, 1, 1), (384, 1, 1), (2, 1, 1), shared, block),)

    return setting


MULTICAST = Hand(
    "multicast",
    "a product of a cluster of two: wgmma, multicast, setmaxnreg, a tile of C (sm_90a)",
    (
        _multicast(256, 128, 200, 1),
        _multicast(256, 64, 64, 1),
        _multicast(512, 192, 72, 2),
        _multicast(512, 64, 320, 1),
    ),
)


def _takeover(tiles: int) -> Setting:
    def setting(room: Room) -> tuple[Launch, ...]:
        given = room.integers(tiles, 128).astype(np.int32)
        wanted = (3 * given + np.arange(tiles)[:, None]).astype(np.int32)
        block = params(room.operand(given), room.result(wanted))
        return (Launch("takeover", (tiles, 1, 1), (160, 1, 1), params=block),)

    return setting


TAKEOVER = Hand("takeover", "clusterlaunchcontrol (sm_100a)", (_takeover(6), _takeover(1), _takeover(2), _takeover(13)))


def _split(tiles: int, parts: int) -> Setting:
    def setting(room: Room) -> tuple[Launch, ...]:
        given = room.integers(tiles * parts, 8, 128).astype(np.int32)
        sums = given.sum(1).reshape(tiles, parts, 128).sum(1).astype(np.int32)
        nbytes = 512 * tiles * parts
        block = params(
            room.operand(given), room.scratch(nbytes), room.scratch(nbytes), room.scratch(4 * tiles),
            room.result(sums), room.result((5 * sums).astype(np.int32)), parts,
        )  # fmt: skip
        return (Launch("split", (tiles * parts, 1, 1), (128, 1, 1), params=block),)

    return setting


SPLIT = Hand(
    "split",
    "sums shared by CTAs, the last one adds up (sm_90a)",
    (_split(2, 3), _split(1, 1), _split(1, 8), _split(5, 2)),
)


def _groups(*heights: int) -> Setting:
    def setting(room: Room) -> tuple[Launch, ...]:
        matrices = [room.integers(height, 64).astype(np.float16) for height in heights]
        wanted = np.zeros((len(heights), 16, 64), np.float16)
        for group, matrix in enumerate(matrices):
            wanted[group, : min(16, len(matrix))] = matrix[:16]
        places = [room.operand(matrix) for matrix in matrices]
        addresses = room.operand(np.array([place.address for place in places], np.uint64))
        block = params(
            rows(places[0], "float16", (heights[0], 64), (16, 64), SwizzleMode.NONE), room.scratch(128), addresses,
            room.operand(np.array(heights, np.uint32)), room.result(wanted), len(heights),
        )  # fmt: skip
        return (Launch("groups", (1, 1, 1), (64, 1, 1), params=block),)

    return setting


GROUPS = Hand(
    "groups",
    "tensor maps changed by the kernel (sm_90a)",
    (_groups(16, 5, 33, 8, 16), _groups(7), _groups(16, 16, 16, 1, 1, 1, 9), _groups(64, 3)),
)


def _chained(tiles: int, ctas: int) -> Setting:
    def setting(room: Room) -> tuple[Launch, ...]:
        m = 128 * tiles
        a, b, c = (room.integers(*shape, largest=3) for shape in ((m, 64), (64, 64), (64, 64)))
        s, e = room.integers(m, 16, largest=3), room.integers(64, 16, largest=3)
        at, bt, ct, st, et = (room.operand(matrix.astype(np.float16)) for matrix in (a, b, c, s, e))
        d = room.result(((a @ b.T) @ c.T + s @ e.T).astype(np.float32))
        columns = TensorMap(DataType.FLOAT16, 3, st.address, (8, m, 2), (32, 16), (8, 128, 2), (1, 1, 1))
        block = params(
            rows(at, "float16", (m, 64), (128, 64)), rows(bt, "float16", (64, 64), (64, 64)),
            rows(ct, "float16", (64, 64), (64, 64)), columns, et, d, tiles,
        )  # fmt: skip
        return (Launch("chained", (ctas, 1, 1), (128, 1, 1), dynamic_smem_bytes=38912, params=block),)

    return setting


CHAINED = Hand(
    "chained",
    "two products in a row, tcgen05.st, tcgen05.cp, cp.async (sm_100a)",
    (_chained(2, 1), _chained(1, 1), _chained(5, 2), _chained(3, 3)),
)


def _dependent(ctas: int) -> Setting:
    def setting(room: Room) -> tuple[Launch, ...]:
        given, scale, table = (room.integers(ctas, 64).astype(np.int32) for _ in range(3))
        wanted = (given + scale * table).astype(np.int32)
        places = [room.operand(given), room.operand(scale), room.operand(table), room.result(wanted)]
        written, read = places[:2], places[3:]
        before = Predecessor(
            tuple((place.address, place.nbytes) for place in written),
            tuple((place.address, place.nbytes) for place in read),
        )
        return (Launch("dependent", (ctas, 1, 1), (64, 1, 1), params=params(*places), predecessor=before),)

    return setting


DEPENDENT = Hand("dependent", "programmatic dependent launch (sm_90a)", (_dependent(2), _dependent(1), _dependent(5)))


def _scaled(tiles: int, ctas: int) -> Setting:
    def setting(room: Room) -> tuple[Launch, ...]:
        m = 128 * tiles
        a, b = room.integers(m, 128, largest=4), room.integers(64, 128, largest=4)
        for_a, for_b = room.rng.integers(0, 4, (m, 4)), room.rng.integers(0, 4, (128, 4))
        scaled_a, scaled_b = a << for_a.repeat(32, 1), b << for_b[:64].repeat(32, 1)
        at, bt = (room.operand(matrix.astype(ml_dtypes.float8_e4m3fn)) for matrix in (a, b))
        # For each 128 rows: row r of 32 has the four scales of rows r, r + 32, r + 64 and r + 96.
        places = [
            room.operand((127 + scales).astype(np.uint8).reshape(-1, 4, 32, 4).transpose(0, 2, 1, 3))
            for scales in (for_a, for_b)
        ]
        d = room.result((scaled_a @ scaled_b.T).astype(np.float32))
        block = params(
            rows(at, "uint8", (m, 128), (128, 128)), rows(bt, "uint8", (64, 128), (64, 128)), *places, d, tiles
        )
        return (Launch("scaled", (ctas, 1, 1), (128, 1, 1), dynamic_smem_bytes=25600, params=block),)

    return setting


SCALED = Hand(
    "scaled", "a product with a scale for each 32 elements (sm_100a)", (_scaled(2, 1), _scaled(1, 1), _scaled(5, 2))
)


def _relay(clusters: int, rounds: int) -> Setting:
    def setting(room: Room) -> tuple[Launch, ...]:
        given = room.integers(2 * clusters, 64).astype(np.int32)
        values = given
        for _ in range(rounds):
            swapped = values.reshape(clusters, 2, 64)[:, ::-1].reshape(given.shape)
            values = values + swapped
        block = params(room.operand(given), room.result(values), rounds)
        return (Launch("relay", (2 * clusters, 1, 1), (64, 1, 1), (2, 1, 1), params=block),)

    return setting


RELAY = Hand(
    "relay", "CTAs that store into each other's shared memory (sm_90a)", (_relay(1, 3), _relay(1, 1), _relay(3, 4))
)
