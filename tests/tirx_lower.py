# SPDX-License-Identifier: Apache-2.0
"""Lower the kernels of the TIRx chapter with TVM; a program of its own, so that TVM never loads into the test process.

    python tirx_lower.py CHAPTER STEP,M,N,K ...

prints one JSON list with what TVM makes of each kernel, as the worker of the TIRx backend says it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from tmagen.tirx.worker import lower


def chapter_module(chapter: Path, folder: Path) -> ModuleType:
    """The code of the chapter as a module: imports, constants and the three functions, as they stand in the prose."""
    text = chapter.read_text(encoding="utf-8")
    head = re.findall(r"^(?:import tvm\b.*|from tvm\b.* import .*|[A-Z][A-Z_]+ = \d+.*)$", text, re.MULTILINE)
    functions = re.findall(r"^def hgemm_v\d.*?^    return kernel$", text, re.MULTILINE | re.DOTALL)
    source = folder / "chapter.py"
    source.write_text("\n".join([*dict.fromkeys(head), *functions, ""]), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("chapter", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    # TVM would try NVRTC where libcuda loads; the text is the same without.
    os.environ["TVM_COMPILE_FORCE_FALLBACK"] = "1"
    os.environ["TVM_BACKTRACE"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        module = chapter_module(Path(sys.argv[1]), Path(folder))
        kernels = []
        for case in sys.argv[2:]:
            step, *shape = map(int, case.split(","))
            kernels.append(lower(getattr(module, f"hgemm_v{step}")(*shape)))
    json.dump(kernels, sys.stdout)


if __name__ == "__main__":
    main()
