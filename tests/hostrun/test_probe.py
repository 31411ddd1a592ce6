# SPDX-License-Identifier: Apache-2.0
"""The stand-in runtime answers as a real one does.

driver_answers.txt is what probe.cu printed on two H200s with driver 580.159.04 and the CUDA 13.0 runtime, compiled with

    nvcc -std=c++17 -gencode arch=compute_90a,code=sm_90a -c probe.cu
    nvcc -std=c++17 -gencode arch=compute_100a,code=sm_100a -c probe_foreign.cu
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tmagen.hostrun import Device, build_runtime, parameter_tables
from tmagen.hostrun.build import device_lines, kernel_lines
from tmagen.toolchain import compile_object, find_nvcc, link_host

HERE = Path(__file__).parent
H200 = Device(major=9, minor=0, sm_count=132, smem_optin_bytes=232448)

# The driver's text asks for 64-byte alignment of the map; it takes 32 silently. Better to be told.
STRICTER = {"map at 32": "1"}


def answers(text: str) -> dict[str, str]:
    return dict(line.split(" = ", 1) for line in text.splitlines())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The probe, linked with the stand-in as a shared libcudart, and run."""
    folder = tmp_path_factory.mktemp("probe")
    nvcc = find_nvcc()
    library = build_runtime(folder / "runtime", nvcc=nvcc)
    objects, lines = [], list(device_lines([H200, H200]))
    for name, arch in (("probe", "sm_90a"), ("probe_foreign", "sm_100a")):
        (folder / name).mkdir()
        compiled = compile_object(nvcc, HERE / f"{name}.cu", folder / name, arch=arch)
        objects.append(compiled.path)
        lines.extend(kernel_lines(parameter_tables(compiled.ptx), compiled.cubin, arch))
    (folder / "config").write_text("\n".join(lines) + "\n")
    link_host(objects, folder / "program", flags=[f"-L{library.parent}", "-lcudart", f"-Wl,-rpath,{library.parent}"])
    environment = {
        **os.environ,
        "TMAGEN_HOSTRUN_CONFIG": str(folder / "config"),
        "TMAGEN_HOSTRUN_RECORD": str(folder / "record"),
    }
    done = subprocess.run([folder / "program"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (folder / "answers").write_text(done.stdout)
    return folder


def test_answers_are_those_of_the_real_runtime(folder: Path) -> None:
    real = answers((HERE / "driver_answers.txt").read_text())
    assert len(real) > 180
    assert answers((folder / "answers").read_text()) == {**real, **STRICTER}


def test_program_with_its_own_main_leaves_a_record(folder: Path) -> None:
    events = [json.loads(line) for line in (folder / "record").read_text().splitlines()]
    assert {event["event"] for event in events} == {"launch", "set_attribute", "encode"}
    refused = [event for event in events if event["event"] == "launch" and event["error"]]
    assert all(event["params"] == "" for event in refused)
    assert {event["error_name"] for event in refused} >= {"cudaErrorInvalidValue", "cudaErrorInvalidClusterSize"}
