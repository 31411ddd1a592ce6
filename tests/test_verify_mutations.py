# SPDX-License-Identifier: Apache-2.0
"""Kernels broken on purpose, in their device part or their host part: each must be found."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from tests.together import build_together
from tmagen.emit import emit
from tmagen.ir import DType, Gemm, Problem, Schedule, Shape
from tmagen.plan import plan
from tmagen.verify import LeadingDims, Report, Verdict, verify

pytestmark = pytest.mark.usefixtures("built")

# Two CTAs share six tiles; seven K tiles go round a ring of two stages; M, N and K end inside a tile; rows are padded.
SPEC = Gemm(schedule=Schedule(persistent=True, ctas=2))
SHAPE = Shape(300, 200, 424)
LDS = LeadingDims(432, 440, 216)


@dataclass(frozen=True)
class Mutation:
    """A change of the emitted text: a pattern, what replaces it, and words of which the report must have one."""

    name: str
    pattern: str
    new: str
    told: tuple[str, ...] = ("elements of D are wrong",)
    checks: bool = True

    def apply(self, text: str) -> str:
        """The text with every match of the pattern replaced."""
        # A blank in a pattern stands for any white space, so that line breaks of the text do not matter.
        changed, count = re.subn(self.pattern.replace(" ", r"\s+"), self.new, text)
        assert count, f"nothing in the emitted text matches {self.pattern}"
        return changed


DEADLOCK = "deadlock"
WAIT_FULL = r"ptx::mbarrier_wait_parity\(&smem\.full\[stage\],[^;]*;"
WAIT_MMA = r"ptx::mbarrier_wait_parity\(&smem\.mma_done,[^;]*;"
MAP_A = r'(encode_map\(maps\.a, "a",[^;]*)'
MAP_B = r'(encode_map\(maps\.b, "b",[^;]*)'
MAP_D = r'(encode_map\(maps\.d, "d",[^;]*)'

MUTATIONS = [
    Mutation("map of A without swizzle", MAP_A + "SWIZZLE_128B", r"\1SWIZZLE_NONE"),
    Mutation("map of D without swizzle", MAP_D + "SWIZZLE_128B", r"\1SWIZZLE_NONE", ("a swizzle that does not match",)),
    Mutation(
        "descriptor without swizzle",
        r"(kDescriptorSwizzle = uint64_t\{)2",
        r"\g<1>0",
        ("elements of D are wrong", "descriptor"),
    ),
    Mutation(
        "epilogue without swizzle",
        r"return row & \(kBoxRowBytes / kChunkBytes - 1\);",
        "return 0;",
        ("a swizzle that does not match",),
    ),
    Mutation(
        "tx bytes halved",
        r"(mbarrier_arrive_expect_tx\(full, kTxBytes)\)",
        r"\1 / 2)",
        (DEADLOCK, "elements of D are wrong", "tx"),
    ),
    Mutation("tx bytes doubled", r"(mbarrier_arrive_expect_tx\(full, kTxBytes)\)", r"\1 * 2)", (DEADLOCK,)),
    Mutation("phase of the ring never flipped", r" phase \^= 1;", " ;", (DEADLOCK, "elements of D are wrong")),
    Mutation(
        "phase of the MMA never flipped", r"mma_phase \^= 1;", "mma_phase ^= 0;", (DEADLOCK, "elements of D are wrong")
    ),
    Mutation("no wait for the MMA", WAIT_MMA, ""),
    Mutation("no wait for TMA", WAIT_FULL, "", ("elements of D are wrong", "mbarrier.arrive after the last expected")),
    Mutation("one buffer of A for two stages", r"smem\.a\[stage\]", "smem.a[0]"),
    Mutation("row coordinate of A off by one", r"(&map_a,[^;]*tile\.m \* kBlockM)", r"\1 + 1"),
    Mutation("row coordinate of D off by one", r"(&map_d,[^;]*tile\.m \* kBlockM)", r"\1 + 1"),
    Mutation("last K tile forgotten", r"tiles_of\(args\.k, kBlockK\)", "args.k / kBlockK"),
    Mutation("box of A one row short", MAP_A + "kBlockM", r"\1kBlockM - 1", (DEADLOCK,)),
    Mutation("stride of A 16 bytes too short", MAP_A + r"args\.lda", r"\1(args.lda - 8)"),
    Mutation("stride of A 16 bytes too long", MAP_A + r"args\.lda", r"\1(args.lda + 8)", ("past the end of A",)),
    Mutation("map of A longer than M", MAP_A + r"args\.m", r"\1args.m + 128", ("past the end of A",)),
    Mutation("map of B longer than N", MAP_B + r"args\.n", r"\1args.n + 1", ("past the end of B",)),
    Mutation("map of D wider than N", MAP_D + r", args\.m", r"\1 + 8, args.m", ("past the end of D",)),
    Mutation("map of D longer than M", MAP_D + r"args\.m", r"\1args.m + 1", ("past the end of D",)),
    Mutation(
        "TMEM address taken for 0",
        r"return smem\.tmem_base;",
        "return 0;",
        ("allocated columns: 128 at 128", "allocated is 128 columns at 0x80"),
    ),
    Mutation(
        "store by a thread that does not wait",
        r"if \(warp == 0 && ptx::elect_sync\(\)\) \{ (for \(uint32_t box)",
        r"if (threadIdx.x == 0) { \1",
    ),
    Mutation(
        "tile that never advances",
        r"next_id \+= gridDim\.x;",
        "",
        ("never ends: the CTA comes back to the state",),
        checks=False,  # thousands of whole tiles; the next mutant is checked
    ),
    Mutation(
        "K tile that never advances",
        r"(for \(uint32_t k = 0; k < k_tiles;) \+\+k",
        r"\1 k = min(k, 0u)",
        ("never ends: the CTA comes back to the state",),
    ),
    Mutation("another stream", r"config\.stream = stream;", "", ("on another stream",)),
    Mutation(
        "shared memory not asked for",
        r"cudaFuncSetAttribute\(kernel,[^;]*;",
        "cudaSuccess;",
        ("launch() returned cudaErrorInvalidValue: cudaLaunchKernelEx",),
    ),
    Mutation(
        "host part that reads device memory",
        r"(const int64_t m_tiles = tiles_of)",
        r"if (*reinterpret_cast<const volatile int*>(args.a) == 1) return cudaErrorUnknown; \1",
        ("SIGSEGV",),
    ),
    Mutation(
        "launch that is not checked",
        r"status = (cudaLaunchKernelEx)",
        r"config.blockDim = dim3(2 * kThreads); \1",
        ("left cudaErrorInvalidValue behind",),
    ),
]


@pytest.fixture(scope="module")
def text() -> str:
    """The kernel, without the compile-time checks that would refuse a mutant before it runs."""
    return re.sub(r"static_assert\(.*?\);\n", "", emit(plan(SPEC)), flags=re.DOTALL)


@pytest.fixture(scope="module")
def _built_together(text: str) -> None:
    build_together([text, *(mutation.apply(text) for mutation in (*MUTATIONS, *PACKED))])


@pytest.fixture
def built(_built_together: None, kept_builds: pytest.MonkeyPatch) -> None:
    """The mutants are built already."""


def run(text: str, *, checks: bool = True) -> Report:
    return verify(text, [SHAPE], inputs="integer", lds=LDS, checks=checks, jobs=1)


def test_unbroken_kernel_passes(text: str) -> None:
    report = run(text)
    assert report.exit_code == 0, report.text()
    assert len(report.cases) == 4


# What is right as long as rows are packed: found without a word on shapes and leading dimensions.
PACKED_K = r"(args.k + 7) / 8 * 8"
PACKED_N = r"(args.n + 7) / 8 * 8"
PACKED = [
    Mutation("lda ignored", MAP_A + r"args\.lda", r"\1" + PACKED_K),
    Mutation("ldb ignored", MAP_B + r"args\.ldb", r"\1" + PACKED_K),
    Mutation("ldd ignored", MAP_D + r"args\.ldd", r"\1" + PACKED_N),
    Mutation("ldd ignored at the edge of D", r"args\.d\), args\.ldd", f"args.d), {PACKED_N}"),
    Mutation(
        "lda taken for ldb", MAP_B + r"args\.ldb", r"\1args.lda", ("past the end of B", "elements of D are wrong")
    ),
    Mutation(
        "ldb taken for lda", MAP_A + r"args\.lda", r"\1args.ldb", ("past the end of A", "elements of D are wrong")
    ),
]


@pytest.mark.parametrize("mutation", PACKED, ids=lambda mutation: mutation.name)
def test_leading_dimensions_that_are_not_used_fail_the_default_cases(text: str, mutation: Mutation) -> None:
    report = verify(mutation.apply(text), completion="eager", inputs="integer", checks=False, jobs=1)
    assert report.exit_code == 1, report.text()
    failed = [case for case in report.cases if case.verdict is Verdict.FAILED]
    assert any(words in "\n".join(case.lines()) for case in failed for words in mutation.told), report.text()
    assert any(case.verdict is Verdict.PASSED and 0 not in (case.shape.m, case.shape.n) for case in report.cases)


def test_ignored_ldd_of_f32_output() -> None:
    spec = Gemm(problem=Problem(d=DType.F32), schedule=SPEC.schedule)
    mutation = Mutation("ldd ignored", MAP_D + r"args\.ldd", r"\1(args.n + 3) / 4 * 4")
    report = verify(mutation.apply(emit(plan(spec))), completion="eager", inputs="integer", checks=False)
    assert report.exit_code == 1, report.text()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_broken_kernel_fails(text: str, mutation: Mutation) -> None:
    report = run(mutation.apply(text), checks=mutation.checks)
    assert report.exit_code == 1, report.text()
    failed = "\n".join(line for case in report.cases if case.verdict is Verdict.FAILED for line in case.lines())
    assert any(words in failed for words in mutation.told), report.text()
    assert "/tmp" not in failed, "the kernel has no file: its lines are told by name"
