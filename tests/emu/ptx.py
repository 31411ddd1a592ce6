# SPDX-License-Identifier: Apache-2.0
"""Small hand-written kernels for the emulator's tests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.emu import GlobalMemory, Launch, Module, parse, run

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"
REGISTERS = (
    ".reg .pred %p<20>;\n.reg .b16 %rs<40>;\n.reg .b32 %r<200>;\n.reg .f32 %f<20>;\n"
    ".reg .b64 %rd<60>;\n.reg .f64 %fd<10>;\n"
)


@lru_cache(maxsize=512)
def module(body: str, *, pointers: int = 1, declarations: str = "", directives: str = "") -> Module:
    """A module with kernel `k` of `pointers` 64-bit parameters. Its first lines load them to %rd1, %rd2, ..."""
    params = ",\n".join(f".param .u64 k_param_{i}" for i in range(pointers))
    loads = "".join(f"ld.param.u64 %rd{i + 1}, [k_param_{i}];\n" for i in range(pointers))
    text = (
        f"{HEADER}{declarations}\n.visible .entry k(\n{params}\n)\n{directives}\n{{\n"
        f"{REGISTERS}{loads}{body}\nret;\n}}\n"
    )
    return parse(text)


def execute(
    body: str,
    *inputs: npt.NDArray[Any],
    out_bytes: int = 4096,
    threads: int = 32,
    grid: int = 1,
    smem: int = 0,
    declarations: str = "",
    directives: str = "",
    completion: str = "eager",
    jobs: int = 1,
    seed: int = 0,
    any_leader: bool = False,
) -> npt.NDArray[np.uint8]:
    """Run `body` with %rd1 = the output (zeros at first) and %rd2, ... = the inputs; the output's bytes."""
    memory = GlobalMemory()
    out = memory.allocate(out_bytes)
    addresses = [out.address]
    for array in inputs:
        raw = np.ascontiguousarray(array).view(np.uint8).ravel()
        allocation = memory.allocate(raw.size)
        allocation.data[:] = raw
        addresses.append(allocation.address)
    kernel = module(body, pointers=len(addresses), declarations=declarations, directives=directives)
    params = b"".join(a.to_bytes(8, "little") for a in addresses)
    launch = Launch("k", (grid, 1, 1), (threads, 1, 1), dynamic_smem_bytes=smem, params=params)
    run(kernel, launch, memory, completion=completion, jobs=jobs, seed=seed, any_leader=any_leader)
    return out.data


def words(body: str, *inputs: npt.NDArray[Any], count: int = 32, **options: Any) -> list[int]:
    """The first `count` 32-bit words of the output."""
    return execute(body, *inputs, **options)[: 4 * count].view(np.uint32).tolist()


LANE = "mov.u32 %r0, %tid.x;\nmul.wide.u32 %rd40, %r0, 4;\nadd.s64 %rd41, %rd1, %rd40;\n"
"""%r0 = thread, %rd41 = the address of the thread's output word."""


def lanes(function: Any) -> list[int]:
    """`function(lane)` for the 32 lanes."""
    return [function(i) for i in range(32)]


_TYPE = {1: "u8", 2: "b16", 4: "b32", 8: "b64"}
_PREFIX = {2: "%rs", 4: "%r", 8: "%rd"}


def apply(instruction: str, result: int, columns: Sequence[tuple[int, Sequence[int]]], how: str = "lanes") -> list[int]:
    """Run `instruction` (`{d}`, `{a}`, `{b}`, ... for registers) on columns of (bytes, 32 values); the 32 results.

    `how`: "lanes" gives each lane its values; "uniform" gives all lanes the first; "one" runs lane 5 alone, and
    the other results are 0.
    """
    first = 100
    text = "mov.u32 %r0, %tid.x;\n"
    names = {}
    for i, (nbytes, _) in enumerate(columns):
        name = f"{_PREFIX[nbytes]}{10 + i}"
        names["abcdef"[i]] = name
        index = "%r0" if how != "uniform" else "0"
        text += f"mov.u32 %r1, {index};\nmul.wide.u32 %rd40, %r1, {nbytes};\nadd.s64 %rd41, %rd{i + 2}, %rd40;\n"
        text += f"ld.global.{_TYPE[nbytes]} {name}, [%rd41];\n"
    names["d"] = f"{_PREFIX[result]}{first if result == 4 else 39 if result == 2 else 50}"
    text += f"mul.wide.u32 %rd42, %r0, {result};\nadd.s64 %rd43, %rd1, %rd42;\n"
    if how == "one":
        text += "setp.ne.u32 %p1, %r0, 5;\n@%p1 bra $done;\n"
    text += instruction.format(**names) + "\n"
    text += f"st.global.{_TYPE[result]} [%rd43], {names['d']};\n$done:\n"
    inputs = [np.array(values, f"u{nbytes}") for nbytes, values in columns]
    return execute(text, *inputs, out_bytes=32 * result).view(f"u{result}").tolist()
