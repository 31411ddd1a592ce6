# SPDX-License-Identifier: Apache-2.0
"""A functional emulator of PTX for sm_90 and sm_100 kernels: parse a module, launch a kernel, look at memory
afterwards.
"""

from __future__ import annotations

from tmagen.emu.errors import Deadlock, EmulatorError, Endless, Fault, NotJudged, ParseError
from tmagen.emu.launch import Launch, Predecessor, RunResult
from tmagen.emu.machine import run
from tmagen.emu.memory import Allocation, GlobalMemory
from tmagen.emu.module import Entry, Module, Param
from tmagen.emu.observe.trace import Trace
from tmagen.emu.observe.tracing import Tracing
from tmagen.emu.parser import parse
from tmagen.emu.tensormap import TensorMap
from tmagen.emu.timing.latency import table_for

__all__ = [
    "Allocation",
    "Deadlock",
    "EmulatorError",
    "Endless",
    "Entry",
    "Fault",
    "GlobalMemory",
    "Launch",
    "Module",
    "NotJudged",
    "Param",
    "ParseError",
    "Predecessor",
    "RunResult",
    "TensorMap",
    "Trace",
    "Tracing",
    "parse",
    "run",
    "table_for",
]
