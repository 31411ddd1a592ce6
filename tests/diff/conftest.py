# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests import kept
from tmagen.diff import code, cost, files, sides, tvm_side
from tmagen.toolchain import disassemble

COMPILE_TEXT, COMPILE_PTX, PTX_OF_TEXT, DISASSEMBLE = map(
    kept.once, (code.compile_text, code.compile_ptx_text, code.ptx_of_text, disassemble)
)


@pytest.fixture
def compiled_once(kept_builds: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """What is compared is compiled and disassembled once, whatever it is compared with. `undo()` ends that."""
    for module in (sides, files, tvm_side):
        for name, function in (
            ("compile_text", COMPILE_TEXT),
            ("compile_ptx_text", COMPILE_PTX),
            ("ptx_of_text", PTX_OF_TEXT),
            ("build_scripts", kept.build_scripts),
            ("build_script", lambda script: kept.build_scripts([script])[0]),
        ):
            if hasattr(module, name):
                kept_builds.setattr(module, name, function)
    kept_builds.setattr(cost, "disassemble", DISASSEMBLE)
    return kept_builds
