# SPDX-License-Identifier: Apache-2.0
"""Runs the host part of a kernel file without a GPU, and records what it would have launched.

The file is compiled as it stands, against a stand-in for the CUDA runtime that answers as the real one does:

>>> with build(Path("kernel.cu")) as program, program.start([Device()]) as host:
...     outcome = host.launch(Arguments(a=0x10000, b=0x20000, d=0x30000, m=128, n=128, k=64, lda=64, ldb=64, ldd=128))
>>> outcome.launches[0].grid, outcome.launches[0].params        # what an emulator or a driver needs
"""

from __future__ import annotations

from tmagen.hostrun.build import HostProgram, build, build_runtime
from tmagen.hostrun.errors import HostCrashError, NotModelledError, SourceFormError
from tmagen.hostrun.live import Ended, LiveProgram
from tmagen.hostrun.parameters import Parameter, ParameterTable, parameter_tables
from tmagen.hostrun.program import Program, Unit, build_program
from tmagen.hostrun.record import AttributeCall, CallResult, EncodeCall, LaunchCall, Outcome
from tmagen.hostrun.session import Arguments, Device, HostSession, StreamKind, device_of
from tmagen.hostrun.tensor_map import TensorMapFields, decode_tensor_map

__all__ = [
    "Arguments",
    "AttributeCall",
    "CallResult",
    "Device",
    "EncodeCall",
    "Ended",
    "HostCrashError",
    "HostProgram",
    "HostSession",
    "LaunchCall",
    "LiveProgram",
    "NotModelledError",
    "Outcome",
    "Parameter",
    "ParameterTable",
    "Program",
    "SourceFormError",
    "StreamKind",
    "TensorMapFields",
    "Unit",
    "build",
    "build_program",
    "build_runtime",
    "decode_tensor_map",
    "device_of",
    "parameter_tables",
]
