# SPDX-License-Identifier: Apache-2.0
"""Tests that pytest-xdist gives to one process, as they share what is slow to make. Others go to whoever is idle."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

GROUPS = {
    "tests/diff/test_diff.py": "diff",  # kernels that are compared
    "tests/diff/test_files.py": "diff",
    "tests/emu/test_tirx_chapter.py": "tvm",  # what TVM makes of the chapter's kernels
    "tests/test_compiled.py": "tvm",
    "tests/tirx/test_build.py": "tvm",
    "tests/test_examples.py": "examples",  # the build folder
    "tests/test_planted_faults.py": "planted",  # kernels built together
    "tests/test_timeline.py": "timeline",  # runs that are drawn
    "tests/test_verify_arguments.py": "arguments",  # the few kernels that they call
    "tests/test_verify_mutations.py": "mutations",  # kernels built together
}
"""By file. xdist's own groups are marks, which it does not see with every release of pytest."""


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc, unused-ignore]
    """One test after the other to whoever is idle, groups as a whole and first."""

    def _split_scope(self, nodeid: str) -> str:
        return GROUPS.get(nodeid.partition("::")[0], nodeid)
