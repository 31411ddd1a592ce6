# SPDX-License-Identifier: Apache-2.0
"""Every benchmark, one after the other: `python -m benchmarks`."""

from __future__ import annotations

import subprocess
import sys

ALL = (
    ("benchmarks.emit_cold",),
    ("benchmarks.emit_warm",),
    ("benchmarks.compile",),
    ("benchmarks.emulate",),
    ("benchmarks.emulate", "--large"),
    ("benchmarks.diff",),
    ("benchmarks.check",),
    ("benchmarks.check", "--large"),
    ("benchmarks.report",),
)


def main() -> int:
    """The command."""
    for module, *flags in ALL:
        print(f"== python -m {' '.join([module, *flags])}", flush=True)
        if status := subprocess.run([sys.executable, "-m", module, *flags], check=False).returncode:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
