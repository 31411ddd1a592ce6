# SPDX-License-Identifier: Apache-2.0
"""Execution policies: what each of them finds, by value or by deadlock, and that a right kernel stays right."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.emu.ptx import LANE, execute, module
from tmagen.emu import GlobalMemory, Launch, parse, run
from tmagen.emu.policy import POLICIES, SEEDS, THOROUGH, USUAL, Seeds, policy_of
from tmagen.emu.policy.choices import at_random
from tmagen.emu.policy.poison import PATTERNS
from tmagen.emu.tmem import Tmem
from tools.mutants.policies import CASES, Case, launch_of, outcome


def runs(case: Case, body: str, policy: str) -> list[str]:
    """What comes of a body under a policy, with all of its seeds."""
    return [outcome(case, body, policy, seed) for seed in POLICIES[policy].seeds_from(0, launch_of(case))]


@pytest.mark.parametrize("case", CASES, ids=[f"{case.policy}: {case.mutation}" for case in CASES])
def test_a_mutant_shows_under_its_policy(case: Case) -> None:
    for policy in THOROUGH:
        assert not any(runs(case, case.right, policy)), policy
    assert outcome(case, case.wrong, "eager", 0) == ""
    assert any(runs(case, case.wrong, case.policy))


def test_each_policy_has_a_mutant() -> None:
    assert {case.policy for case in CASES} == set(THOROUGH) - {"eager"}


def test_some_mutants_show_under_none_of_the_usual_policies() -> None:
    hidden = {case.policy for case in CASES if not any(any(runs(case, case.wrong, usual)) for usual in USUAL)}
    assert hidden == {"producer-first", "late-read", "split", "poison", "starve"}


def test_a_run_is_the_same_again() -> None:
    case = next(case for case in CASES if case.policy == "split")
    assert runs(case, case.wrong, "split") == runs(case, case.wrong, "split")


def test_seeds() -> None:
    launch = Launch("k", (4, 1, 1), (130, 1, 1))
    pair = Launch("k", (4, 1, 1), (128, 1, 1), (2, 1, 1))
    assert POLICIES["lazy"].seeds_from(7, launch) == (7,)
    assert POLICIES["split"].seeds_from(7, launch) == tuple(range(7, 7 + SEEDS))
    assert POLICIES["starve"].seeds_from(0, launch) == (0, 1, 2, 3, 4)  # warps
    assert POLICIES["starve"].seeds_from(0, pair) == (0, 1, 2, 3, 4, 5)  # four warps, two CTAs
    assert {policy.name for policy in POLICIES.values() if policy.seeds is not Seeds.NONE} == {
        "random", "split", "adversarial", "poison", "starve",
    }  # fmt: skip


def test_a_name_that_is_no_policy() -> None:
    with pytest.raises(ValueError, match="'late' is not one of eager, lazy, newest-first, random, producer-first"):
        policy_of("late")
    with pytest.raises(ValueError, match="'late'"):
        run(parse(".version 8.8\n.target sm_100a\n.address_size 64\n"), Launch("k", (1, 1, 1), (1, 1, 1)),
            GlobalMemory(), completion="late")  # fmt: skip


def test_poison_fills_shared_memory_tensor_memory_and_registers() -> None:
    body = LANE + "ld.shared.u32 %r5, [word];\nadd.u32 %r5, %r5, %r150;\nst.global.u32 [%rd41], %r5;\n"
    branch = "setp.eq.u32 %p1, %r0, 99;\n@%p1 bra $a;\nbra $b;\n$a:\nmov.u32 %r150, 0;\n$b:\n"
    for seed, byte in enumerate(PATTERNS):
        got = execute(
            "mov.u32 %r0, %tid.x;\n" + branch + body,
            declarations=".shared .align 4 .b32 word;\n",
            completion="poison",
            seed=seed,
        )
        assert got.view(np.uint32)[0] == 2 * byte * 0x01010101 & 0xFFFFFFFF
        tmem = Tmem(fill=byte)
        assert tmem.words[0, 0] == byte * 0x01010101
        first = tmem.alloc(32)
        assert first is not None
        tmem.words[first] = 0
        tmem.dealloc(first, 32)
        assert tmem.words[first, 5] == byte * 0x01010101


@pytest.mark.parametrize(
    ("smem", "threads", "first"), [(0, 32, 64), (117_000, 32, 0), (0, 1024, 64), (114_000, 32, 64)]
)
def test_another_cta_has_tensor_memory_where_an_sm_has_room_for_it(smem: int, threads: int, first: int) -> None:
    body = (
        "mov.u32 %r1, slot;\nmov.u32 %r0, %tid.x;\nsetp.gt.u32 %p1, %r0, 31;\n@%p1 ret;\n"
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 64;\nld.shared.b32 %r2, [%r1];\n"
        "st.global.b32 [%rd1], %r2;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 64;\n"
    )
    memory = GlobalMemory()
    out = memory.allocate(16)
    kernel = module(body, pointers=1, declarations=".shared .align 4 .b32 slot;\n")
    params = out.address.to_bytes(8, "little")
    run(kernel, Launch("k", (1, 1, 1), (threads, 1, 1), (1, 1, 1), smem, params), memory, completion="lazy")
    assert out.data.view(np.uint32)[0] == first


def test_clusters_are_given_in_any_order_and_refused_at_times() -> None:
    draw = random.Random(1)
    found: list[Any] = [at_random(draw, asked, 5) for asked in range(200)]
    assert set(found) == {None, 0, 1, 2, 3, 4}
