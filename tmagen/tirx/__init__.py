# SPDX-License-Identifier: Apache-2.0
"""TIRx as a second backend: a spec as a TVM script, and the CUDA that TVM makes of it.

>>> script = tirx_script(spec)                 # Python text that runs by itself
>>> build_script(script).text                  # what TVM generates from it, with its launch and tensor maps

TVM is a package of its own (the `tirx` extra). It never loads into this process.
"""

from __future__ import annotations

from tmagen.tirx.build import TirxError, build_script
from tmagen.tirx.lower import tirx_script, with_shape
from tmagen.tirx.result import EncodedMap, TirxKernel

__all__ = ["EncodedMap", "TirxError", "TirxKernel", "build_script", "tirx_script", "with_shape"]
