# SPDX-License-Identifier: Apache-2.0
"""Writes `docs/checks.md`: every check of the emulator, from its registry.

python -m tools.check_docs
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from tmagen.emu.checks import FAMILIES, Check, known

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "checks.md"

HEAD = """# Checks

`tmagen verify` first runs a kernel under observation: every access to shared, tensor and global memory, by threads
and by the units that work for them, is compared with those before it. Two accesses to the same bytes, one of them a
write, must be ordered by something that the PTX ISA lets order them. Whether they are is a matter of the waits,
barriers and fences that were executed, not of timing, so one run in which everything completes at once finds what a
GPU may show once in a million.

This page is written by `make regen` from the registry of checks; `tmagen explain-check ID` prints one of them.

## How order is followed

- A thread has a vector clock; lanes of a warp share one until they act alone, and again after `bar.warp.sync`, a CTA
  barrier or a `.sync.aligned` instruction. An acquire is of the lanes that execute it.
- So is a release. A lane that leaves the others knows what they did before all last met: at one of those, at
  `shfl.sync` or `vote.sync`, or in a wait for what all of them released. Of what came after it tells its own part
  alone, byte by byte (MB-31). `elect.sync` is no such meeting: a warp converges there, and the text orders no memory
  by it.
- Asynchronous work has clocks of its own: a load is over for whoever knows the phase of its mbarrier, an MMA for
  whoever knows a commit of its thread that came after it, a bulk store for its thread's `wait_group` (its source
  sooner, by `.read`), `tcgen05.ld` and `st` for the warp's `wait::ld` and `wait::st`, wgmma for `wait_group`.
- An arrive hands on what the thread knows, a completed phase what all who arrived knew; a relaxed one hands on order
  of tensor memory, the completion of copies, and what a fence before it covered. Named barriers do the same.
- A strong store, an atomic or a fence that releases publishes what the thread knows at the place of the flag, and a
  strong load or a fence that acquires takes it: within a CTA, between the CTAs of a cluster, and between clusters.
  Both sides' scopes have to include the other thread. An atomic keeps what was published at its place before.
- A second vector beside each clock says which ordinary accesses a proxy fence has made visible to the asynchronous
  proxy.
- Whether a load's registers are used before the thread releases follows from the text of the kernel (PX-03, TL-05).

## Severity

| | meaning | fails |
|---|---|---|
| E | undefined behaviour that hardware can show | always |
| W | a formal rule that shipping kernels leave out, and that no instruction comes of | told with `--strict` |
| R | right or not by what one run cannot show | told with `--strict` |

## What is not covered

- Clusters run one after another where they may talk through global memory. One that waits for a later one is not
  judged, and said so; what is seen is the order in which the earlier cluster comes first at every atomic.
- Of a byte of global memory that many threads read, or change by atomics, with nothing to order them, the last 64
  accesses are known. Accesses of different sizes to one flag are different flags.
- Of the scopes of mbarrier operations that of a remote arrive is compared (MB-34, MB-35), and that of a wait is not:
  shipping kernels wait with the default, `.acquire.cta`, for arrivals of other CTAs. A remote arrive of `.cta` scope
  that tells of completed copies, MMAs or wgmma alone is accepted for the same reason.
- `fence.proxy.async` counts for its own thread wherever the bytes lie: `.shared::cta` for the memory of a peer is not
  told. Proxies of constants, textures and surfaces, and `fence.proxy.alias`, are not followed.
- Memory that nobody has written: a read of it is told by its values alone, which are poison (NaN).
- Of bulk copies: coordinates of `prefetch` are not checked, neither is a map whose type is another than the MMA's
  (kernels load f16 as 16-bit integers on purpose), nor a tile that a swizzle starts inside its pattern.
- Lanes that never part are not compared with each other: one that reads what another has written by the instruction
  before, with no `bar.warp.sync`. Lanes that release by one instruction at several places (a flag each) tell all of
  what they did together. Of `cp.async` a wait counts for all lanes that have waited together.
- What one run does not execute: other shapes, other branches.
- Some mistakes have no rule of their own and are told by what comes of them: bytes expected on one barrier that arrive
  on another, a load without elect, or a phase bit that is not flipped by a race, MB-04, MB-05, MB-07, MB-09 or a
  deadlock; a multicast into a stage that a peer still reads by the race in that CTA; a group that was never committed
  by the reuse of what it reads (BG-05); `cp.async` before an asynchronous read by PX-01.
- Timing.
- Of the formal fences of tensor memory `tcgen05.fence::after_thread_sync` is looked for (TC-08), and the one before an
  arrive is not: no instruction comes of either.
- What ptxas refuses in any case: `.cta_group::1` and `::2` in one kernel, shapes of wgmma that there are not,
  transposed operands of 8 and 32 bits, lane masks with block scaling. Code that ptxas has not seen may have it.
- `griddepcontrol.launch_dependents` promises nothing about memory, so there is nothing to check of it; what the grid
  after this one does is another launch. `setmaxnreg.dec` loses the contents of registers that the compiler has emptied.
- A request for a cluster by a thread that nothing orders after the one that has seen a failure (CL-04 needs the order).

Some mistakes have no rule of their own, since they come out as others: a warp that comes to `tcgen05.alloc`, `ld` or a
barrier without some of its lanes (a deadlock that names them, or NB-05), too few free columns (a deadlock that names
them), a barrier of the whole CTA in a branch that some warps do not take (a deadlock), an id of a named barrier used by
two roles at once (NB-03), a commit by a thread that issued nothing or with a mask that leaves the peer out (TC-13,
TC-05 or a deadlock), several threads that issue one MMA (wrong values), columns of an allocation that was freed
(TA-14).

## The checks
"""


def _section(family: str, checks: list[Check]) -> list[str]:
    lines = ["", f"### {FAMILIES[family]}"]
    for check in checks:
        lines += [
            "",
            f"**{check.id}** ({check.severity}) **{check.title}.** {check.meaning}",
            f"*For example:* {check.example} *Fix:* {check.fix} *PTX ISA:* {check.section}.",
        ]
    return lines


def text() -> str:
    """The page."""
    lines = []
    for family, checks in groupby(known(), key=lambda check: check.family):
        lines += _section(family, list(checks))
    return HEAD + "\n".join(lines) + "\n"


def main() -> None:
    """The command."""
    DOCUMENT.write_text(text(), encoding="utf-8")
    print(f"wrote {DOCUMENT}: {len(known())} checks")


if __name__ == "__main__":
    main()
