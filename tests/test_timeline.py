# SPDX-License-Identifier: Apache-2.0
"""`tmagen timeline`: what the pictures of step 4 and step 5 show, that they read well, and that docs/ has them."""

from __future__ import annotations

import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as Tree

import pytest

from tests.emu.test_deadlock import KERNEL
from tmagen.cli import main
from tmagen.emu import Deadlock, GlobalMemory, Launch, Trace, parse, run
from tmagen.errors import SpecError
from tmagen.timeline import drawing as shapes
from tmagen.timeline import png, svg, timeline
from tmagen.timeline.drawing import Box, Drawing, Line, Text, draw, width_of
from tmagen.timeline.picture import picture
from tools.regen import pinned_nvcc
from tools.timeline_docs import PICTURES, Picture

pytestmark = pytest.mark.usefixtures("kept_builds")

STEP4, STEP5 = PICTURES
Capture = pytest.CaptureFixture[str]


@cache
def drawn(one: Picture) -> Drawing:
    """Compiled and run once."""
    return one.drawing()


def rows(drawing: Drawing) -> dict[str, float]:
    """The rows' labels, from the top, with their places."""
    return {s.text: s.y for s in drawing.shapes if isinstance(s, Text) and s.anchor == "end" and s.text != "cycles"}


def bars(drawing: Drawing, label: str, kind: str) -> list[tuple[float, float]]:
    """(left, right) of the bars of a kind in a row."""
    y = rows(drawing)[label] - 14
    fill = shapes.FILLS[kind]
    found = [s for s in drawing.shapes if isinstance(s, Box) and abs(s.y - y) < 6 and s.fill == fill and s.edge]
    return [(s.x, s.x + s.width) for s in found]


@pytest.mark.parametrize("one", PICTURES, ids=["step4", "step5"])
def test_docs_are_up_to_date(one: Picture) -> None:
    assert one.path.read_text() == svg(drawn(one)), "run `make regen`"


@pytest.mark.parametrize("one", PICTURES, ids=["step4", "step5"])
def test_it_reads_well(one: Picture) -> None:
    """Texts are inside and do not overlap; every row has its label; the SVG is well-formed."""
    drawing = drawn(one)
    texts = [s for s in drawing.shapes if isinstance(s, Text)]
    spans = []
    for text in texts:
        wide = width_of(text.text, text.size)
        left = text.x - {"start": 0.0, "middle": wide / 2, "end": wide}[text.anchor]
        assert left >= 0 and left + wide <= drawing.width and 0 < text.y < drawing.height, text
        spans.append((text.y, left, left + wide, text.text))
    for (y1, _, right, a), (y2, left, _, b) in pairwise(sorted(spans)):
        assert y1 != y2 or right <= left, f"{a!r} and {b!r} overlap"
    assert drawing.width == 900
    root = Tree.fromstring(svg(drawing))
    assert root.tag.endswith("svg") and root.find("{http://www.w3.org/2000/svg}title").text == one.title  # type: ignore[union-attr]


def test_step4_does_nothing_at_the_same_time() -> None:
    """TMA, then MMA, then TMA: the chapter's picture."""
    drawing = drawn(STEP4)
    assert list(rows(drawing)) == [
        "warp 0, lane 0", "TMA loads, stage 0", "mbarrier, stage 0 full", "tensor core", "mbarrier, MMAs done",
        "warp 0, lanes 1-31", "warps 1-3",
    ]  # fmt: skip
    loads, mmas = bars(drawing, "TMA loads, stage 0", "load"), bars(drawing, "tensor core", "mma")
    assert len(loads) == len(mmas) == 2
    turns = sorted(loads + mmas)
    assert turns == [loads[0], mmas[0], loads[1], mmas[1]]
    assert all(before[1] < after[0] for before, after in pairwise(turns))
    waits = bars(drawing, "warp 0, lane 0", "wait")
    for end in (end for _, end in loads + mmas):
        assert any(left < end < right for left, right in waits), "the thread waits for each of them"


