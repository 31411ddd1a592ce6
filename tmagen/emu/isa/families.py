# SPDX-License-Identifier: Apache-2.0
"""Importing this module fills the registry with every family."""

from __future__ import annotations

from tmagen.emu.isa import (  # noqa: F401
    atomics,
    barrier,
    bulk,
    cluster,
    compare,
    control,
    convert,
    cp_async,
    floating,
    integer,
    launch_control,
    logic,
    maps,
    matrix,
    mbarrier,
    memory,
    move,
    products,
    reduce,
    tcgen05,
    warp,
    wgmma,
)
