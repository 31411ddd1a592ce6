# SPDX-License-Identifier: Apache-2.0
"""Named barriers and instructions of a whole warp."""

from __future__ import annotations

from tmagen.emu.checks.registry import Check, add

add(
    Check(
        "NB-01", "E", "Bad number or count of a named barrier",
        "A CTA has 16 barriers; a count is a multiple of 32 and at most the threads of the CTA.",
        "bar.sync 1, 96 in a CTA of 64 threads.",
        "Count the threads of the warps that take part.",
        "bar, barrier", "fault",
    ),
    Check(
        "NB-03", "E", "Participants of a named barrier disagree",
        "All who take part in one phase give the same count, and no more arrive than that.",
        "Two roles use barrier 1 at the same time.",
        "A number of its own for each pair of roles.",
        "bar, barrier", "fault",
    ),
    Check(
        "NB-05", "E", "An operand differs between the lanes of a warp",
        "An instruction of the whole warp (.aligned, alloc, a barrier's number) takes the same operand in all lanes.",
        "tcgen05.dealloc with an address that lane 0 alone has read.",
        "Read or shuffle the value in all lanes.",
        "bar, barrier; tcgen05", "fault",
    ),
    Check(
        "NB-06", "E", "A named barrier with and without a reduction",
        "In one phase of a barrier all use .red, or none does.",
        "One warp calls __syncthreads_count and the others __syncthreads.",
        "The same call in all warps.",
        "bar, barrier", "lint",
    ),
    Check(
        "NB-07", "E", "A named barrier is used again before the last use is over",
        "Nothing orders an arrival after the barrier's phase before, of which the warp was no part: it might have been "
        "counted there, and let others go on who still have to wait.",
        "Two warpgroups each synchronise 128 threads at barrier 1.",
        "A number of its own for each group; or a wait that says that the others are past theirs.",
        "bar, barrier", "race",
    ),
    Check(
        "NB-09", "E", "A named barrier that waits for threads which have exited",
        "Threads that have exited count as arrived where the barrier is one of the whole CTA. A barrier with a count "
        "waits for that many that arrive, and here too few are left.",
        "An early return of one warp before bar.sync 1, 128.",
        "Let all warps that are counted come by, or count those that do.",
        "bar, barrier", "fault",
    ),
    Check(
        "NB-11", "E", "A lane executes a .sync instruction that does not name it",
        "The executing lanes must be in the membermask.",
        "__shfl_sync(0xffff, ...) in all 32 lanes.",
        "Name the lanes that execute it.",
        "shfl.sync; vote.sync; elect.sync", "fault",
    ),
)  # fmt: skip
