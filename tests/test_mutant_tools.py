# SPDX-License-Identifier: Apache-2.0
"""The tools that break kernels: edits, changes of single instructions, the campaign's verdicts, the page."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tmagen.toolchain import find_nvcc
from tools import mutant_docs
from tools.mutants import campaign, survivors
from tools.mutants.bases import BASES, EMITTED, HAND
from tools.mutants.sites import Change, changes
from tools.mutants.survivor import earlier, either, later, out
from tools.mutants.survivors_ours import EVERYWHERE

HEAD = ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n  .reg .pred %p;\n  .reg .b32 %r<9>;\n"
TEXT = (
    HEAD
    + """  st.shared.u32 [%r1], %r2;
  bar.sync 0;
  ld.shared.u32 %r3, [%r1];
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p, [%r4], %r5;
  @!%p bra wait;
  // begin inline asm
  {
  .reg .pred q;
  elect.sync _|q, 0xffffffff;
  selp.b32 %r6, 1, 0, q;
  }
  // end inline asm
  add.u32 %r7, %r6, 1;
  fence.proxy.async.shared::cta;
  tcgen05.fence::before_thread_sync;
  st.global.u32 [%rd1],
    %r7;
  ret;
}
"""
)


def found() -> dict[str, str]:
    return {change.title: change.text for change in changes(TEXT)}


def test_every_synchronisation_instruction_is_changed_where_registers_allow() -> None:
    assert list(found()) == [
        "leave out: bar.sync #0",
        "later: bar.sync #0 than ld.shared.u32",
        "earlier: bar.sync #0 than st.shared.u32",
        "leave out: mbarrier.try_wait.parity.shared::cta.b64 #0",
        "leave out: branch of a wait #0",
        "leave out: elect.sync #0",
        "leave out: fence.proxy.async.shared::cta #0",
        "later: fence.proxy.async.shared::cta #0 than st.global.u32",
        "earlier: fence.proxy.async.shared::cta #0 than elect.sync",
        "leave out: tcgen05.fence::before_thread_sync #0",
    ]


def test_what_a_change_does() -> None:
    texts = found()
    assert "bar.sync" not in texts["leave out: bar.sync #0"]
    later = texts["later: bar.sync #0 than ld.shared.u32"]
    assert later.index("ld.shared") < later.index("bar.sync") < later.index("wait:")
    assert "setp.eq.u32 %p, 0, 0;" in texts["leave out: mbarrier.try_wait.parity.shared::cta.b64 #0"]
    assert "setp.eq.u32 q, 0, 0;" in texts["leave out: elect.sync #0"]
    moved = texts["later: fence.proxy.async.shared::cta #0 than st.global.u32"]
    assert moved.index("    %r7;") < moved.index("fence.proxy") < moved.index("ret;")
    before = texts["earlier: fence.proxy.async.shared::cta #0 than elect.sync"]
    assert before.index("bra wait") < before.index("fence.proxy") < before.index("begin inline asm")


def test_registers_tie_instructions_together() -> None:
    text = HEAD + "  mapa.u32 %r1, %r2, 0;\n  mbarrier.arrive.b64 _, [%r1];\n  ld.shared.u32 %r2, [%r3];\n  ret;\n}\n"
    titles = [change.title for change in changes(text)]
    assert titles == ["leave out: mbarrier.arrive.b64 #0", "later: mbarrier.arrive.b64 #0 than ld.shared.u32"]


def test_seeds_take_distinct_changes() -> None:
    base = HAND[0]
    every = [change.title for change in changes(base.ptx)]
    assert [change.title for change in campaign.chosen(base, 10_000)] == every
    some = [change.title for change in campaign.chosen(base, 12)]
    assert len(set(some)) == 12 and set(some) < set(every)


@pytest.mark.parametrize(
    ("title", "verdict"),
    [
        ("leave out: bar.sync #2", "rule"),
        ("leave out: tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 #0", "result"),
        ("leave out: cp.async.bulk.wait_group #0", "formal"),
        ("leave out: tcgen05.fence::before_thread_sync #0", "explained"),
    ],
)
def test_verdicts(title: str, verdict: str) -> None:
    base = BASES["roles"]
    (change,) = [each for each in changes(base.ptx) if each.title == title]
    assert campaign.judge(base, change).verdict == verdict


def test_a_formal_finding_counts_where_the_same_rule_is_usual_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    base = BASES["roles"]
    (change,) = [each for each in changes(base.ptx) if each.title == "leave out: cp.async.bulk.wait_group #0"]
    told = base.run(change.text).places
    assert {rule for rule, _ in told} == {"BG-07"}
    monkeypatch.setattr(campaign, "_usual", lambda _: {("BG-07", "another opcode")})
    assert campaign.judge(base, change).verdict == "formal"
    monkeypatch.setattr(campaign, "_usual", lambda _: told)
    assert campaign.judge(base, change).verdict == "UNEXPLAINED"


def test_a_survivor_that_nobody_explains_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    base = BASES["roles"]
    silent = Change("leave out", "nothing", 0, "", "nothing;", base.ptx)
    monkeypatch.setattr(campaign, "chosen", lambda *_: [silent])
    assert campaign.campaign(1, 1, "roles", every=False) == 1
    assert "UNEXPLAINED roles" in capsys.readouterr().out
    assert survivors.reason("roles", silent) is None


def test_an_explanation_of_what_is_caught_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    caught = Change("leave out", "bar.sync", 2, "", "bar.sync 1;", "no kernel")
    monkeypatch.setattr(campaign, "chosen", lambda *_: [caught])
    monkeypatch.setattr(campaign, "judge", lambda base, change: campaign.Trial(base.name, change, "rule", "RC-01"))
    assert campaign.campaign(1, 1, "roles", every=False) == 0
    monkeypatch.setattr(campaign, "reason", lambda *_: "it is so")
    assert campaign.campaign(1, 1, "roles", every=False) == 1
    assert "wrongly explained" in capsys.readouterr().out


PRESENT = [base for base in (*HAND, *EMITTED) if not base.missing()]


@pytest.mark.parametrize("base", PRESENT, ids=lambda base: base.name)
def test_every_explanation_is_of_changes_that_there_are(base) -> None:
    titles = [change.title for change in changes(base.ptx)]
    for each in survivors.SURVIVORS:
        if each in EVERYWHERE:
            continue
        for bases, pattern in each.sites:
            if re.fullmatch(bases, base.name):
                assert any(re.fullmatch(pattern, title) for title in titles), each


def test_explanations_name_sites_by_number_where_they_are_about_a_place() -> None:
    for each in survivors.SURVIVORS:
        if each not in EVERYWHERE:
            assert not any("d+" in pattern for _, pattern in each.sites), each
            assert not any(re.fullmatch(bases, "no kernel") for bases, _ in each.sites), each
    assert {each.kernels for each in EVERYWHERE} == {"all"}


def test_how_sites_are_named() -> None:
    two = out("bar.sync", 1, 12)
    assert re.fullmatch(two, "leave out: bar.sync #12") and re.fullmatch(two, "leave out: bar.sync #1")
    assert not re.fullmatch(two, "leave out: bar.sync #2") and not re.fullmatch(two, "leave out: bar.warp.sync #1")
    assert re.fullmatch(out("bar.sync"), "leave out: bar.sync #31")
    assert re.fullmatch(later("fence.proxy", "bar.sync", 0), "later: fence.proxy.async.shared::cta #0 than bar.sync")
    exact = out("cp.async.bulk.wait_group$", 0)
    assert re.fullmatch(exact, "leave out: cp.async.bulk.wait_group #0")
    assert not re.fullmatch(exact, "leave out: cp.async.bulk.wait_group.read #0")
    assert re.fullmatch(either(exact, earlier("a", "b", 3)), "earlier: a.c #3 than b")


@pytest.mark.parametrize("base", HAND, ids=lambda base: base.name)
def test_ptxas_accepts_the_hand_written_kernels(base, tmp_path: Path) -> None:
    arch = "sm_100a" if "sm_100a" in base.ptx else "sm_90a"
    command = [str(find_nvcc(None, arch=arch).path), "-cubin", f"-arch={arch}", str(base.file), "-o"]
    command.append(str(tmp_path / "out"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_is_current() -> None:
    assert mutant_docs.DOCUMENT.read_text() == mutant_docs.text(), "run `make regen`"
