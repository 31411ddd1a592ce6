# SPDX-License-Identifier: Apache-2.0
"""The example project builds against the generated kernels as a user would build it."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tools.regen import pinned_nvcc

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "cmake"
CMAKE = Path(sysconfig.get_path("scripts"), "cmake")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the project is built: for one target and then for the other."""
    return tmp_path_factory.mktemp("build")


@pytest.mark.parametrize("target", ["sm_100a", "sm_90a"])
def test_the_cmake_project_builds_and_links(built: Path, target: str) -> None:
    nvcc = pinned_nvcc()
    # The wheels keep libcudart in lib, where nvcc does not look by itself; an installed CUDA needs none of this.
    environment = {**os.environ, "LIBRARY_PATH": os.pathsep.join(map(str, nvcc.library_dirs))}
    chosen = [f"-DTMAGEN_TARGET={target}", f"-DCMAKE_CUDA_COMPILER={nvcc.path}"]
    configure = [CMAKE, "-S", EXAMPLE, "-B", built, *chosen]
    for command in (configure, [CMAKE, "--build", built, "--parallel", "2"]):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning" not in done.stderr.lower()
    run = subprocess.run([built / "gemm_example"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    linked = subprocess.run(["ldd", built / "gemm_example"], capture_output=True, text=True, check=True)
    assert "libcuda.so" not in linked.stdout


def test_another_target_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [CMAKE, "-S", EXAMPLE, "-B", tmp_path, "-DTMAGEN_TARGET=sm_90"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "TMAGEN_TARGET is sm_90; it can be sm_100a or sm_90a" in " ".join(done.stderr.split())
