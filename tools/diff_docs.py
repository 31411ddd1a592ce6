# SPDX-License-Identifier: Apache-2.0
"""Writes `docs/diff-step4.md` and its like: the presets of the ladder against TIRx, as `tmagen diff` reports them.

    python -m tools.diff_docs            rewrite what differs
    python -m tools.diff_docs --check    say what differs, and exit with 1 if anything does

The figures are those of the pinned nvcc of the `toolchain` extra, without times: the pages are the same everywhere.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tmagen.diff import Comparison, Request, diff_spec, render
from tmagen.presets import PRESETS
from tools.regen import pinned_nvcc

DOCS = Path(__file__).resolve().parent.parent / "docs"
STEPS = ("step4", "step5", "step6")


def comparison_of(step: str) -> Comparison:
    """A preset against TIRx, by the pinned nvcc."""
    return diff_spec(PRESETS[step].spec, request=Request(nvcc=str(pinned_nvcc().path)))


def page(step: str, comparison: Comparison) -> str:
    """The text of a page."""
    head, _, rest = render(comparison, "markdown", times=False).partition("\n\n")
    note = f"Written by `python -m tools.diff_docs`; `tmagen diff --preset {step}` prints the same, with times."
    return f"{head}: {step}\n\n{note}\n\n{rest}"


def path_of(step: str) -> Path:
    """Where it lies."""
    return DOCS / f"diff-{step}.md"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if anything differs")
    arguments = parser.parse_args()
    pages = {path_of(step): page(step, comparison_of(step)) for step in STEPS}
    changed = {path: text for path, text in pages.items() if not path.is_file() or path.read_text() != text}
    for path, text in changed.items():
        if not arguments.check:
            path.write_text(text)
        print(f"{'differs' if arguments.check else 'wrote'}: {path.relative_to(DOCS.parent)}")
    return 1 if arguments.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
