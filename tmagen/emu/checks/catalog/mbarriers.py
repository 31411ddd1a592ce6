# SPDX-License-Identifier: Apache-2.0
"""mbarrier objects: lifetime, counts, phases, order."""

from __future__ import annotations

from tmagen.emu.checks.registry import Check, add

add(
    Check(
        "MB-01", "E", "No mbarrier where one is used",
        "The bytes hold no initialised mbarrier: never initialised, invalidated, or another address than meant.",
        "A stage index that is not wrapped to 0 names the barrier after the last one.",
        "Initialise every barrier before its first use, and check the index.",
        "mbarrier.init; mbarrier: Lifecycle of the mbarrier object", "fault",
    ),
    Check(
        "MB-02", "E", "A live mbarrier is read, overwritten or initialised again",
        "Only mbarrier operations may touch a live object. Its bytes are plain memory again after mbarrier.inval.",
        "A TMA box one row too long runs into the barriers behind the tile.",
        "Keep barriers apart from data; mbarrier.inval before the memory is used for something else.",
        "mbarrier: Lifecycle of the mbarrier object", "fault",
    ),
    Check(
        "MB-03", "E", "Count of an mbarrier out of range",
        "A count is 1 to 2^20-1. ptxas does not check it.",
        "mbarrier.init with the count 0, from a role that has no threads.",
        "Initialise with the number of arrivals of one phase.",
        "mbarrier: Contents of the mbarrier object", "fault",
    ),
    Check(
        "MB-04", "E", "More arrivals than the phase expects",
        "The pending count would go below zero: an arrival in a phase whose arrivals are all in while bytes are "
        "still outstanding, or one arrival of more than is pending. The hardware traps.",
        "All 32 lanes arrive on a barrier that was initialised for one elected thread.",
        "The count of init must be what arrives in one phase: count threads or elect one.",
        "mbarrier.arrive", "fault",
    ),
    Check(
        "MB-05", "E", "Transaction bytes out of range",
        "The tx-count left -(2^20-1) to 2^20-1.",
        "expect_tx for a whole matrix instead of a stage.",
        "Split the phase: expect what its own copies deliver.",
        "mbarrier: Contents of the mbarrier object", "fault",
    ),
    Check(
        "MB-07", "E", "A copy completes in another phase than it was issued in",
        "The bytes of a copy hold its phase until they arrive, if they are expected. The phase ended without them, "
        "so nobody expected them, and whoever waited read a tile that was not there.",
        "arrive.expect_tx with the bytes of A alone, where A and B are loaded.",
        "Expect the bytes of every copy that completes on this barrier in this phase.",
        "mbarrier: Phase of the mbarrier object; cp.async.bulk.tensor", "fault",
    ),
    Check(
        "MB-09", "E", "Bytes or copies outstanding when the CTA ends",
        "The CTA exits while a barrier still waits for bytes, or while copies to its shared memory may be on their "
        "way: no thread of it has waited for the phase on which they complete, so nothing says that they are over "
        "before the exit, and they may land in the next CTA's memory. It is told by order, not by time: a copy that "
        "happens to be complete is told too. Arrivals that nobody waits for are fine.",
        "The producer fills one stage more than is consumed.",
        "Wait for every load before the exit; expect no more than arrives.",
        "mbarrier: Tracking asynchronous operations", "exit",
    ),
    Check(
        "MB-10", "E", "arrive.noComplete that completes the phase",
        "The qualifier promises that other arrivals of the phase are still to come.",
        "The last of the threads that arrive uses .noComplete as the others do.",
        "A plain arrive where it may be the last.",
        "mbarrier.arrive", "fault",
    ),
    Check(
        "MB-11", "E", "Bad address of an mbarrier",
        "The address is not a multiple of 8, not in shared memory, or in that of another CTA of the cluster where the "
        "operation is one on the own CTA's.",
        "A barrier after a 4-byte field of a struct without alignas(8); mbarrier.arrive.shared::cta on what mapa gave.",
        "Align barriers to 8 bytes, convert generic pointers with cvta.to.shared, and arrive on a peer's barrier by "
        ".shared::cluster.",
        "mbarrier: Size and alignment of the mbarrier object", "fault",
    ),
    Check(
        "MB-12", "E", "mbarrier operation that has to be of the own CTA, on the memory of another",
        "init, inval, waits, and arrivals that return a state work on the own CTA's objects. ptxas sees the state "
        "space alone: a generic address may lead elsewhere.",
        "A generic address from mapa in mbarrier.try_wait.",
        "Arrive remotely with .shared::cluster, wait on the own CTA's object.",
        "mbarrier: Support on shared memory; mbarrier.try_wait", "fault",
    ),
    Check(
        "MB-13", "E", "Wait with the state of another phase",
        "A state token names the phase that its arrive was in; only the current and the phase before can be tested.",
        "A token kept over two rounds of the ring.",
        "Wait with the token of the latest arrive, or by parity.",
        "mbarrier.test_wait, mbarrier.try_wait", "fault",
    ),
    Check(
        "MB-14", "W", "mbarrier.pending_count of something else than a state",
        "A state is what an arrive returns; its bits mean nothing else.",
        "pending_count of the mbarrier's address.",
        "Pass the value that mbarrier.arrive returned.",
        "mbarrier.pending_count", "lint",
    ),
    Check(
        "MB-20", "E", "A waiter is two phases behind",
        "Parity tells the current phase from the one before, and no others. A thread that has fallen back by two takes "
        "an older phase for the one that it waits for. It is told as a hint of the race that comes of it.",
        "A consumer that skips a round of the ring and does not flip its phase bit.",
        "Flip the bit each time the ring comes round, and let the producer wait for the consumers.",
        "mbarrier: Phase Completion of the mbarrier object", "race",
    ),
    Check(
        "MB-22", "W", "A phase that nobody has waited for",
        "An arrival begins to count towards a phase while no thread has seen the one before complete. Such a "
        "pipeline can lap its consumer: parity tells two phases apart, not three.",
        "A producer that refills a stage without waiting for the barrier that says it is empty.",
        "Let somebody wait for each phase before the next one gets arrivals.",
        "mbarrier: Phase Completion of the mbarrier object", "lint",
    ),
    Check(
        "MB-23", "W", "Parity that is neither 0 nor 1",
        "The text gives no meaning to other values; an H200 takes bit 0.",
        "The stage counter itself, instead of its lap, as phase.",
        "Flip one bit each time the ring comes round.",
        "mbarrier.test_wait, mbarrier.try_wait", "lint",
    ),
    Check(
        "MB-24", "E", "The acquire of another lane",
        "A wait gives order to the threads that execute it. Where one lane waits and others of its warp read what it "
        "waited for, bar.warp.sync (or another barrier) has to stand between. It is told as a hint of the race that "
        "comes of it.",
        "if (elect_sync()) wait(full); and then all lanes read the tile.",
        "__syncwarp() after the elected lane's wait, or let all lanes wait.",
        "Memory Consistency Model: Release and Acquire Patterns", "race",
    ),
    Check(
        "MB-31", "E", "The release of another lane",
        "An arrive, a flag or the issue of a copy is ordered after what its own thread did before. Where all lanes of "
        "a warp have read or written and one of them arrives, bar.warp.sync (or another barrier) has to stand between; "
        "elect.sync brings the lanes together, and the text gives it no order of memory. Instructions that all lanes "
        "execute as one, as ldmatrix, mma.sync, wgmma, tcgen05.ld, shfl.sync or vote.sync, are accepted in its place: "
        "shipping kernels rely on them, and no lane leaves them before all have come. It is told as a hint of the race "
        "that comes of it.",
        "All lanes read a tile with ld.shared; if (elect_sync()) arrive(empty); and the next load overwrites it.",
        "__syncwarp() before the elected lane's arrive, or let all lanes arrive.",
        "bar.warp.sync; Memory Consistency Model: Causality Order", "race",
    ),
    Check(
        "MB-34", "W", "Remote arrive of .cta scope orders ordinary accesses",
        "An arrive on another CTA's mbarrier is .release.cta where it names no scope, and that scope leaves out the "
        "CTA of the mbarrier. Completed asynchronous work may be told that way, as shipping kernels do; told here is "
        "that an ordinary read, a write that is overwritten, or one that the asynchronous proxy reads in the writer's "
        "own CTA behind fence.proxy.async, is ordered by nothing else. No instruction comes of it for these, so it is "
        "told with --strict alone.",
        "ldmatrix of a tile, then the default arrive on the producer's empty barrier in another CTA.",
        "mbarrier.arrive.release.cluster.shared::cluster.",
        "mbarrier.arrive; Memory Consistency Model: Scope", "race",
    ),
    Check(
        "MB-35", "E", "Remote arrive of .cta scope publishes ordinary writes",
        "Another CTA reads what a thread wrote by ordinary stores or cp.async, and an arrive of .cta scope (the "
        "default) on an mbarrier of that CTA is all that orders the two. The release of that scope waits for the "
        "writes to reach the own CTA alone; wrong results were seen on hardware.",
        "st.shared of a partial sum, then mbarrier.arrive.shared::cluster on the peer that reads it.",
        "mbarrier.arrive.release.cluster.shared::cluster, or a barrier of the cluster.",
        "mbarrier.arrive; Memory Consistency Model: Scope", "race",
    ),
    Check(
        "MB-40", "E", "mbarrier used before its init is visible",
        "Nothing orders the use after the mbarrier.init by another thread: it may find whatever the memory held.",
        "The __syncthreads() after the initialisation was left out.",
        "bar.sync after the init; for a peer CTA a cluster barrier, after fence.mbarrier_init.",
        "mbarrier.init", "race",
    ),
    Check(
        "MB-42", "W", "Relaxed arrive at the cluster's barrier with no fence.mbarrier_init",
        "A relaxed arrive publishes nothing but the mbarrier.init that fence.mbarrier_init covers. No instruction "
        "comes of the fence, so it is told with --strict alone.",
        "mbarrier.init, then barrier.cluster.arrive.relaxed.",
        "fence.mbarrier_init.release.cluster by the thread that initialises; or a plain arrive.",
        "membar/fence: fence.mbarrier_init", "lint",
    ),
    Check(
        "MB-44", "W", "fence.mbarrier_init by another thread than the one that initialised",
        "The fence orders the mbarrier.init that its own thread executed before. A relaxed arrive after the fence of "
        "another thread publishes none of them. No instruction comes of the fence, so it is told with --strict alone.",
        "Thread 0 initialises, thread 32 executes fence.mbarrier_init, all arrive relaxed.",
        "Let the thread that initialises fence, right after its last mbarrier.init.",
        "membar/fence: fence.mbarrier_init", "lint",
    ),
    Check(
        "MB-45", "E", "mbarrier.inval before the last use",
        "Nothing orders the inval after an operation of another thread on the object, threads still wait on it, or a "
        "tcgen05.commit or a copy has yet to arrive: nobody before the inval has waited for that phase, or for a later "
        "commit of the same thread.",
        "Thread 0 invalidates right after its own wait; other warps may not have come to theirs.",
        "A barrier between the last use and mbarrier.inval; or leave it out: no object needs it at exit.",
        "mbarrier.inval", "race",
    ),
)  # fmt: skip
