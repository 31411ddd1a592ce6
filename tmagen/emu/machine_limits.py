# SPDX-License-Identifier: Apache-2.0
"""What a launch may ask for: the limits of hardware and the kernel's own directives, looked at before anything runs."""

from __future__ import annotations

import math
import re

from tmagen.emu.compile import Program
from tmagen.emu.compile_layout import RESERVED_SHARED_BYTES
from tmagen.emu.errors import Fault, NotJudged
from tmagen.emu.launch import MAX_CTAS, MAX_GRID, Launch
from tmagen.emu.module import Module

MAX_THREADS = 1024
MAX_SHARED_BYTES = {"sm_90": 232_448, "sm_100": 232_448, "sm_103": 232_448, "sm_110": 232_448, "sm_120": 101_376}
"""Shared memory of a CTA, static and dynamic, by target (CUDA C++ Programming Guide, "Compute Capabilities")."""
MAX_CLUSTER_CTAS = 16
"""Of the hardware; more than 8 need the kernel's consent, which a launch here implies."""


def target_of(module: Module) -> str:
    """The architecture without its suffix: sm_100 for sm_100a."""
    return re.sub(r"[^\d_a-z].*|[af]$", "", module.target.split(",")[0].strip())


def cluster_size(launch: Launch) -> int:
    """CTAs of a cluster."""
    return launch.cluster[0] * launch.cluster[1] * launch.cluster[2]


def check_launch(module: Module, program: Program, launch: Launch) -> None:
    """Raises Fault for what the kernel's directives or the machine forbid, NotJudged for what is not emulated."""
    if any(n < 1 for n in (*launch.grid, *launch.block, *launch.cluster)):
        raise Fault(
            f"launch with grid {launch.grid}, block {launch.block} and cluster {launch.cluster}: every extent is at "
            "least 1"
        )
    _check_cluster(program, launch)
    if any(n > most for n, most in zip(launch.grid, MAX_GRID, strict=True)):
        x, y, z = MAX_GRID
        raise Fault(f"launch with grid {launch.grid}: at most {x:,}, {y:,} and {z:,} CTAs")
    if (ctas := math.prod(launch.grid)) > MAX_CTAS:
        raise NotJudged(f"launch with grid {launch.grid}, {ctas:,} CTAs: at most {MAX_CTAS:,} are emulated")
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    if threads > MAX_THREADS:
        raise Fault(f"launch with {threads} threads per CTA; {MAX_THREADS} is the limit")
    directives = program.entry.directives
    if "maxntid" in directives and threads > math.prod(directives["maxntid"]):
        raise Fault(f"launch with {threads} threads per CTA, but the kernel's .maxntid is {directives['maxntid']}")
    if "reqntid" in directives and tuple(launch.block) != (*directives["reqntid"], 1, 1)[:3]:
        raise Fault(f"launch with block {launch.block}, but the kernel's .reqntid is {directives['reqntid']}")
    target = target_of(module)
    limit = MAX_SHARED_BYTES.get(target)
    if limit is None:
        raise NotJudged(f"target {module.target}")
    used = program.dynamic_base - RESERVED_SHARED_BYTES + launch.dynamic_smem_bytes
    if used > limit:
        raise Fault(f"launch with {used:,} bytes of shared memory per CTA; {target} has {limit:,}")
    if len(launch.params) != program.entry.param_bytes:
        raise Fault(
            f"launch with {len(launch.params)} bytes of parameters; "
            f"kernel {launch.kernel} has {program.entry.param_bytes}"
        )


def _check_cluster(program: Program, launch: Launch) -> None:
    """Clusters against the grid and the kernel's directives (PTX ISA, "Cluster Dimension Directives")."""
    size = cluster_size(launch)
    if size > MAX_CLUSTER_CTAS:
        raise Fault(f"launch with clusters of {size} CTAs; {MAX_CLUSTER_CTAS} is the limit")
    if any(n % c for n, c in zip(launch.grid, launch.cluster, strict=True)):
        raise Fault(f"launch with grid {launch.grid}, which is no multiple of the cluster {launch.cluster}")
    directives = program.entry.directives
    if "reqnctapercluster" in directives:
        required = (*directives["reqnctapercluster"], 1, 1)[:3]
        if launch.cluster != required:
            raise Fault(f"launch with cluster {launch.cluster}, but the kernel's .reqnctapercluster is {required}")
    if "maxclusterrank" in directives and size > directives["maxclusterrank"][0]:
        raise Fault(f"launch with clusters of {size} CTAs; .maxclusterrank is {directives['maxclusterrank'][0]}")
