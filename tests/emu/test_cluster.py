# SPDX-License-Identifier: Apache-2.0
"""Clusters of CTAs: ranks, barriers, remote memory and mbarriers, multicast, and taking over clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.emu.ptx import module
from tmagen.emu import Deadlock, EmulatorError, Fault, GlobalMemory, Launch, RunResult, run
from tmagen.emu.policy import THOROUGH

POLICIES = [*THOROUGH, "timed"]
SHARED = ".shared .align 8 .b64 bar;\n.shared .align 128 .b8 tile[1024];\n"
# %r0 = thread, %r80 = rank, %r81 = CTA's x, %rd40 = the CTA's row of 32 words in the output, %rd41 = the thread's word.
START = (
    "mov.u32 %r0, %tid.x;\nmov.u32 %r80, %cluster_ctarank;\nmov.u32 %r81, %ctaid.x;\nmov.u32 %r90, tile;\n"
    "mov.u32 %r91, bar;\nmul.wide.u32 %rd40, %r81, 128;\nadd.s64 %rd40, %rd1, %rd40;\nmul.wide.u32 %rd41, %r0, 4;\n"
    "add.s64 %rd41, %rd40, %rd41;\n"
)
SYNC = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"


def launched(
    body: str,
    data: npt.NDArray[Any] | None = None,
    *,
    grid: tuple[int, int, int] = (4, 1, 1),
    cluster: tuple[int, int, int] = (2, 1, 1),
    threads: int = 32,
    completion: str = "eager",
    seed: int = 0,
    jobs: int = 1,
    directives: str = "",
) -> tuple[npt.NDArray[np.uint32], RunResult]:
    """The output, 32 words for each CTA of the grid in x; %rd2 is the address of `data`."""
    memory = GlobalMemory()
    out = memory.allocate(128 * grid[0] * grid[1] * grid[2])
    raw = np.ascontiguousarray(np.zeros(4, np.uint32) if data is None else data).view(np.uint8).ravel()
    source = memory.allocate(raw.size)
    source.data[:] = raw
    kernel = module(START + body, pointers=2, declarations=SHARED, directives=directives)
    params = out.address.to_bytes(8, "little") + source.address.to_bytes(8, "little")
    launch = Launch("k", grid, (threads, 1, 1), cluster, params=params)
    result = run(kernel, launch, memory, completion=completion, seed=seed, jobs=jobs)
    return out.data.view(np.uint32).reshape(-1, 32), result


def one(name: str, text: str) -> str:
    """`text` by thread 0 alone."""
    return f"setp.ne.u32 %p8, %r0, 0;\n@%p8 bra $past_{name};\n{text}$past_{name}:\n"


def wait(name: str, parity: int = 0) -> str:
    return f"$w{name}: mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r91], {parity};\n@!%p7 bra $w{name};\n"


# --- places -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("register", "of_cta"),
    [
        ("cluster_ctarank", lambda x, y: x % 2 + 2 * (y % 2)),
        ("cluster_ctaid.x", lambda x, y: x % 2),
        ("cluster_ctaid.y", lambda x, y: y % 2),
        ("cluster_nctaid.x", lambda x, y: 2),
        ("cluster_nctarank", lambda x, y: 4),
        ("clusterid.x", lambda x, y: x // 2),
        ("clusterid.y", lambda x, y: y // 2),
        ("nclusterid.x", lambda x, y: 2),
    ],
)
def test_special_registers(register: str, of_cta: Any) -> None:
    body = (
        "mov.u32 %r82, %ctaid.y;\nmad.lo.u32 %r81, %r82, 4, %r81;\nmul.wide.u32 %rd40, %r81, 128;\n"
        f"add.s64 %rd40, %rd1, %rd40;\nmov.u32 %r5, %{register};\nst.global.u32 [%rd40], %r5;\n"
    )
    got, result = launched(body, grid=(4, 4, 1), cluster=(2, 2, 1))
    assert got[:, 0].tolist() == [of_cta(x, y) for y in range(4) for x in range(4)]
    assert result.ctas == 16


def test_addresses_carry_the_rank_from_bit_24_on() -> None:
    body = (
        "mapa.shared::cluster.u32 %r5, %r90, 1;\nsub.u32 %r6, %r5, %r90;\nst.global.u32 [%rd41], %r6;\n"
        "getctarank.shared::cluster.u32 %r7, %r5;\nst.global.u32 [%rd41+64], %r7;\n"
    )
    got, _ = launched(body + SYNC, threads=1, grid=(2, 1, 1))
    assert got[:, 0].tolist() == [1 << 24, 0]  # rank 1 - rank 0, and its own
    assert got[:, 16].tolist() == [1, 1]


def test_generic_addresses_of_a_peer() -> None:
    body = (
        "mov.u32 %r5, 7;\nadd.u32 %r5, %r5, %r80;\nst.shared.u32 [%r90], %r5;\n" + SYNC + "cvt.u64.u32 %rd10, %r90;\n"
        "cvta.shared.u64 %rd10, %rd10;\nxor.b32 %r6, %r80, 1;\nmapa.u64 %rd11, %rd10, %r6;\nld.u32 %r7, [%rd11];\n"
        "ld.u32 %r8, [%rd10];\nst.global.u32 [%rd41], %r7;\nst.global.u32 [%rd41+64], %r8;\n" + SYNC
    )
    got, _ = launched(body, threads=1, grid=(2, 1, 1))
    assert got[:, 0].tolist() == [8, 7]
    assert got[:, 16].tolist() == [7, 8]


# --- the barrier and distributed shared memory ------------------------------------------------------------------------

EXCHANGE = (
    "shl.b32 %r2, %r0, 2;\nadd.u32 %r3, %r90, %r2;\nmad.lo.u32 %r4, %r80, 100, %r0;\nst.shared.u32 [%r3], %r4;\n{sync}"
    "xor.b32 %r5, %r80, 1;\nmapa.shared::cluster.u32 %r6, %r3, %r5;\nld.shared::cluster.u32 %r7, [%r6];\n"
    "st.global.u32 [%rd41], %r7;\n"
)


@pytest.mark.parametrize("completion", POLICIES)
def test_peers_see_each_other_s_shared_memory(completion: str) -> None:
    got, _ = launched(EXCHANGE.format(sync=SYNC) + SYNC, completion=completion, jobs=2)
    want = [[100 * (cta % 2 ^ 1) + lane for lane in range(32)] for cta in range(4)]
    assert got.tolist() == want


def test_lanes_may_name_several_ctas() -> None:
    body = (
        "st.shared.u32 [%r90], %r80;\n" + SYNC + "and.b32 %r5, %r0, 3;\nmapa.shared::cluster.u32 %r6, %r90, %r5;\n"
        "ld.shared::cluster.u32 %r7, [%r6];\natom.shared::cluster.add.u32 %r8, [%r6+4], 1;\n"
        "st.global.u32 [%rd41], %r7;\n"
        + SYNC
        + "ld.shared.u32 %r9, [%r90+4];\n"
        + one("o", "st.global.u32 [%rd41], %r9;\n")
    )
    body = "st.shared.u32 [%r90+4], 0;\n" + body
    got, _ = launched(body, cluster=(4, 1, 1))
    assert got[:, 1:].tolist() == [[lane % 4 for lane in range(1, 32)]] * 4
    assert got[:, 0].tolist() == [32] * 4  # 8 lanes of each of 4 CTAs


def test_a_peer_that_has_exited() -> None:
    body = "setp.eq.u32 %p1, %r80, 1;\n@%p1 ret;\n" + EXCHANGE.format(sync="bar.sync 0;\nbar.sync 0;\n")
    with pytest.raises(Fault, match=r"CTA rank 1 is used after that CTA has exited"):
        launched(body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mapa.shared::cluster.u32 %r5, %r90, 2;\nld.shared::cluster.u32 %r6, [%r5];\n", "rank 2 in a cluster of 2"),
        ("mapa.shared::cluster.u32 %r5, %r90, -3;\nld.shared::cluster.u32 %r6, [%r5];\n", "rank 255 in a cluster of"),
        ("mov.u32 %r5, 0x5000400;\nld.shared::cluster.u32 %r6, [%r5];\n", "rank 5 in a cluster of 2"),
        ("barrier.cluster.wait.aligned;\n", "has not arrived"),
        ("barrier.cluster.arrive.aligned;\nbarrier.cluster.arrive.aligned;\n", "did not wait"),
        ("xor.b32 %r5, %r90, 0x1000000;\nld.shared.u32 %r6, [%r5];\n", "outside the CTA's shared memory"),
    ],
)
def test_misuse(body: str, message: str) -> None:
    with pytest.raises(Fault, match=message):
        launched(body + SYNC)


@pytest.mark.parametrize("cluster", [1, 2])
@pytest.mark.parametrize("form", ["shared::cluster.u32 %r5, %r90", "u64 %rd5, %rd6"], ids=["shared", "generic"])
def test_lanes_map_ranks_that_the_cluster_does_not_have_and_do_not_use_them(cluster: int, form: str) -> None:
    # schedulers of clusters map every lane's number, and the lanes below the cluster's size arrive
    access = "ld.shared::cluster.u32 %r6, [%r5]" if "shared" in form else "ld.u32 %r6, [%rd5]"
    body = (
        "st.shared.u32 [%r90], 9;\ncvt.u64.u32 %rd6, %r90;\ncvta.shared.u64 %rd6, %rd6;\n" + SYNC
        + f"mapa.{form}, %r0;\nsetp.ge.u32 %p1, %r0, {{}};\nmov.u32 %r6, 0;\n@%p1 bra $none;\n{access};\n$none:\n"
        + "st.global.u32 [%rd41], %r6;\n" + SYNC
    )  # fmt: skip
    got, _ = launched(body.format(cluster), cluster=(cluster, 1, 1))
    assert (got[:, :cluster] == 9).all() and not got[:, cluster:].any()
    with pytest.raises(Fault, match=f"CTA rank {cluster} in a cluster of {cluster}") as caught:
        launched(body.format(cluster + 1), cluster=(cluster, 1, 1))
    assert caught.value.rule == "CB-07"


@pytest.mark.parametrize("cluster", [1, 2])
def test_an_arrive_at_a_rank_that_the_cluster_does_not_have(cluster: int) -> None:
    body = f"mapa.shared::cluster.u32 %r5, %r91, {cluster};\nmbarrier.arrive.shared::cluster.b64 _, [%r5];\n" + SYNC
    with pytest.raises(Fault, match=f"CTA rank {cluster} in a cluster of {cluster}") as caught:
        launched(body, cluster=(cluster, 1, 1))
    assert caught.value.rule == "CB-07"


def test_the_barrier_waits_for_every_thread_of_the_cluster() -> None:
    apart = (
        "setp.eq.u32 %p1, %r80, 1;\n@%p1 bra $apart;\n" + SYNC + "ret;\n$apart:\nsetp.gt.u32 %p2, %r0, 31;\n@%p2 ret;\n"
    )
    with pytest.raises(Deadlock, match=r"waits at the cluster's barrier for CTA rank 1 warp 0\n") as caught:
        launched(apart + "bar.sync 1, 64;\n", threads=64)
    assert "waits at named barrier 1" in str(caught.value)


def test_the_barrier_does_not_wait_for_threads_that_have_exited() -> None:
    body = "setp.eq.u32 %p1, %r80, 1;\n@%p1 ret;\n" + SYNC + "st.global.u32 [%rd41], 5;\n"
    got, _ = launched(body)
    assert got[:, 0].tolist() == [5, 0, 5, 0]


@pytest.mark.parametrize(
    ("cluster", "directives", "message"),
    [
        ((3, 1, 1), "", "no multiple"),
        ((4, 1, 1), ".reqnctapercluster 2", "reqnctapercluster"),
        ((4, 1, 1), ".maxclusterrank 2", "maxclusterrank"),
    ],
)
def test_launches(cluster: tuple[int, int, int], directives: str, message: str) -> None:
    with pytest.raises(Fault, match=message):
        launched("", cluster=cluster, directives=directives)


# --- mbarriers and copies ---------------------------------------------------------------------------------------------

INIT = one("init", "mbarrier.init.shared::cta.b64 [%r91], {count};\nfence.mbarrier_init.release.cluster;\n") + SYNC


@pytest.mark.parametrize("completion", POLICIES)
def test_remote_arrivals(completion: str) -> None:
    """Every thread arrives at the barrier of the CTA that it picks: 16 of each CTA at each."""
    body = INIT.format(count=32) + (
        "and.b32 %r5, %r0, 1;\nmapa.shared::cluster.u32 %r6, %r91, %r5;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];\n" + wait("a") + "st.global.u32 [%rd41], 3;\n"
    )
    got, _ = launched(body + SYNC, completion=completion)
    assert (got == 3).all()
    with pytest.raises(EmulatorError, match="parity 0"):
        launched(body.replace("], 32;", "], 33;") + SYNC, completion=completion)


def test_waiting_for_a_peer_s_barrier_is_a_fault() -> None:
    body = INIT.format(count=1) + "xor.b32 %r91, %r91, 0x1000000;\n" + wait("a")
    with pytest.raises(Fault):
        launched(body + SYNC)


BULK = (
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r91], 256;\n",
    "setp.ne.u32 %p6, %r80, 0;\n@%p6 bra $not_mine;\nmov.u16 %rs1, {mask};\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
    "[%r90], [%rd2], 256, [%r91], %rs1;\n$not_mine:\n",
)
COPY_OUT = "shl.b32 %r2, %r0, 2;\nadd.u32 %r3, %r90, %r2;\nld.shared.u32 %r4, [%r3];\nst.global.u32 [%rd41], %r4;\n"


@pytest.mark.parametrize("completion", POLICIES)
def test_multicast_fills_and_tells_every_cta(completion: str) -> None:
    data = np.arange(64, dtype=np.uint32) * 5
    body = INIT.format(count=1) + one("expect", BULK[0]) + SYNC + one("load", BULK[1].format(mask=3))
    for seed in range(3):
        got, _ = launched(body + wait("a") + COPY_OUT + SYNC, data, completion=completion, seed=seed)
        assert got.tolist() == [data[:32].tolist()] * 4


def test_multicast_that_misses_a_cta_and_one_that_names_too_many() -> None:
    body = INIT.format(count=1) + one("expect", BULK[0]) + SYNC
    with pytest.raises(Deadlock, match="tx bytes 256"):
        launched(body + one("load", BULK[1].format(mask=1)) + wait("a") + COPY_OUT + SYNC, np.zeros(64, np.uint32))
    with pytest.raises(Fault, match="CTA mask 0x7"):
        launched(body + one("load", BULK[1].format(mask=7)) + wait("a") + COPY_OUT + SYNC, np.zeros(64, np.uint32))


@pytest.mark.parametrize("completion", POLICIES)
def test_copies_and_stores_to_a_peer(completion: str) -> None:
    """Each CTA copies 64 bytes of its own to the other and stores 4 more there asynchronously."""
    body = INIT.format(count=1) + (
        "shl.b32 %r2, %r0, 2;\nadd.u32 %r3, %r90, %r2;\nadd.u32 %r3, %r3, 512;\nmad.lo.u32 %r4, %r80, 100, %r0;\n"
        "st.shared.u32 [%r3], %r4;\nfence.proxy.async;\nxor.b32 %r5, %r80, 1;\n"
        + one("x", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r91], 68;\n")
        + SYNC
        + "mapa.shared::cluster.u32 %r6, %r90, %r5;\nmapa.shared::cluster.u32 %r7, %r91, %r5;\n"
        + one(
            "y",
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r6], [%r3], 64, [%r7];\n"
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r6+64], %r80, [%r7];\n",
        )
        + wait("a")
        + COPY_OUT
    )
    got, _ = launched(body + SYNC, completion=completion)
    for cta in range(4):
        other = cta % 2 ^ 1
        assert got[cta, :17].tolist() == [*(100 * other + i for i in range(16)), other]


# --- clusterlaunchcontrol ---------------------------------------------------------------------------------------------

CLC = (
    INIT.format(count=1) + "mov.u32 %r10, %clusterid.x;\nmov.u32 %r11, 0;\n"
    "$tile:\n"
    # The tile of this CTA: counted once by whoever computes it.
    "shl.b32 %r12, %r10, 1;\nadd.u32 %r12, %r12, %r80;\nmul.wide.u32 %rd20, %r12, 128;\nadd.s64 %rd20, %rd1, %rd20;\n"
    + one("count", "atom.global.add.u32 %r13, [%rd20], 1;\n")
    + one("ask", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r91], 16;\n")
    + SYNC
    + "setp.ne.u32 %p6, %r80, 0;\n@%p6 bra $asked;\n"
    + one(
        "try",
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 "
        "[%r90], [%r91];\n",
    )
    + "$asked:\n$wt: mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r91], %r11;\n@!%p7 bra $wt;\n"
    "xor.b32 %r11, %r11, 1;\nld.shared.b128 %rq1, [%r90];\n"
    "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p5, %rq1;\n@!%p5 bra $end;\n"
    "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r14, _, _, _}, %rq1;\n"
    "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r15, %rq1;\n"
    "setp.ne.u32 %p4, %r14, %r15;\n@%p4 trap;\nshr.u32 %r10, %r14, 1;\nbra $tile;\n$end:\n"
)


@pytest.mark.parametrize("completion", POLICIES)
@pytest.mark.parametrize("jobs", [1, 2])
def test_every_tile_is_computed_once_whoever_takes_it(completion: str, jobs: int) -> None:
    body = ".reg .b128 %rq<4>;\n" + CLC.replace("atom.global.add.u32 %r13, [%rd20], 1;", COUNT)
    got, _ = launched(body, grid=(16, 1, 1), completion=completion, jobs=jobs)
    assert got[:, 0].tolist() == [1] * 16


COUNT = "ld.global.u32 %r13, [%rd20];\nadd.u32 %r13, %r13, 1;\nst.global.u32 [%rd20], %r13;"


FIRST = "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r15, %rq1;\n"


def test_the_first_cta_of_a_refused_request_is_undefined() -> None:
    """The loop that never asks whether it was given a cluster ends with the one that is left for nobody."""
    asks = "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p5, %rq1;\n@!%p5 bra $end;\n"
    with pytest.raises(Fault, match="failed") as caught:
        launched(".reg .b128 %rq<4>;\n" + CLC.replace(asks, ""))
    assert caught.value.rule == "CL-03"


def test_what_no_request_was_answered_with_is_undefined() -> None:
    body = ".reg .b128 %rq<4>;\n.reg .b64 %z;\nmov.b64 %z, 0;\nmov.b128 %rq1, {%z, %z};\n"
    with pytest.raises(Fault, match="no response of a try_cancel") as caught:
        launched(body + FIRST)
    assert caught.value.rule == "CL-02"


# --- as an H200 does --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("completion", POLICIES)
def test_red_async(completion: str) -> None:
    """Each CTA's word gets the peer's sum, and its mbarrier the bytes."""
    form = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes"
    body = (
        one(
            "init",
            "mbarrier.init.shared::cta.b64 [%r91], 1;\nst.shared.u32 [%r90], 5;\nst.shared.u32 [%r90+4], 12;\n"
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r91], 12;\n",
        )
        + SYNC
        + "xor.b32 %r1, %r80, 1;\nmapa.shared::cluster.u32 %r2, %r90, %r1;\nmapa.shared::cluster.u32 %r3, %r91, %r1;\n"
        + one(
            "red",
            f"{form}.add.u32 [%r2], %r80, [%r3];\n{form}.add.u32 [%r2], 100, [%r3];\n"
            f"{form}.and.b32 [%r2+4], 9, [%r3];\n",
        )
        + wait("a")
        + "ld.shared.u32 %r5, [%r90];\nld.shared.u32 %r6, [%r90+4];\nshl.b32 %r6, %r6, 16;\nor.b32 %r5, %r5, %r6;\n"
        + "st.global.u32 [%rd41], %r5;\n"
        + SYNC
    )
    out, _ = launched(body, completion=completion)
    assert out[:, 3].tolist() == [106 | 8 << 16, 105 | 8 << 16] * 2


@pytest.mark.parametrize("completion", POLICIES)
def test_bulk_reduction_into_a_peer(completion: str) -> None:
    """Both CTAs add 16 bytes to the peer's, element by element, with carries."""
    form = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
    body = (
        one(
            "init",
            "mbarrier.init.shared::cta.b64 [%r91], 1;\nmov.u32 %r5, 0xffff;\nadd.u32 %r6, %r80, 1;\n"
            "st.shared.v4.u32 [%r90], {%r5, %r5, %r6, %r6};\nst.shared.v4.u32 [%r90+16], {%r6, %r5, %r5, %r5};\n"
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r91], 16;\nfence.proxy.async;\n",
        )
        + SYNC
        + "xor.b32 %r1, %r80, 1;\nmapa.shared::cluster.u32 %r2, %r90, %r1;\nmapa.shared::cluster.u32 %r3, %r91, %r1;\n"
        + "add.u32 %r4, %r90, 16;\n"
        + one("red", f"{form}.add.u32 [%r2], [%r4], 16, [%r3];\n")
        + wait("a")
        + "ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r90];\nxor.b32 %r5, %r5, %r6;\nxor.b32 %r5, %r5, %r7;\n"
        + "st.global.u32 [%rd41], %r5;\n"
        + SYNC
    )
    out, _ = launched(body, completion=completion)

    def sums(rank: int) -> int:
        other = 1 - rank
        return (0xFFFF + other + 1) ^ (2 * 0xFFFF) ^ (rank + 1 + 0xFFFF)

    assert out[:, 3].tolist() == [sums(0), sums(1)] * 2


def test_a_multicast_to_nobody_copies_nothing() -> None:
    copy = (
        "mov.b16 %rs1, 0;\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%r90], [%rd2], 16, [%r91], %rs1;\n"
    )
    body = (
        one("a", "mbarrier.init.shared::cta.b64 [%r91], 1;\nst.shared.u32 [%r90], 7;\n" + copy)
        + SYNC
        + "ld.shared.u32 %r5, [%r90];\nst.global.u32 [%rd41], %r5;\n"
        + SYNC
    )
    out, _ = launched(body, np.arange(4, dtype=np.uint32))
    assert (out == 7).all()


def test_a_copy_within_the_cluster_needs_one() -> None:
    copy = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r90], [%r90+64], 16, [%r91];\n"
    body = one("a", "mbarrier.init.shared::cta.b64 [%r91], 1;\n" + copy)
    with pytest.raises(Fault, match="without clusters"):
        launched(body, cluster=(1, 1, 1))
