# SPDX-License-Identifier: Apache-2.0
"""Tensor memory and tcgen05."""

from __future__ import annotations

from tmagen.emu.checks.registry import Check, add

add(
    Check(
        "TA-01", "E", "Number of columns that cannot be allocated",
        "A power of two from 32 to 512. ptxas checks immediates alone.",
        "Columns for N = 96.",
        "Round up to the next power of two.",
        "tcgen05.alloc", "fault",
    ),
    Check(
        "TA-03", "E/W", "The address of tensor memory is read before it is there",
        "tcgen05.alloc writes the address by an ordinary store of its warp. Other threads need a barrier before they "
        "read it. W where the barrier is the cluster's with a relaxed arrive, which orders no memory by the text.",
        "alloc in warp 0, and every warp reads the address right away.",
        "__syncthreads() between alloc and the first read.",
        "tcgen05.alloc; tcgen05: Memory Consistency Model", "race",
    ),
    Check(
        "TA-05", "W", "An allocation larger than the one before",
        "Allocations of a CTA must not grow.",
        "32 columns for scale factors, then 256 for the accumulator.",
        "Allocate the largest first, or all at once.",
        "tcgen05.alloc", "lint",
    ),
    Check(
        "TA-06", "E", "tcgen05.dealloc of what is not allocated",
        "Address and number of columns have to be those of a live allocation: no double free, no part.",
        "dealloc executed by two warps.",
        "One warp frees what one warp allocated.",
        "tcgen05.dealloc", "fault",
    ),
    Check(
        "TA-07", "E", "Tensor memory leaks",
        "The CTA exits with columns allocated; the next CTA on the SM waits for them for ever.",
        "An early return for CTAs without a tile.",
        "Free on every way out.",
        "tcgen05.dealloc", "fault",
    ),
    Check(
        "TA-09", "E/W", "tcgen05.alloc after the permit was given back",
        "After tcgen05.relinquish_alloc_permit by any warp the CTA allocates no more. W where it is given back twice.",
        "relinquish before a second allocation.",
        "Give the permit back after the last allocation.",
        "tcgen05.relinquish_alloc_permit", "fault",
    ),
    Check(
        "TA-10", "E", "Tensor memory freed while it is in use",
        "Nothing orders the dealloc after an MMA, a load or a store of the columns: they may by then be another CTA's.",
        "Warp 0 frees after its own part of the epilogue; warps 1 to 3 still read.",
        "A barrier after everybody's wait::ld, and a wait for the last MMA's commit, before the dealloc.",
        "tcgen05.dealloc", "race",
    ),
    Check(
        "TA-11", "E", "The CTAs of a pair allocate differently",
        "With cta_group::2, alloc and dealloc are executed by one warp of each CTA of the pair, with the same number "
        "of columns, in the same order; either may wait for the other.",
        "The leader alone frees what both have allocated.",
        "The same allocation code in both CTAs.",
        "tcgen05.alloc; tcgen05: Issue granularity", "exit",
    ),
    Check(
        "TA-14", "E", "Access to columns that are not allocated",
        "An MMA, a load or a store names columns outside the live allocations, or past 512.",
        "A second accumulator stage in an allocation for one.",
        "Allocate what all stages take; add to the address that alloc wrote.",
        "tcgen05: Tensor Memory", "fault",
    ),
    Check(
        "TL-02", "E/W", "tcgen05.ld or st outside the warp's lanes",
        "Warp w of the CTA reaches lanes 32 (w % 4) to 32 (w % 4) + 31, by %warpid and not by its rank in a role. W "
        "for lanes 128 to 255, where the odd CTA of a pair counts on from its peer's lanes: hardware ignores that bit.",
        "Epilogue warps 2 to 5 that count themselves from 0.",
        "Use %warpid % 4; lane field 0 is accepted as the warp's own.",
        "tcgen05.ld: Access restrictions", "fault",
    ),
    Check(
        "TL-05", "E/R", "tcgen05.ld not waited for before its columns are given back",
        "The load runs on its own; what the thread does next, an arrive or a barrier, does not wait for it. "
        "tcgen05.wait::ld does. E where no register of the load is used before the release, R where all of them are.",
        "tcgen05.ld, arrive on the accumulator's empty barrier, then the conversion.",
        "tcgen05.wait::ld before the arrive.",
        "tcgen05.wait; tcgen05: Memory Consistency Model", "race",
    ),
    Check(
        "TL-07", "E", "tcgen05.st not waited for before its columns are used",
        "An MMA, a copy or another warp reads what tcgen05.st wrote, and no tcgen05.wait::st of the storing warp "
        "stands before the barrier that orders them.",
        "P of an attention kernel is stored to tensor memory and the next MMA takes it as A.",
        "tcgen05.wait::st, then the barrier.",
        "tcgen05.wait; tcgen05: Memory Consistency Model", "race",
    ),
    Check(
        "TL-08", "E/W", "tcgen05.st and tcgen05.ld of one warp on the same columns with no wait between",
        "They are not pipelined with each other. E for a load after a store, W for a store after a load whose "
        "registers are used first.",
        "st of a scaled accumulator and ld of it right after.",
        "tcgen05.wait::st (or ::ld) between them.",
        "tcgen05: Memory Consistency Model", "race",
    ),
    Check(
        "TL-09", "W", "Registers of a tcgen05.ld written before it is over",
        "A use of a register waits for the load; a write of it does not, by the text, without tcgen05.wait::ld "
        "between. ptxas waits nevertheless, so it is told with --strict alone.",
        "A second tcgen05.ld to the same registers, and the first one's were never used.",
        "tcgen05.wait::ld between them, or other registers.",
        "tcgen05: Memory Consistency Model", "lint",
    ),
    Check(
        "TC-01", "W", "MMAs of different shapes or kinds on one accumulator",
        "MMAs of one thread on one accumulator follow each other where shape and kind are the same; of others the "
        "text says nothing.",
        "The last K step with N = 64 after steps with N = 128.",
        "Keep the shape, or commit and wait between them.",
        "tcgen05: Memory Consistency Model, pipelined instructions", "lint",
    ),
    Check(
        "TC-03", "E", "MMAs of different threads on one accumulator, unordered",
        "MMAs of one thread follow each other. Those of another thread need a commit and a wait between, or "
        "tcgen05.fence::before_thread_sync, a barrier, and ::after_thread_sync.",
        "Two warps issue the halves of K into the same columns.",
        "One issuing thread, or hand over by commit and mbarrier.",
        "tcgen05: Memory Consistency Model, pipelined instructions", "race",
    ),
    Check(
        "TC-04", "E/W", "tcgen05.cp over columns that another one writes",
        "E where they are of different threads and nothing orders them. W where one thread issued both: the text does "
        "not name copies among the instructions that follow each other, shipping kernels take it so.",
        "Two warps copy scale factors to the same columns.",
        "One issuing thread; commit and wait between, or tcgen05.fence::before_thread_sync.",
        "tcgen05: Memory Consistency Model, pipelined instructions", "race",
    ),
    Check(
        "TC-05", "E", "Accumulator used before the MMA is complete",
        "tcgen05.ld or st after an MMA on the same columns: program order, or a barrier with the issuing thread, "
        "says nothing about the MMA. tcgen05.commit, its mbarrier, and a wait do.",
        "The epilogue starts after __syncthreads() alone; or the commit was put before the last MMA of the tile.",
        "commit after the last MMA, wait on its barrier in (or before a barrier with) each reading thread.",
        "tcgen05.commit; tcgen05: Memory Consistency Model", "race",
    ),
    Check(
        "TC-06", "E", "MMA overwrites an accumulator that is still to be read",
        "Nothing orders the MMA after the tcgen05.ld of the epilogue: they are on different threads with no barrier "
        "between. Where the MMA is of the tile that is read, the load came too early.",
        "The MMA warp starts the next tile without waiting for the accumulator to be empty. Or the epilogue waits "
        "once, with the parity of the tile's last phase, on a barrier of a ring, and an earlier phase has that parity.",
        "wait::ld and an arrive by each reading warp; a wait by the issuing thread. For a load that is too early, a "
        "barrier that only the last commit of the tile arrives on.",
        "tcgen05: Memory Consistency Model", "race",
    ),
    Check(
        "TC-07", "E", "tcgen05.st unordered with another warp's use of the columns",
        "Nothing orders them: no barrier or mbarrier lies between.",
        "One warp clears the accumulator, another issues the MMA.",
        "wait::st, then a barrier.",
        "tcgen05: Memory Consistency Model", "race",
    ),
    Check(
        "TC-08", "W", "No tcgen05.fence::after_thread_sync after a wait",
        "The text asks for it between a wait and the use of tensor memory that it orders. No instruction comes of it "
        "and shipping kernels leave it out, so it is told with --strict alone.",
        "wait on the accumulator's barrier, then tcgen05.ld.",
        "tcgen05.fence::after_thread_sync after the wait.",
        "tcgen05.fence", "lint",
    ),
    Check(
        "TC-09", "E", "tcgen05.cp handed to an MMA of another thread",
        "A copy and the MMAs of its own thread follow each other. For another thread the copy is over after a commit "
        "and a wait; or it goes on in the pipeline where tcgen05.fence::before_thread_sync after the copy, a barrier, "
        "and ::after_thread_sync before the MMA stand between.",
        "One warp copies, a barrier, another warp issues the MMA.",
        "Both fences around the barrier, or commit and mbarrier.",
        "tcgen05: Memory Consistency Model, pipelined instructions", "race",
    ),
    Check(
        "TC-13", "E", "Shared memory overwritten while an MMA reads it",
        "An MMA reads its operands until a commit that covers it has arrived and somebody has waited for that. A "
        "commit covers the MMAs that its own thread has issued before it, no others.",
        "The stage is refilled after the MMAs were issued; or the commit stands before the last of them, or is "
        "executed by another thread than they were.",
        "commit after the stage's last MMA, by the same thread, and wait on its barrier before the refill.",
        "tcgen05.commit", "race",
    ),
)  # fmt: skip
