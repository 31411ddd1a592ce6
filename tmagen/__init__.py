# SPDX-License-Identifier: Apache-2.0
"""tmagen writes readable CUDA GEMM kernels (TMA, mbarriers, tcgen05) from a specification.

>>> from tmagen import Gemm, Pipeline, emit, plan
>>> text = emit(plan(Gemm(pipeline=Pipeline(depth=4))))

``import tmagen`` loads nothing else: every public name is imported when it is first used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOME_OF: dict[str, str] = {
    "Arch": "arch",
    "Budget": "budget",
    "Cluster": "ir",
    "DType": "ir",
    "Diagnostic": "errors",
    "Gemm": "ir",
    "Layout": "ir",
    "PRESETS": "presets",
    "Pipeline": "ir",
    "Plan": "plan",
    "Policy": "ir",
    "Problem": "ir",
    "Schedule": "ir",
    "Shape": "ir",
    "SpecError": "errors",
    "Target": "ir",
    "Tile": "ir",
    "TmagenError": "errors",
    "arch_of": "arch",
    "budget_of": "budget",
    "emit": "emit",
    "from_toml": "spec_toml",
    "plan": "plan",
    "require_legal": "legality",
    "to_command": "spec",
    "to_toml": "spec_toml",
    "verify": "verify",
}

__all__ = [  # noqa: RUF022 - sorted as _HOME_OF is
    "Arch",
    "Budget",
    "Cluster",
    "DType",
    "Diagnostic",
    "Gemm",
    "Layout",
    "PRESETS",
    "Pipeline",
    "Plan",
    "Policy",
    "Problem",
    "Schedule",
    "Shape",
    "SpecError",
    "Target",
    "Tile",
    "TmagenError",
    "__version__",
    "arch_of",
    "budget_of",
    "emit",
    "from_toml",
    "plan",
    "require_legal",
    "to_command",
    "to_toml",
    "verify",
]


class _LazyPackage(ModuleType):
    """The package itself, with public names that resolve on first use."""

    def __getattr__(self, name: str) -> object:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{home}"), name)
        super().__setattr__(name, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        # The import system binds each submodule to the package under its own name. For `plan`, `emit` and `verify` that
        # would replace the function of the same name, and `from tmagen import plan` would depend on what ran before.
        if isinstance(value, ModuleType) and name in _HOME_OF:
            return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted(set(super().__dir__()) | set(_HOME_OF))


sys.modules[__name__].__class__ = _LazyPackage

if TYPE_CHECKING:
    from tmagen.arch import Arch, arch_of
    from tmagen.budget import Budget, budget_of
    from tmagen.emit import emit
    from tmagen.errors import Diagnostic, SpecError, TmagenError
    from tmagen.ir import (
        Cluster,
        DType,
        Gemm,
        Layout,
        Pipeline,
        Policy,
        Problem,
        Schedule,
        Shape,
        Target,
        Tile,
    )
    from tmagen.legality import require_legal
    from tmagen.plan import Plan, plan
    from tmagen.presets import PRESETS
    from tmagen.spec import to_command
    from tmagen.spec_toml import from_toml, to_toml
    from tmagen.verify import verify
