# SPDX-License-Identifier: Apache-2.0
"""All kernels that are broken, by name: ours, hand-written ones, and other compilers'."""

from __future__ import annotations

from tmagen.ir import Gemm, Pipeline, Policy, Schedule, Shape, Target
from tools.mutants import hand_bases
from tools.mutants.base import Base
from tools.mutants.emitted import Emitted
from tools.mutants.foreign import Triton, Tvm
from tools.mutants.hand import Hand
from tools.peers.cases import TRITON

_PERSISTENT = Schedule(persistent=True, ctas=1)
_TRITON_CASES = {case.name: case for case in TRITON}

EMITTED: tuple[Base, ...] = (
    Emitted("step 4", Gemm(pipeline=Pipeline(1, Policy.SERIAL))),
    Emitted("step 5", Gemm()),
    Emitted("step 6", Gemm(schedule=_PERSISTENT)),
    Emitted("step 6, sm_90a", Gemm(schedule=_PERSISTENT, target=Target.SM_90A)),
)
HAND: tuple[Base, ...] = tuple(base for base in vars(hand_bases).values() if isinstance(base, Hand))
FOREIGN: tuple[Base, ...] = (
    Tvm("TVM, step 5", Gemm(), (Shape(128, 128, 256),)),
    Tvm("TVM, step 6", Gemm(schedule=_PERSISTENT), (Shape(256, 128, 256), Shape(128, 128, 128))),
    Triton("Triton", _TRITON_CASES["host_maps_sm100_fp16_128x128x64_3st_4w"]),
    # Without a K block it writes zeros, in a loop of its own.
    Triton("Triton, roles", _TRITON_CASES["persistent_sm100_fp16_128x64x64_3st_4w_roles"], (256, 256, 0)),
)
BASES = {base.name: base for base in (*EMITTED, *HAND, *FOREIGN)}


def present() -> dict[str, Base]:
    """Those that this machine can have."""
    return {name: base for name, base in BASES.items() if not base.missing()}


def named(only: str) -> dict[str, Base]:
    """Those of them whose name is a text; or, where none is, whose name holds it."""
    bases = present()
    return {only: bases[only]} if only in bases else {name: base for name, base in bases.items() if only in name}
