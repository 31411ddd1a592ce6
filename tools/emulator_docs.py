# SPDX-License-Identifier: Apache-2.0
"""Writes `docs/emulator.md`: how the emulator runs a kernel, and every instruction in its registry.

python -m tools.emulator_docs
"""

from __future__ import annotations

import importlib
from itertools import groupby
from pathlib import Path

from tmagen.emu.isa import families, registry
from tmagen.emu.policy import POLICIES, SEEDS, Seeds
from tools.mutants.policies import CASES
from tools.peers.cases import TRITON
from tools.peers.programs import PROGRAMS

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
  clusters that have not been launched.
- **Tensor maps** of parameters, and those that a kernel makes with `tensormap.replace`, in the emulator's own layout.
- **What PTX leaves open** by an execution policy: see below. Data move when an operation completes.
  `timed` gives each operation the cycles of a model: [trace.md](trace.md), with how to look at a run.

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
sparse MMAs, those of `.ws`, and masks of lanes with CTA pairs; `tcgen05.shift`, and `tcgen05.cp` that unpacks; calls
by the address of a function; im2col and gather modes of TMA, interleaved element types, and
packed ones that are spread (16U4_ALIGN16B, 16U6_ALIGN16B).
Clusters run one after another, except that a launch may be split over processes, so CTAs of different clusters cannot
wait for each other. Values of 128 bits have to be the same in all lanes. An execution is one of those that the
policies choose: a value that is right in all of them can still depend on an order that no fence guarantees.

{policies}
## Other compilers' kernels

`make peers` runs what it did not write, under every usual policy and with all checks: the text that TVM makes of
steps 4 to 6; {products} matrix products that Triton compiles for sm_100 and sm_90 (tensor maps from the host and
from the device, warp specialization, CTA pairs, f16, bf16, tf32, fp8, operands transposed or from registers), bit by
bit; {programs} other programs of Triton's (softmax, attention, layer norm, sorting, scans, histograms, locks,
sums by the CTA that comes last, split K, block-scaled and integer products); and a product in Gluon, with roles, CTA
pairs, multicast and clusterlaunchcontrol on clusters of 1 x 1 to 2 x 2 and 4 x 1. `make peers PEERS_ARGS=--cutlass`
adds CUTLASS's, launched by their own host code: a cluster of 2 x 2 with CTA pairs, multicast and clusterlaunchcontrol,
and two for sm_90a.

## Instructions

Each row is an opcode, or the leading parts of one; a qualifier that the row's function does not know is not judged.
"""


POLICIES_HEAD = """## Execution policies

PTX leaves open when a copy or an MMA completes, which warp runs, whether a look at an mbarrier that is complete
already says so, which lane is elected, where tensor memory begins (if by shared memory and threads an SM has room for
two CTAs of the launch), and what memory holds that nobody has written. A
policy is one choice of all that, and a correct kernel is right under each. `--completion NAME` takes one; `verify`
and `check` run `eager`, `lazy`, `newest-first` and `random` unless told otherwise, and with `--thorough` all of them,
each with all seeds that make a difference: eight where it draws lots, and for `starve` one for each warp of a CTA and
each CTA of a cluster of several. What fails names the policy and the seed, and `--completion NAME --seed N` repeats
it, inputs and all. In Python they are `completion`, `seed` and `thorough` of `verify`, `check.run` and
`check.run_host`; `emu.run` runs one policy with one seed. `timed` is of a model of the hardware, and runs where it is
asked for alone.
"""

POLICIES_TAIL = """\
What is poisoned, and why a correct kernel does not see it: memory that nobody has written, tensor memory between its
allocations, and what an operation under way will write. From the issue of a load until its phase is complete PTX does
not say what its destination holds, and the same is true of D of an MMA that does not add to it (unless an MMA of the
same thread before it has yet to read A from tensor memory) and of the destination of a bulk store. A stage is
poisoned when its next load is issued and not when its barrier says that it is empty: whether an arrive or a commit
came after the last use of the bytes the kernel alone knows.

`starve`, `producer-first` and `consumer-first` hold warps back without bound. A warp that watches a barrier which
others drive, and for which nobody waits, may so be lapped: parity tells two phases apart and not three (PTX ISA,
"mbarrier.test_wait, mbarrier.try_wait"), and the warp waits for ever. On a GPU that takes a warp that is late by two
whole phases; PTX promises no fairness that would rule it out.

`elect.sync` takes the lowest lane in `check` whatever the policy, as an H200 does and as shipping kernels assert; in
`verify` and with `any_leader` of `emu.run` the policy says.

### Mutants

Small kernels, each broken in one way that `eager` does not show, with no check on. The test suite runs them, and the
unbroken ones under every policy.
"""


def policies() -> str:
    """The policies and what each has been seen to find."""
    lines = [POLICIES_HEAD, "| policy | seeds | how a run goes | finds |", "|---|---|---|---|"]
    seeds = {Seeds.NONE: "1", Seeds.DRAWN: str(SEEDS), Seeds.VICTIM: "victims"}
    lines += [
        f"| `{policy.name}` | {seeds[policy.seeds]} | {cell(policy.what)} | {cell(policy.finds)} |"
        for policy in POLICIES.values()
    ]
    lines += ["", POLICIES_TAIL, "| policy | what is broken |", "|---|---|"]
    lines += [f"| `{case.policy}` | {cell(case.mutation)} |" for case in CASES]
    return "\n".join([*lines, ""])


def cell(summary: str) -> str:
    """A summary that does not end its table cell."""
    return summary.replace("|", "\\|") or "-"


def text() -> str:
    """The page."""
    head = HEAD.replace("{products}", str(len(TRITON))).replace("{programs}", str(len(PROGRAMS)))
    lines = [head.replace("{policies}", policies())]
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
