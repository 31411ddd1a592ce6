# SPDX-License-Identifier: Apache-2.0
"""Which kernels Triton compiles, and for which shapes each runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

Shape = tuple[int, int, int]

EVEN: Shape = (256, 256, 256)
ODD: Shape = (200, 136, 72)
"""No extent is a multiple of a tile; rows are multiples of 16 bytes, as tensor maps need."""
ANY: Shape = (130, 77, 45)
"""For kernels without tensor maps."""


@dataclass(frozen=True)
class TritonCase:
    """One kernel: what Triton is given. `types` are those of A, B and D; `roles` asks for warp specialization."""

    kernel: str
    target: int
    types: tuple[str, str, str] = ("fp16", "fp16", "fp16")
    tile: tuple[int, int, int] = (128, 128, 64)
    depth: int = 3
    warps: int = 4
    ctas: int = 1
    roles: bool = False
    shapes: tuple[Shape, ...] = (EVEN, ODD)

    @property
    def name(self) -> str:
        """Unique, and readable in a table."""
        parts = [self.kernel, f"sm{self.target}", "-".join(dict.fromkeys(self.types)), "x".join(map(str, self.tile))]
        parts += [f"{self.depth}st", f"{self.warps}w"]
        parts += [f"{self.ctas}cta"] if self.ctas > 1 else []
        return "_".join([*parts, *(["roles"] if self.roles else [])])

    def request(self) -> dict[str, Any]:
        """What the compiling process is told."""
        return {**asdict(self), "name": self.name}


def _of(target: int) -> list[TritonCase]:
    def case(kernel: str, **fields: Any) -> TritonCase:
        return TritonCase(kernel, target, **fields)

    small_k: tuple[Shape, ...] = ((256, 256, 128), (200, 144, 80))
    cases = [
        case("host_maps"),
        case("host_maps", types=("bf16", "bf16", "bf16")),
        case("host_maps", types=("fp32", "fp32", "fp32"), tile=(128, 128, 32)),
        case("host_maps", types=("fp8e4nv", "fp8e4nv", "fp16"), tile=(128, 128, 128), shapes=small_k),
        case("host_maps", types=("fp8e5", "fp8e5", "fp16"), tile=(128, 128, 128), shapes=small_k),
        case("host_maps", tile=(64, 64, 32), depth=2),
        case("host_maps", tile=(64, 128, 16), depth=4),
        case("host_maps", tile=(128, 256, 64), warps=8),
        case("host_maps", tile=(128, 32, 64), depth=4),
        case("host_maps", types=("fp16", "fp16", "fp32"), tile=(128, 64, 64)),
        case("host_maps_kn"),
        case("host_maps_kn", types=("bf16", "bf16", "bf16"), tile=(128, 64, 32)),
        case("converted_a", types=("i8", "fp16", "fp16"), shapes=((256, 256, 256), (200, 136, 80))),
        case("converted_a", types=("fp8e5", "fp16", "fp16"), shapes=((256, 256, 256), (200, 136, 80))),
        case("device_maps"),
        case("device_maps", types=("bf16", "bf16", "bf16"), tile=(128, 64, 64), depth=4),
        case("device_maps", roles=True),
        case("persistent", tile=(128, 64, 64)),
        case("persistent", tile=(128, 64, 64), roles=True),
        case("pointers", shapes=(EVEN, ANY), tile=(128, 64, 64)),
        case("pointers", types=("fp32", "fp32", "fp32"), tile=(64, 64, 32), shapes=(EVEN, ANY)),
        case("host_maps", tile=(256, 128, 64), ctas=2),
        case("device_maps", tile=(256, 128, 64), ctas=2),
        case("pointers", tile=(256, 64, 64), ctas=2, shapes=(EVEN, ANY)),
    ]
    if target == 100:
        # For sm_90, Triton refuses this one.
        cases.insert(1, case("host_maps", roles=True))
    return cases


TRITON = tuple(case for target in (100, 90) for case in _of(target))
