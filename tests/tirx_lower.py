# SPDX-License-Identifier: Apache-2.0
"""Lower the kernels of the TIRx chapter with TVM; a program of its own, so that TVM never loads into the test process.

    python tirx_lower.py CHAPTER STEP,M,N,K ...

prints one JSON list with, for each kernel: its CUDA text, name, grid, block and dynamic shared memory, and the
arguments of cuTensorMapEncodeTiled of each of its parameters. All of it comes from TVM: the text from its CUDA code
generator, the rest from the host function that it would call the kernel with.
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
from typing import Any

ENCODE = "runtime.cuTensorMapEncodeTiled"


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


def lower(prim_func: Any) -> dict[str, Any]:
    """One kernel: what TVM makes of it for sm_100a, device and host side."""
    import tvm
    import tvm.tirx.build
    from tvm.tirx.stmt_functor import post_order_visit

    build = sys.modules["tvm.tirx.build"]
    split: Any = build.split_host_device_mods  # type: ignore[attr-defined]
    halves: list[Any] = []

    def keep(mod: Any) -> Any:
        halves.append(split(mod))
        return halves[-1]

    build.split_host_device_mods = keep  # type: ignore[attr-defined]
    try:
        target = tvm.target.Target({"kind": "cuda", "arch": "sm_100a"})
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
    maps = {args[0]: tensor_map(args[1:]) for name, args in calls if name == ENCODE}
    ((_, launch),) = (call for call in calls if call[0] == kernel)
    sizes = dict(
        zip(function.attrs["tirx.kernel_launch_params"], (int(x) for x in launch[len(function.params) :]), strict=True)
    )
    return {
        "text": executable.mod.imports[0].inspect_source(),
        "kernel": kernel,
        "grid": [sizes.get(f"blockIdx.{axis}", 1) for axis in "xyz"],
        "block": [sizes.get(f"threadIdx.{axis}", 1) for axis in "xyz"],
        "dynamic_smem_bytes": sizes.get("tirx.use_dyn_shared_memory", 0),
        "maps": [maps[var] for var in launch[: len(function.params)]],
    }


def tensor_map(args: list[Any]) -> dict[str, Any]:
    """The arguments of one encode call, after the map itself; the address as a buffer's name and an offset."""
    dtype, rank, pointer = args[0].value, int(args[1]), args[2]
    assert pointer.op.name == "tirx.handle_add_byte_offset"
    numbers = [int(x) for x in args[3:]]
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
