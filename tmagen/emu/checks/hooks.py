# SPDX-License-Identifier: Apache-2.0
"""The functions that generated code calls in a checked run: each notes what happens and then does it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from tmagen.emu.checks import (
    hooks_barrier,
    hooks_cluster,
    hooks_copy,
    hooks_launch,
    hooks_maps,
    hooks_matrix,
    hooks_memory,
    hooks_tensor,
    hooks_tensor_copy,
)

_MODULES: tuple[ModuleType, ...] = (
    hooks_memory,
    hooks_matrix,
    hooks_barrier,
    hooks_copy,
    hooks_maps,
    hooks_tensor,
    hooks_tensor_copy,
    hooks_cluster,
    hooks_launch,
)


def namespace() -> dict[str, Any]:
    """By name; they replace functions of the same names."""
    return {
        name: value
        for module in _MODULES
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__ and callable(value)
    }
