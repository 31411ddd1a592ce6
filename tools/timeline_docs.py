# SPDX-License-Identifier: Apache-2.0
"""Writes the pictures in `docs/`: how the kernels of step 4 and step 5 spend their time.

    python -m tools.timeline_docs            rewrite what differs
    python -m tools.timeline_docs --check    say what differs, and exit with 1 if anything does

They are those of the pinned nvcc of the `toolchain` extra, and the same everywhere.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from tmagen.ir import Shape
from tmagen.presets import PRESETS
from tmagen.timeline import Drawing, svg, timeline
from tools.regen import pinned_nvcc

DOCS = Path(__file__).resolve().parent.parent / "docs"


@dataclass(frozen=True, slots=True)
class Picture:
    """One of them."""

    preset: str
    title: str
    shape: Shape
    k: tuple[int, int]

    @property
    def path(self) -> Path:
        """Where it lies."""
        return DOCS / f"timeline-{self.preset}.svg"

    def drawing(self) -> Drawing:
        """The drawing, by the pinned nvcc."""
        nvcc = str(pinned_nvcc().path)
        return timeline(PRESETS[self.preset].spec, self.shape, k=self.k, title=self.title, nvcc=nvcc).drawing


PICTURES = (
    Picture("step4", "Step 4: one stage; load, wait, MMA, wait", Shape(128, 128, 512), (0, 1)),
    Picture("step5", "Step 5: a ring of two stages, filled ahead", Shape(128, 128, 512), (0, 3)),
)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if anything differs")
    arguments = parser.parse_args()
    texts = {picture.path: svg(picture.drawing()) for picture in PICTURES}
    changed = {path: text for path, text in texts.items() if not path.is_file() or path.read_text() != text}
    for path, text in changed.items():
        if not arguments.check:
            path.write_text(text)
        print(f"{'differs' if arguments.check else 'wrote'}: {path.relative_to(DOCS.parent)}")
    return 1 if arguments.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
