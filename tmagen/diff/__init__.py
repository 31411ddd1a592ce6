# SPDX-License-Identifier: Apache-2.0
"""Two kernels side by side: what each does, decides, costs and computes.

>>> comparison = diff_spec(PRESETS["step6"].spec)          # against TVM's TIRx
>>> comparison.exit_code                                  # 0: the same result, and no check fires on the left
>>> print(render(comparison, "markdown"))
"""

from __future__ import annotations

from tmagen.diff.compare import PARTS, Comparison
from tmagen.diff.render import FORMATS, render
from tmagen.diff.run import Request, diff_files, diff_spec
from tmagen.diff.to_json import to_dict

__all__ = ["FORMATS", "PARTS", "Comparison", "Request", "diff_files", "diff_spec", "render", "to_dict"]
