# SPDX-License-Identifier: Apache-2.0
"""nvcc on the emitted step-6 kernel, to a cubin.

python -m benchmarks.compile
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.measure import machine, report, timed
from tmagen.emit import emit
from tmagen.plan import plan
from tmagen.presets import PRESETS
from tmagen.toolchain import compile_cubin, find_nvcc

LIMIT_SECONDS = 1.0


def main() -> None:
    """The command."""
    nvcc = find_nvcc()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "step6.cu")
        source.write_text(emit(plan(PRESETS["step6"].spec)))
        timing = timed(lambda: compile_cubin(nvcc, source, flags=("-O3",)), runs=7)
    print(f"{machine()}, {nvcc}")
    report("nvcc to a cubin", str(timing), LIMIT_SECONDS, timing.median)


if __name__ == "__main__":
    main()
