# SPDX-License-Identifier: Apache-2.0
"""cp.async with its groups and mbarriers, under every completion policy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emu.ptx import LANE, execute
from tmagen.emu import EmulatorError, Fault, NotJudged
from tmagen.emu.policy import THOROUGH

POLICIES = [*THOROUGH, "timed"]
SHARED = ".shared .align 8 .b64 bar;\n.shared .align 128 .b8 tile[2048];\n"
# %r3 = the lane's place in the tile, %rd42 = its place in the input, 16 bytes each.
START = LANE + (
    "mov.u32 %r90, tile;\nmov.u32 %r91, bar;\nshl.b32 %r2, %r0, 4;\nadd.u32 %r3, %r90, %r2;\ncvt.u64.u32 %rd42, %r2;\n"
    "add.s64 %rd42, %rd2, %rd42;\n"
)
OUT = (
    "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];\nmul.wide.u32 %rd43, %r0, 16;\nadd.s64 %rd43, %rd1, %rd43;\n"
    "st.global.v4.u32 [%rd43], {%r4, %r5, %r6, %r7};\n"
)
DATA = np.arange(256, dtype=np.uint32) + 1


def copied(body: str, completion: str = "eager", seed: int = 0) -> list[int]:
    got = execute(START + body + OUT, DATA, declarations=SHARED, completion=completion, seed=seed)
    return got.view(np.uint32)[:128].tolist()


@pytest.mark.parametrize("completion", POLICIES)
@pytest.mark.parametrize("wait", ["cp.async.wait_group 0;\n", "cp.async.wait_all;\n"])
def test_bytes_arrive_before_the_wait_ends(completion: str, wait: str) -> None:
    body = "cp.async.cg.shared.global.L2::128B [%r3], [%rd42], 16;\ncp.async.commit_group;\n" + wait
    assert copied(body, completion) == DATA[:128].tolist()


@pytest.mark.parametrize(
    ("size", "words"), [("%r8", 0), ("4", 1), ("8", 2), ("16", 4)], ids=["none", "one word", "two", "all"]
)
def test_what_the_source_lacks_is_zero(size: str, words: int) -> None:
    got = copied(
        f"mov.u32 %r8, 0;\ncp.async.ca.shared.global [%r3], [%rd42], 16, {size};\ncp.async.wait_all;\n", "lazy"
    )
    want = DATA[:128].reshape(32, 4).copy()
    want[:, words:] = 0
    assert got == want.ravel().tolist()


def test_a_source_that_is_not_read_need_not_exist() -> None:
    body = (
        "mov.u64 %rd44, 16;\nsetp.ge.u32 %p1, %r0, 4;\nselp.b64 %rd45, %rd44, %rd42, %p1;\nselp.b32 %r8, 0, 16, %p1;\n"
        "cp.async.ca.shared.global [%r3], [%rd45], 16, %r8;\ncp.async.wait_all;\n"
    )
    assert copied(body) == [*DATA[:16].tolist(), *([0] * 112)]
    ignored = body.replace("16, %r8;", "16, %p1;")
    assert copied(ignored) == [*DATA[:16].tolist(), *([0] * 112)]


@pytest.mark.parametrize("nbytes", [4, 8])
def test_smaller_copies(nbytes: int) -> None:
    got = copied(f"cp.async.ca.shared::cta.global [%r3], [%rd42], {nbytes};\ncp.async.wait_all;\n")
    assert [row[: nbytes // 4] for row in np.array(got).reshape(32, 4).tolist()] == [
        row[: nbytes // 4] for row in DATA[:128].reshape(32, 4).tolist()
    ]


GROUPS = (
    "cp.async.ca.shared.global [%r3], [%rd42], 16;\ncp.async.commit_group;\n"
    "cp.async.ca.shared.global [%r3+512], [%rd42+512], 16;\ncp.async.commit_group;\n"
)


def test_the_newest_groups_may_stay_outstanding() -> None:
    assert copied(GROUPS + "cp.async.wait_group 1;\n", "lazy") == DATA[:128].tolist()
    assert copied(GROUPS + "cp.async.wait_group 2;\n", "lazy") == [0xFFFFFFFF] * 128
    # What is in no group is not waited for, except by wait_all.
    bare = "cp.async.ca.shared.global [%r3], [%rd42], 16;\n"
    assert copied(bare + "cp.async.wait_group 0;\n", "lazy") == [0xFFFFFFFF] * 128
    assert copied(bare + "cp.async.wait_all;\n", "lazy") == DATA[:128].tolist()


ARRIVE = (
    "setp.ne.u32 %p2, %r0, 0;\n@%p2 bra $made;\nmbarrier.init.shared.b64 [%r91], {count};\n$made:\nbar.sync 0;\n"
    "cp.async.ca.shared.global [%r3], [%rd42], 16;\ncp.async.mbarrier.arrive{noinc}.shared.b64 [%r91];\n{more}"
    "$w: mbarrier.try_wait.parity.shared.b64 %p1, [%r91], 0;\n@!%p1 bra $w;\n"
)


@pytest.mark.parametrize("completion", POLICIES)
def test_an_mbarrier_hears_of_copies(completion: str) -> None:
    """.noinc arrives as one of those that the barrier expects; without, the arrival was not expected before."""
    for seed in range(3):
        text = ARRIVE.format(noinc=".noinc", count=32, more="")
        assert copied(text, completion, seed) == DATA[:128].tolist()
    text = ARRIVE.format(noinc="", count=32, more="mbarrier.arrive.shared.b64 _, [%r91];\n")
    assert copied(text, completion) == DATA[:128].tolist()
    with pytest.raises(EmulatorError, match="pending arrivals 32 of 32"):
        copied(ARRIVE.format(noinc="", count=32, more=""), completion)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cp.async.ca.shared.global [%r3+4], [%rd42], 16;", "aligned"),
        ("cp.async.ca.shared.global [%r3], [%rd42+4], 8;", "aligned"),
        ("cp.async.ca.shared.global [%r3+65536], [%rd42], 16;", "outside the CTA's shared memory"),
        ("cp.async.ca.shared.global [%r3], [%rd42+65536], 16;", "outside every allocation"),
        ("mov.u32 %r8, 17;\ncp.async.ca.shared.global [%r3], [%rd42], 16, %r8;", "source of 17"),
    ],
)
def test_misuse(text: str, message: str) -> None:
    with pytest.raises(Fault, match=message):
        copied(text + "\n")


@pytest.mark.parametrize(
    "text", ["cp.async.cg.shared.global [%r3], [%rd42], 8;", "cp.async.ca.shared.global [%r3], [%rd42], 12;"]
)
def test_sizes_that_the_instruction_has_not(text: str) -> None:
    with pytest.raises(NotJudged):
        copied(text + "\n")