def test_step5_loads_under_mmas_and_still_waits_for_each() -> None:
    drawing = drawn(STEP5)
    loads = bars(drawing, "TMA loads, stage 0", "load") + bars(drawing, "TMA loads, stage 1", "load")
    mmas = bars(drawing, "tensor core", "mma")
    assert len(mmas) == 4
    assert any(left < mma[0] and mma[1] < right for mma in mmas for left, right in loads), "a load under an MMA"
    waits = bars(drawing, "warp 0, lane 0", "wait")
    for _, end in mmas:
        assert any(left < end < right for left, right in waits), "the thread waits for the MMAs of each K tile"
    assert all(before[1] < after[0] for before, after in pairwise(mmas)), "and the tensor core for the thread"


@pytest.mark.parametrize("one", PICTURES, ids=["step4", "step5"])
def test_arrows_follow_the_protocol(one: Picture) -> None:
    """Issues go down from the thread, completions to an mbarrier, releases up to who waits."""
    drawing = drawn(one)
    places = rows(drawing)
    kinds = {colour: kind for kind, colour in shapes.ARROWS.items()}

    def row(y: float) -> str:
        return min(places, key=lambda label: abs(places[label] - 4 - y))

    legend = max(places.values()) + 40
    edges = {
        (kinds[s.colour], row(s.y1), row(s.y2))
        for s in drawing.shapes
        if isinstance(s, Line) and s.head and s.y1 < legend
    }
    thread = "warp 0, lane 0"
    stages = 1 if one is STEP4 else 2
    for stage in range(stages):
        loads, full = f"TMA loads, stage {stage}", f"mbarrier, stage {stage} full"
        assert {("issue", thread, loads), ("tells", loads, full), ("releases", full, thread)} <= edges
    done = "mbarrier, MMAs done"
    assert {("issue", thread, "tensor core"), ("tells", "tensor core", done), ("releases", done, thread)} <= edges


def test_a_run_that_breaks_off() -> None:
    trace = Trace()
    launch = Launch("k", (1, 1, 1), (64, 1, 1), dynamic_smem_bytes=64)
    with pytest.raises(Deadlock):
        run(parse(KERNEL), launch, GlobalMemory(), completion="timed", trace=trace)
    (record,) = trace.records
    found = picture(record, record.ctas[0], "title", "note")
    assert [lane.label for lane in found.lanes] == ["warp 0", "warp 1", "mbarrier 0x408"]
    assert all(lane.bars[-1].kind == "wait" and lane.bars[-1].end == record.end for lane in found.lanes[:2])
    assert svg(draw(found)) == svg(draw(found))
    with pytest.raises(SpecError, match="nothing between cycles 90,000 and 90,001"):
        picture(record, record.ctas[0], "title", "note", cycles=(90_000, 99_000))


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, capsys: Capture) -> None:
    nvcc = str(pinned_nvcc().path)
    target = tmp_path / "t.svg"
    assert (
        main(["timeline", "--preset", "step4", "--title", STEP4.title, "--k", "0-1", "-o", str(target), "--nvcc", nvcc])
        == 0
    )
    assert target.read_text() == svg(drawn(STEP4))
    out = capsys.readouterr().out
    assert "passed" in out and f"drawn: {target}" in out


