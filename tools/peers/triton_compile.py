# SPDX-License-Identifier: Apache-2.0
"""Compile kernels with Triton, for GPUs that need not be there.

A process of its own, with Triton on its path, reads a list of cases as JSON and writes NAME.ptx and NAME.json of each.
A case that Triton itself refuses gets an "error" in its NAME.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def compile_case(case: dict[str, Any], folder: Path) -> None:
    """Write one case's PTX, and what a launch has to know about it."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from tools.peers import triton_kernels

    function = getattr(triton_kernels, case["kernel"])
    a, b, d = case["types"]
    tm, tn, tk = case["tile"]
    signature = {}
    if function.arg_names[0] == "a":
        b_box = f"{tk},{tn}" if case["kernel"].endswith("_kn") else f"{tn},{tk}"
        for name, kind, box in (("a", a, f"{tm},{tk}"), ("b", b, b_box), ("d", d, f"{tm},{tn}")):
            signature[name] = f"tensordesc<{kind}[{box}]>"
    else:
        signature.update(a_ptr=f"*{a}", b_ptr=f"*{b}", d_ptr=f"*{d}")
    signature.update(m="i32", n="i32", k="i32")
    constants = {"tm": tm, "tn": tn, "tk": tk, "depth": case["depth"], "roles": case["roles"]}
    signature.update(dict.fromkeys(constants, "constexpr"))
    options = {"num_warps": case["warps"], "num_stages": case["depth"], "num_ctas": case["ctas"]}
    record: dict[str, Any]
    try:
        source = ASTSource(fn=function, signature=signature, constexprs=constants)
        built = triton.compile(source, target=GPUTarget("cuda", case["target"], 32), options=options)
    except Exception as error:
        record = {"error": str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}
    else:
        (folder / f"{case['name']}.ptx").write_text(built.asm["ptx"])
        facts = built.metadata._asdict()
        maps = [(entry["swizzle"], entry["elem_type"], entry["block_size"]) for entry in facts["tensordesc_meta"] or ()]
        record = {
            "kernel": facts["name"],
            "shared": facts["shared"],
            "scratch": facts["global_scratch_size"],
            "ctas": facts["num_ctas"],
            "maps": maps,
        }
    (folder / f"{case['name']}.json").write_text(json.dumps(record))


def compile_program(case: dict[str, Any], folder: Path) -> None:
    """The same for a program of `triton_programs`: a request with "program" in it."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from tools.peers import triton_programs

    signature = {**case["signature"], **dict.fromkeys(case["constants"], "constexpr")}
    source = ASTSource(fn=getattr(triton_programs, case["program"]), signature=signature, constexprs=case["constants"])
    options = {"num_warps": case["warps"], "num_stages": case["depth"]}
    record: dict[str, Any]
    try:
        built = triton.compile(source, target=GPUTarget("cuda", case["target"], 32), options=options)
    except Exception as error:
        record = {"error": (str(error).strip().splitlines() or [type(error).__name__])[0]}
    else:
        (folder / f"{case['name']}.ptx").write_text(built.asm["ptx"])
        facts = built.metadata._asdict()
        record = {"kernel": facts["name"], "shared": facts["shared"], "scratch": facts["global_scratch_size"]}
    (folder / f"{case['name']}.json").write_text(json.dumps(record))


def compile_gluon(case: dict[str, Any], folder: Path) -> None:
    """The same for a kernel of `gluon_kernels`: a request with "cluster" in it."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.experimental.gluon import language as gl
    from triton.experimental.gluon._runtime import GluonASTSource

    from tools.peers import gluon_kernels

    tm, tn, tk = case["tile"]
    cluster = tuple(map(tuple, case["cluster"]))
    signature = {}
    for name, shape, which in (("a", (tm, tk), 0), ("b", (tk, tn), 1), ("d", (tm, case["width"]), 2)):
        basis = cluster if which == 2 else _operand_basis(cluster, which)
        layout = gl.NVMMASharedLayout.get_default_for(list(shape), gl.float16, cga_layout=basis)
        signature[name] = f"tensordesc<fp16[{shape[0]},{shape[1]}],{layout!r}>"
    constants = {**case["constants"], "cluster": cluster}
    signature.update(dict.fromkeys(constants, "constexpr"))
    options = {"num_warps": 4, "num_ctas": 2 ** len(cluster)}
    record: dict[str, Any]
    try:
        source = GluonASTSource(gluon_kernels.product, signature, constants)
        built = triton.compile(source, target=GPUTarget("cuda", case["target"], 32), options=options)
    except Exception as error:
        record = {"error": (str(error).strip().splitlines() or [type(error).__name__])[0]}
    else:
        (folder / f"{case['name']}.ptx").write_text(built.asm["ptx"])
        facts = built.metadata._asdict()
        maps = [(entry["swizzle"], entry["elem_type"], entry["block_size"]) for entry in facts["tensordesc_meta"]]
        record = {"kernel": facts["name"], "shared": facts["shared"], "ctas": facts["num_ctas"], "maps": maps}
    (folder / f"{case['name']}.json").write_text(json.dumps(record))


def _operand_basis(cluster: tuple[tuple[int, int], ...], which: int) -> tuple[tuple[int, int], ...]:
    """How CTAs share A (0) or B (1): parts of D beside each other have A's rows in common, below each other B's
    columns; a pair shares each of them half by half.
    """
    if not cluster:
        return ()
    rest = [(row, 0) if which == 0 else (0, 2 * column) for row, column in cluster[1:]]
    return ((1, 0) if which == 0 else (0, 1), *rest)


def main() -> None:
    """`python -m tools.peers.triton_compile CASES.json FOLDER`."""
    cases, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    for case in cases:
        kind = compile_program if "program" in case else compile_gluon if "cluster" in case else compile_case
        kind(case, folder)


if __name__ == "__main__":
    main()
