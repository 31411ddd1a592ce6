# SPDX-License-Identifier: Apache-2.0
"""The program that loads TVM: a process of its own, which prints what TVM makes of TIRx scripts.

    python worker.py SCRIPT...

prints one JSON list with, for each script: its CUDA text, the kernel's name, grid, block and dynamic shared memory, and
the arguments of cuTensorMapEncodeTiled of each of its parameters. All of it comes from TVM: the text from its CUDA code
generator, the rest from the host function that it would call the kernel with.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from typing import Any

ENCODE = "runtime.cuTensorMapEncodeTiled"
ARCH = "sm_100a"


def lower(prim_func: Any) -> dict[str, Any]:
    """One kernel: what TVM makes of it, device and host side."""
    import tvm
    import tvm.tirx.build
    from tvm.tirx.stmt_functor import post_order_visit

    build = sys.modules["tvm.tirx.build"]
    split: Any = build.split_host_device_mods
    halves: list[Any] = []

    def keep(mod: Any) -> Any:
        halves.append(split(mod))
        return halves[-1]

    build.split_host_device_mods = keep  # type: ignore[attr-defined]
    try:
        target = tvm.target.Target({"kind": "cuda", "arch": ARCH})
        executable = tvm.compile(tvm.IRModule({"main": prim_func}), target=target, tir_pipeline="tirx")
    finally:
        build.split_host_device_mods = split  # type: ignore[attr-defined]

    ((host, devices),) = halves
    (device,) = devices.values()
    ((kernel, function),) = ((var.name_hint, func) for var, func in device.functions.items())
    calls: list[tuple[str, list[Any]]] = []

    def visit(node: Any) -> None:
        if type(node).__name__ == "Call" and node.args and type(node.args[0]).__name__ == "StringImm":
            calls.append((node.args[0].value, list(node.args[1:])))

    for entry in host.functions.values():
        post_order_visit(entry.body, visit)
    maps = {args[0]: _tensor_map(args[1:]) for name, args in calls if name == ENCODE}
    ((_, launch),) = (call for call in calls if call[0] == kernel)
    count = len(function.params)
    sizes = dict(
        zip(function.attrs["tirx.kernel_launch_params"], (int(value) for value in launch[count:]), strict=True)
    )
    return {
        "text": executable.mod.imports[0].inspect_source(),
        "kernel": kernel,
        "grid": [sizes.get(f"blockIdx.{axis}", 1) for axis in "xyz"],
        "block": [sizes.get(f"threadIdx.{axis}", 1) for axis in "xyz"],
        "dynamic_smem_bytes": sizes.get("tirx.use_dyn_shared_memory", 0),
        "maps": [
            {"parameter": parameter.name, **maps[var]}
            for parameter, var in zip(function.params, launch[:count], strict=True)
        ],
    }


def _tensor_map(args: list[Any]) -> dict[str, Any]:
    """The arguments of one encode call, after the map itself; the address as a buffer's name and an offset in bytes."""
    dtype, rank, pointer = args[0].value, int(args[1]), args[2]
    if pointer.op.name != "tirx.handle_add_byte_offset":
        raise ValueError(f"a tensor map's address is no buffer and offset: {pointer}")
    numbers = [int(value) for value in args[3:]]
    lengths = {"dims": rank, "strides": rank - 1, "box": rank, "element_strides": rank}
    found: dict[str, Any] = {}
    for name, length in lengths.items():
        found[name], numbers = numbers[:length], numbers[length:]
    interleave, swizzle, l2_promotion, oob_fill = numbers
    return found | {
        "dtype": dtype,
        "rank": rank,
        "buffer": str(pointer.args[0]).removesuffix(".data"),
        "offset": int(pointer.args[1]),
        "interleave": interleave,
        "swizzle": swizzle,
        "l2_promotion": l2_promotion,
        "oob_fill": oob_fill,
    }


def prim_func_of(script: str) -> Any:
    """The kernel that a script defines. Raises ValueError unless it is exactly one."""
    found = [value for value in runpy.run_path(script).values() if type(value).__name__ == "PrimFunc"]
    if len(found) != 1:
        raise ValueError(f"{script} defines {len(found)} kernels; it takes exactly one")
    return found[0]


def main() -> None:
    """The program. TVM would try NVRTC where libcuda loads; the text is the same without."""
    os.environ["TVM_COMPILE_FORCE_FALLBACK"] = "1"
    os.environ["TVM_BACKTRACE"] = "1"
    kernels = [lower(prim_func_of(script)) for script in sys.argv[1:]]
    json.dump(kernels, sys.stdout)


if __name__ == "__main__":
    main()
