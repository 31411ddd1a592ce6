# SPDX-License-Identifier: Apache-2.0
"""Writes `docs/emulator.md`: how the emulator runs a kernel, and every instruction in its registry.

python -m tools.emulator_docs
"""

from __future__ import annotations

import importlib
from itertools import groupby
from pathlib import Path

from tmagen.emu.isa import families, registry

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "emulator.md"

HEAD = """# The emulator

`tmagen/emu/` parses the PTX that nvcc writes and runs it: every instruction of every CTA. It imports nothing of the
generator. This page is written by `make regen` from the emulator's own registry; a test holds it to that.

## What it models

- **Warps** of 32 lanes with divergence: lanes that part run on their own and meet again at the lowest program
  counter. A value that is the same in all lanes is one number.
- **Shared memory** of a CTA, from address 1,024 on as on sm_90 and later, and **TMEM** of 128 lanes by 512 columns.
  Both start as NaN patterns, so that what nobody wrote shows in the result.
- **mbarriers** by phase, pending arrivals and tx bytes (which may be negative for a while). Arriving too often, using
  what was never initialised and leaving with bytes outstanding are faults.
- **TMA** with tensor maps of rank 1 to 5: swizzles, element strides, zero or NaN fill, full tx bytes for boxes that
  reach past the edge. A copy starts with a 16-byte chunk of a row, and a store or reduction writes
  whole chunks, as an H200 does: what lies behind a row that ends inside a chunk is overwritten.
- **MMA** from the bits of its descriptors, both checked field by field. Products are summed in float32. With
  `run(..., hardware_sums=True)` those of wgmma and mma.sync are summed as an H200 does, to the last bit; that is slow.
- **Clusters**: their CTAs run together. Addresses of the shared window carry the CTA's rank from bit 24 on, as the
  hardware's do, also a CTA's own. Remote mbarriers and memory, `mapa`, multicast, the cluster's barrier and MMAs of
  CTA pairs reach a peer as long as it lives; a CTA that has exited is a fault. `clusterlaunchcontrol` hands out
  clusters that have not been launched: `lazy` always refuses, `newest-first` every other time, `random` at random.
- **Tensor maps** of parameters, and those that a kernel makes with `tensormap.replace`, in the emulator's own layout.
- **Asynchronous completion** by policy: `eager` (at once), `lazy` (as late as the waits allow, first in first out),
  `newest-first` (TMA newest first, after tensor work) and `random` (seeded). Data move when an operation completes.
  `timed` gives each operation the cycles of a model: [trace.md](trace.md), with how to look at a run.
- **What else is left open** goes with the policy: TMEM of a CTA starts at column 0 with `eager`, and where another
  CTA of the SM would leave room with the others. `elect.sync` takes the lowest lane, as CUTLASS asserts; `verify` has
  `newest-first` take the highest and `random` another one, the same throughout a run.

## What it says

| outcome | exit code of `verify` | meaning |
|---|---|---|
| deadlock | 1 | no warp can run: who waits where, on which barrier and phase, with what still owed |
| never ends | 1 | a CTA that can run for ever: its state comes back, or it took far too many turns; who loops where |
| fault | 1 | an address, barrier, descriptor or allocation that the PTX ISA forbids, at its PTX and source line |
| wrong values | 1 | which elements of D differ, and the pattern |
| not judged | 2 | an instruction or a form of one that is not known: never skipped |

## What it does not model

Time, but for the model of `timed` completion ([trace.md](trace.md)); caches and the order of memory between CTAs;
sparse MMAs, and masks of lanes with CTA pairs; im2col and gather modes of TMA, interleaved and packed element types.
Clusters run one after another, except that a launch may be split over processes, so CTAs of different clusters cannot
wait for each other. Values of 128 bits have to be the same in all lanes. An execution is one of those that the
policies choose: a value that is right in all of them can still depend on an order that no fence guarantees.

## Instructions

Each row is an opcode, or the leading parts of one; a qualifier that the row's function does not know is not judged.
"""


def cell(summary: str) -> str:
    """A summary that does not end its table cell."""
    return summary.replace("|", "\\|") or "-"


def text() -> str:
    """The page."""
    lines = [HEAD]
    for family, specs in groupby(registry.known(), key=lambda spec: spec.family):
        module = importlib.import_module(f"{families.__package__}.{family}")
        title = " ".join((module.__doc__ or family).strip().split("\n\n")[0].split())
        lines += [f"### {family}", "", title, "", "| opcode | what it does |", "|---|---|"]
        lines += [f"| `{spec.opcode}` | {cell(spec.summary)} |" for spec in specs]
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """The command."""
    DOCUMENT.write_text(text())
    print(f"wrote docs/{DOCUMENT.name}")


if __name__ == "__main__":
    main()
