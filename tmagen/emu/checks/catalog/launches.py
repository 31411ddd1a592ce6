# SPDX-License-Identifier: Apache-2.0
"""What a CTA has of others: registers of its pool, clusters that have not been launched, the grid before."""

from __future__ import annotations

from tmagen.emu.checks.registry import Check, add

add(
    Check(
        "SR-01", "E", "Count of setmaxnreg that there is not",
        "A multiple of 8 from 24 to 256. ptxas refuses some others, not all.",
        "setmaxnreg.inc 250.",
        "Round to a multiple of 8 in the range.",
        "setmaxnreg", "fault",
    ),
    Check(
        "SR-02", "E/W", "Warps of a warpgroup execute different setmaxnreg",
        "All warps of a warpgroup execute the same setmaxnreg, and come together before the next one. E where a warp "
        "leaves one out; W where nothing orders it after that of another warp before, or where they give different "
        "counts: shipping kernels do both.",
        "The producer warp gives registers back and the three idle warps of its warpgroup do not.",
        "Put setmaxnreg where all four warps of the group come by; a barrier of the group before the next one.",
        "setmaxnreg", "fault",
    ),
    Check(
        "SR-03", "E", "setmaxnreg in the wrong direction",
        "dec asks for as many registers as the warp has or fewer, inc for as many or more.",
        "setmaxnreg.inc 152 in a kernel that ptxas launches with 168 registers for each thread.",
        "Compare with the registers at launch: 65,536 shared by the threads of the CTA, rounded down to 8.",
        "setmaxnreg", "fault",
    ),
    Check(
        "SR-04", "W", "setmaxnreg in a kernel without a limit of its registers",
        "ptxas ignores the instruction where it does not know the registers at launch.",
        "A kernel without __launch_bounds__.",
        "__launch_bounds__(threads), which is .maxntid, or .maxnreg.",
        "setmaxnreg", "lint",
    ),
    Check(
        "SR-05", "E", "More registers asked for than the CTA has",
        "inc waits until the CTA's pool has enough: what all threads have at launch, of which others have given back "
        "some. Where all warps have what they ask for and the sum is larger than that, the last one waits for ever.",
        "384 threads, launched with 168 registers each: two warpgroups ask for 240, and one keeps 40.",
        "The counts of all warpgroups together are at most the warpgroups times the count at launch: 40 + 232 + 232.",
        "setmaxnreg", "fault",
    ),
    Check(
        "GD-01", "E", "Memory of the grid before is used before griddepcontrol.wait",
        "With programmatic dependent launch a grid starts while the one before it still runs. What that one writes is "
        "there after griddepcontrol.wait, and what it reads may be overwritten after it: not before. Told where the "
        "launch is said to be one (`programmatic_dependent_launch`).",
        "The producer warp loads the first tiles before the wait; or one role does not wait at all.",
        "griddepcontrol.wait before the first access to global memory that the grid before has to do with.",
        "griddepcontrol", "race",
    ),
    Check(
        "GD-04", "E", "griddepcontrol.wait of another thread",
        "The wait is for the threads that execute it. Others need it too, or a barrier after a thread that has "
        "executed it. It is told as a hint of GD-01.",
        "if (warp == 0) cudaGridDependencySynchronize(); and then all warps load.",
        "Let each thread that touches global memory wait, or put a barrier between.",
        "griddepcontrol", "race",
    ),
    Check(
        "GD-05", "R", "A dependent grid that never waits",
        "A grid that waits for this one may take it that all grids before have ended too. That holds where this one "
        "has waited for the one before it.",
        "A kernel launched with the attribute that reads nothing of the one before, in a chain of three.",
        "griddepcontrol.wait in one thread of each CTA before it ends.",
        "griddepcontrol", "exit",
    ),
    Check(
        "CL-01", "E", "Bad address of a response",
        "clusterlaunchcontrol.try_cancel writes 16 bytes, aligned to 16, in the CTA's own shared memory.",
        "A response after an 8-byte barrier.",
        "alignas(16).",
        "clusterlaunchcontrol.try_cancel", "fault",
    ),
    Check(
        "CL-02", "E", "Response used before it has arrived",
        "The response is written asynchronously; it is there for who waits for the phase of its mbarrier, which "
        "expects 16 bytes in each CTA that gets it. Told too where query_cancel gets anything else than a response.",
        "try_cancel, bar.sync, and the response is read; or a second try_cancel to the same place while the first is "
        "under way, as where a whole warp executes it.",
        "One thread asks; whoever reads waits for the mbarrier first.",
        "clusterlaunchcontrol.try_cancel", "race",
    ),
    Check(
        "CL-03", "E/R", "Coordinates of a request that failed",
        "get_first_ctaid is undefined where no cluster was given. E in a kernel that never asks is_canceled; R in one "
        "that does, and may leave the result unused.",
        "The loop over tiles goes on with whatever the response holds.",
        "query_cancel.is_canceled first, and stop where it is false.",
        "clusterlaunchcontrol.query_cancel", "fault",
    ),
    Check(
        "CL-04", "E", "A request after one that failed",
        "Who has seen a request fail, or comes after a thread that has, may not ask again.",
        "The scheduler prefetches one more tile after the last.",
        "Stop asking at the first failure.",
        "clusterlaunchcontrol.try_cancel", "fault",
    ),
    Check(
        "CL-05", "E", "A response to a CTA that has exited",
        "With .multicast::cluster::all the response goes to every CTA of the cluster, and all of them must run.",
        "A CTA without work leaves early.",
        "Keep all CTAs of the cluster until the last response has arrived.",
        "clusterlaunchcontrol.try_cancel", "fault",
    ),
)  # fmt: skip