# Warps meet at a barrier, and each thread stores.
ANYONES = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry stores(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    bar.sync 0;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
    ret;
}
"""
LAUNCH = """
grid = 2
block = 64
params = [{ pointer = "out" }]
[buffers.out]
dtype = "u32"
shape = [64]
"""


@pytest.fixture
def anyones(tmp_path: Path) -> list[str]:
    kernel, launch = tmp_path / "stores.ptx", tmp_path / "launch.toml"
    kernel.write_text(ANYONES)
    launch.write_text(LAUNCH)
    return [str(kernel), "--launch", str(launch)]


def test_a_kernel_with_a_launch_file(anyones: list[str], tmp_path: Path, capsys: Capture) -> None:
    """Both CTAs write the same: a race, which is said; what they do is drawn all the same."""
    target = tmp_path / "t.svg"
    assert main(["timeline", *anyones, "--cta", "1", "-o", str(target)]) == 1
    told = capsys.readouterr().out
    assert "WAW" in told and told.endswith(f"drawn: {target}\n")
    texts = {element.text for element in Tree.fromstring(target.read_text()).iter()}
    assert {"stores.ptx: CTA (1, 0, 0)", "warp 1", "waits: bar.sync"} <= texts


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--cta", "2"], "there is no CTA 2: the grid has 2"),
        (["--shape", "1,1,1"], "--shape is for kernels of tmagen"),
        (["--preset", "step4"], "--preset is for kernels of tmagen"),
        (["--host"], "--launch and --host ask for different things"),
        (["--target", "b200"], "it takes an architecture such as"),
        (["--cycles", "90000-99000"], "nothing between cycles"),
    ],
)
def test_what_cannot_be_drawn_of_a_launch(
    flags: list[str], message: str, anyones: list[str], tmp_path: Path, capsys: Capture
) -> None:
    assert main(["timeline", *anyones, *flags, "-o", str(tmp_path / "t.svg")]) == 2
    assert message in capsys.readouterr().err


def test_a_host_program(tmp_path: Path, capsys: Capture) -> None:
    program = Path(__file__).parent / "check" / "program.cu"
    target = tmp_path / "t.svg"
    assert main(["timeline", str(program), "--host", "-o", str(target)]) == 0
    assert "program.cu: CTA (0, 0, 0)" in target.read_text()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["a.cu", "b.cu", "-o", "t.svg"], "several FILEs are for --host"),
        (["--host", "-o", "t.svg"], "which kernel? FILE is missing"),
        (["--nvcc-flag=-O3", "-o", "t.svg"], "--nvcc-flag is for --launch and --host"),
        ([], "-o is missing: where to draw"),
        (["-o", "t.pdf"], "-o 't.pdf' ends in neither .svg nor .png"),
        (["-o", "none/t.svg"], "there is no directory"),
        (["-o", "t.svg", "--k", "3-1"], "its first number is the smaller one"),
        (["-o", "t.svg", "--k", "x"], "it takes a range such as 0-3"),
        (["-o", "t.svg", "--k", "0-3", "--cycles", "0-9"], "both choose the window"),
        (["-o", "t.svg", "--cta", "-1"], "it takes 0 to"),
        (["-o", "t.svg", "--kernel", "x"], "chooses one of a FILE"),
        (["-o", "t.svg", "no.cu"], "cannot read 'no.cu'"),
    ],
)
def test_wrong_flags(
    flags: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["timeline", *flags]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_window_that_does_not_exist() -> None:
    with pytest.raises(SpecError, match="no K tile from 90 to 99: the CTA loads 8, numbered from 0"):
        Picture("step4", "t", STEP4.shape, (90, 99)).drawing()


def test_a_cta_that_does_not_exist() -> None:
    from tmagen.presets import PRESETS

    with pytest.raises(SpecError, match="there is no CTA 7: the grid has 1, counted from 0"):
        timeline(PRESETS["step4"].spec, STEP4.shape, cta=7, nvcc=str(pinned_nvcc().path))


def test_a_png_without_matplotlib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Capture) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(SpecError, match="a PNG needs matplotlib"):
        png(Drawing(10, 10, "t", ()))
    assert main(["timeline", "--preset", "step4", "-o", str(tmp_path / "t.png")]) == 2
    assert "pip install matplotlib" in capsys.readouterr().err


def test_a_png_with_matplotlib() -> None:
    pytest.importorskip("matplotlib")
    assert png(drawn(STEP4)).startswith(b"\x89PNG")
