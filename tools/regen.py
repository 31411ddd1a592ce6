# SPDX-License-Identifier: Apache-2.0
"""Writes `generated/`: every preset as a kernel for every target, and an index of what each takes.

    python -m tools.regen            rewrite what differs, remove what no preset makes
    python -m tools.regen --check    say what differs, and exit with 1 if anything does

The registers in the index come from the pinned nvcc of the `toolchain` extra, so that the index is the same everywhere.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tmagen.emit import emit
from tmagen.emit_text import schedule_words
from tmagen.ir import Gemm, Target
from tmagen.plan import Plan, plan
from tmagen.presets import PRESETS
from tmagen.spec import to_command
from tmagen.toolchain import KernelResources, Nvcc, compile_cubin, find_nvcc
from tmagen.toolchain.nvcc import nvidia_packages

GENERATED = Path(__file__).resolve().parent.parent / "generated"


HEADS = (
    "| kernel | what it is | registers | SMEM bytes | TMEM columns | command |",
    "|---|---|---:|---:|---:|---|",
)


def pinned_nvcc() -> Nvcc:
    """The nvcc of the `toolchain` extra. Raises ToolchainError if it is not installed."""
    for root in nvidia_packages():
        return find_nvcc(root / "bin" / "nvcc")
    raise SystemExit('regen: the pinned nvcc is missing: pip install -e ".[toolchain]"')


def kernels() -> dict[Path, tuple[Plan, str]]:
    """Path below `generated/` to plan and text, one for each preset and target."""
    made = {}
    for target in sorted(Target, key=lambda target: target is not Gemm().target):  # the default target first
        for preset in PRESETS.values():
            chosen = plan(replace(preset.spec, target=target))
            made[Path(target.value, f"{chosen.name}.cu")] = (chosen, emit(chosen))
    return made


def resources_of(made: dict[Path, tuple[Plan, str]], target: Target, nvcc: Nvcc) -> dict[str, KernelResources]:
    """What ptxas says of the kernels of a target, by their names. One translation unit: headers take nvcc longest."""
    texts = {chosen.name: text for chosen, text in made.values() if chosen.spec.target is target}
    with tempfile.TemporaryDirectory() as folder:
        unit = Path(folder, "kernels.cu")
        unit.write_text("".join(texts.values()))
        found = compile_cubin(nvcc, unit, arch=target.value, flags=("-O3",)).kernels
    # The symbol of a kernel has its name, with its length before it: one name may begin another.
    return {name: one for name in texts for one in found if f"{len(name)}{name}" in one.name}


def index(made: dict[Path, tuple[Plan, str]], nvcc: Nvcc) -> str:
    """The text of `generated/README.md`."""
    lines = [
        "# Generated kernels",
        "",
        "Written by `make regen`; a test holds the files to what the templates emit, byte for byte.",
        f"Registers are those of nvcc {nvcc.version} with `-O3`; no kernel spills.",
    ]
    target, all_resources = None, dict[str, KernelResources]()
    for path, (chosen, _) in made.items():
        if chosen.spec.target is not target:
            target = chosen.spec.target
            lines += ["", f"## {target.value}", "", *HEADS]
            all_resources = resources_of(made, target, nvcc)
        resources = all_resources[chosen.name]
        if resources.spill_store_bytes or resources.spill_load_bytes:
            raise SystemExit(f"regen: {path} spills registers")
        problem = chosen.spec.problem
        what = f"{problem.a.value} -> {problem.d.value}, {schedule_words(chosen)}"
        lines.append(
            f"| [{path.stem}]({path.as_posix()}) | {what} | {resources.registers} | {chosen.smem.bytes:,} "
            f"| {chosen.tmem.columns or '-'} | `{to_command(chosen.spec)}` |"
        )
    return "\n".join(lines) + "\n"


def wanted() -> dict[Path, str]:
    """Every file that belongs into `generated/`, as text."""
    made = kernels()
    return {Path("README.md"): index(made, pinned_nvcc()), **{path: text for path, (_, text) in made.items()}}


def differences(files: dict[Path, str]) -> list[str]:
    """What is missing, changed or left over in `generated/`."""
    found = []
    for path, text in files.items():
        there = GENERATED / path
        if not there.is_file():
            found.append(f"missing: {path}")
        elif there.read_text() != text:
            found.append(f"changed: {path}")
    present = {path.relative_to(GENERATED) for path in GENERATED.rglob("*") if path.is_file()}
    return found + [f"left over: {path}" for path in sorted(present - set(files))]


def write(files: dict[Path, str]) -> None:
    """Makes `generated/` hold exactly these files."""
    for line in differences(files):
        kind, _, name = line.partition(": ")
        path = GENERATED / name
        if kind == "left over":
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[Path(name)])
        print(f"{'removed' if kind == 'left over' else 'wrote'} generated/{name}")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if anything differs")
    arguments = parser.parse_args()
    files = wanted()
    if not arguments.check:
        write(files)
        return 0
    found = differences(files)
    print("\n".join(found) or "generated/ is what the templates emit")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
