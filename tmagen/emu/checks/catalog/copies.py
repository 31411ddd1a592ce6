# SPDX-License-Identifier: Apache-2.0
"""TMA copies, tensor maps, bulk stores."""

from __future__ import annotations

from tmagen.emu.checks.registry import Check, add

add(
    Check(
        "TM-01", "E", "Bulk copy with a size or an address that is not a multiple of 16",
        "Size, source and destination of cp.async.bulk are multiples of 16 bytes. ptxas sees immediates alone.",
        "A tail of 24 bytes copied in one piece.",
        "Copy whole 16-byte chunks, the rest by ordinary accesses.",
        "cp.async.bulk", "fault",
    ),
    Check(
        "TM-02", "E", "Tensor copy at a misaligned shared address",
        "The shared memory side of a tensor copy is a multiple of 128. An H200 traps.",
        "A buffer declared without alignas.",
        "alignas(1024) for swizzled tiles, at least 128 for others.",
        "cp.async.bulk.tensor", "fault",
    ),
    Check(
        "TM-07", "E", "Address of another CTA where the own one is needed",
        "A destination in .shared::cta, the source of a store, the place of a tensor memory address or of a response "
        "lie in the shared memory of the CTA that executes the instruction.",
        "An address from mapa as the source of a TMA store.",
        "Use the own CTA's address; loads to a peer take the .shared::cluster form.",
        "cp.async.bulk.tensor; Cluster of Cooperative Thread Arrays", "fault",
    ),
    Check(
        "TM-08", "E", "Coordinates do not match the rank of the tensor map",
        "The instruction's dimension, the number of coordinates and the map's rank are one number.",
        "A 3d map used by a .2d copy.",
        "Encode the map with the rank of the instruction.",
        "cp.async.bulk.tensor; Tensors: Tiled Mode", "fault",
    ),
    Check(
        "TM-09", "E", "Tensor map in a place that TMA cannot read",
        "A map lies in parameter, constant or global memory, aligned to 64 bytes. A copy in local memory, which a "
        "by-value parameter without __grid_constant__ becomes, is not reachable.",
        "A kernel parameter CUtensorMap without __grid_constant__, of which the address is taken.",
        "const __grid_constant__ CUtensorMap as parameter.",
        "cp.async.bulk.tensor; CUDA Programming Guide, Tensor Memory Access", "fault",
    ),
    Check(
        "TM-10", "E", "Multicast to a CTA that is not in the cluster",
        "Bit i of the mask names the CTA of rank i.",
        "The mask of a cluster of two in a launch without clusters.",
        "Compute the mask from %cluster_nctarank.",
        "cp.async.bulk.tensor", "fault",
    ),
    Check(
        "TM-12", "E", "Box outside the CTA's shared memory",
        "The whole box, with the pitch that its swizzle gives its rows, has to lie in what the launch asked for.",
        "Dynamic shared memory computed for one stage less.",
        "Ask for what the layout takes.",
        "cp.async.bulk.tensor", "fault",
    ),
    Check(
        "TM-20", "E", "Box outside every allocation",
        "Coordinates in the bounds of the map name bytes that are in no buffer: extents or strides of the map are "
        "wrong.",
        "Rows and columns swapped when the map is encoded.",
        "Encode dims innermost first, strides in bytes of dims 1 and up.",
        "Tensors: Tiled Mode; cuTensorMapEncodeTiled", "fault",
    ),
    Check(
        "TM-23", "E", "Invalid tensor map",
        "A field breaks a rule of cuTensorMapEncodeTiled: alignment of address or strides, box extents, row bytes "
        "against the swizzle, fill of a type that is not floating.",
        "A row stride that is not a multiple of 16 bytes.",
        "Pad rows, or leave TMA to aligned matrices.",
        "CUDA Driver API, cuTensorMapEncodeTiled", "fault",
    ),
    Check(
        "TM-34", "E", "Access to the destination of a copy before it is complete",
        "From its issue until a wait on its mbarrier has seen the phase complete, a copy may write any of its bytes "
        "at any time. A read sees old and new bytes mixed; a write is lost or not.",
        "The MMA of a stage is issued without waiting for the full barrier, or with the parity of the lap before.",
        "Wait for the phase on which the copy completes, in the thread that goes on, or hand the order on by a "
        "barrier.",
        "cp.async.bulk; Asynchronous Operations", "race",
    ),
    Check(
        "TM-35", "E", "Two copies in flight to the same bytes",
        "A second load into a buffer whose first one is not known to be complete: which one stays is open.",
        "The producer fills a stage again before anybody has waited for its last fill.",
        "Wait for the stage to be empty, which somebody signals who has waited for it to be full.",
        "cp.async.bulk", "race",
    ),
    Check(
        "TM-37", "E", "Source of a load in flight is written",
        "The global memory that a TMA or bulk load reads is written between its issue and its completion.",
        "In-place update: D overwrites A while tiles of A are still being loaded.",
        "Wait for the loads first.",
        "cp.async.bulk; Memory Consistency Model", "race",
    ),
    Check(
        "TM-38", "E", "Tensor copy that starts inside a 16-byte chunk",
        "Coordinate 0 times the size of an element is a multiple of 16, also where the box is out of bounds. An H200 "
        "traps.",
        "A halo of one element to the left, loaded with coordinate -1.",
        "Start at the chunk, or give the dimension that is shifted a place further out.",
        "cp.async.bulk.tensor", "fault",
    ),
    Check(
        "BG-05", "E", "Shared memory reused while a bulk store reads it",
        "A TMA or bulk store reads its source until cp.async.bulk.wait_group(.read), executed by the thread that "
        "issued and committed it, has covered its group. The wait of another thread waits for nothing, and a group "
        "that was never committed is never covered. wait_group N leaves the N newest groups open.",
        "The staging buffer of the next tile is written with no wait, or all threads wait but the issuing one.",
        "wait_group.read 0 (or N for a ring of N+1 buffers) in the issuing thread, then a barrier.",
        "cp.async.bulk.wait_group", "race",
    ),
    Check(
        "BG-07", "R", "The CTA exits while a bulk store may still read its shared memory",
        "No wait covers the store. Whether shared memory outlives the CTA until then is not written anywhere; "
        "shipping kernels wait before they exit.",
        "The last tile's stores are committed and the kernel returns.",
        "cp.async.bulk.wait_group.read 0 before the exit.",
        "cp.async.bulk.wait_group", "exit",
    ),
    Check(
        "BG-08", "E", "Bulk stores to the same global bytes, unordered",
        "Groups of one thread, and the operations within one group, are unordered with each other until a wait_group "
        "(without .read) has covered the first. Reductions need no order among themselves, but one between them and "
        "stores.",
        "A tile is stored twice, the second time with its last columns right; a tile is cleared by a store, and then "
        "added to.",
        "wait_group 0 between them, or store each byte once.",
        "cp.async.bulk.commit_group; cp.reduce.async.bulk", "race",
    ),
    Check(
        "BG-09", "E", "Global memory read or written before a bulk store to it is complete",
        "wait_group.read says that the source has been read; the global writes are complete after wait_group alone, "
        "in the issuing thread.",
        "wait_group.read 0, then a flag that tells another thread that the tile is in memory.",
        "wait_group 0, then release.",
        "cp.async.bulk.wait_group", "race",
    ),
    Check(
        "BG-10", "E", "Tensor store with a negative start coordinate",
        "Stores drop what lies past an upper edge; a box that starts below zero traps.",
        "The halo of a stencil stored with coordinate -1.",
        "Shift the box, or clip it.",
        "cp.async.bulk.tensor", "fault",
    ),
)  # fmt: skip
