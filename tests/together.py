# SPDX-License-Identifier: Apache-2.0
"""Many kernels in one run of nvcc, most of whose time goes into headers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tests import kept
from tmagen import hostrun
from tmagen.hostrun import HostProgram, HostSession
from tmagen.hostrun.build import link_program, runtime_object
from tmagen.hostrun.parameters import parameter_tables
from tmagen.hostrun.source import find_namespace, harness
from tmagen.ir import DType, Target
from tmagen.toolchain import CompileError, Nvcc, compile_object, find_nvcc
from tmagen.verify.run import target_of

RUNTIME = Path(hostrun.__file__).parent / "runtime"
HEADERS = ["#include <cuda.h>", "#include <cuda_runtime.h>", "#include <cstdio>", '#include "harness.hpp"']
_GUARD = re.compile(r"^#ifndef (\w+)\n#define \1$", re.MULTILINE)
_ENTRY = re.compile(r"^(?:\.visible )?\.entry (\w+)\(.*?^}\n", re.MULTILINE | re.DOTALL)
_STRING = re.compile(r"^(\$L__info_string\d+):\n(?:\.b8 \d+\n)+", re.MULTILINE)


def build_together(texts: Iterable[str]) -> None:
    """Builds what `verify` is going to build of these texts, where `kept_builds` is in use.

    Those of a target are one translation unit. A text that does not compile is left to `verify`, the others with it.
    """
    for target in Target:
        chosen = [text for text in dict.fromkeys(texts) if target_of(text) is target]
        if chosen:
            _build(chosen, target, find_nvcc(arch=target.value))


def _build(texts: list[str], target: Target, nvcc: Nvcc) -> None:
    folder = Path(kept.FILES.enter_context(TemporaryDirectory(prefix="tmagen-")))
    paths = [folder / str(number) / "kernel.cu" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
    unit, out = folder / "unit.cu", folder / "out"
    unit.write_text("\n".join([*HEADERS, *(_part(*part) for part in enumerate(zip(paths, texts, strict=True)))]))
    out.mkdir()
    try:
        made = compile_object(nvcc, unit, out, arch=target.value, flags=[f"-I{RUNTIME}", "-w"])
    except CompileError:
        return
    for number, (path, text) in enumerate(zip(paths, texts, strict=True)):
        program = path.with_name("host")
        main = f"-Wl,--defsym,main=main{number}"
        link_program([made.path, runtime_object(nvcc)], program, ["-pthread", main])
        with HostSession(program, ()) as session:
            introduction = session.introduction
        a, b, d = map(DType, introduction["elements"])
        m, n, k = (size if size >= 0 else None for size in introduction["static_mnk"])
        ptx = _ptx_of(made.ptx, number)
        kernels = tuple(kernel for kernel in made.cubin.kernels if kernel.name.startswith(_symbol(number)))
        built = HostProgram(
            namespace=_name(number),
            nvcc=nvcc,
            target=target,
            elements=(a, b, d),
            static_mnk=(m, n, k),
            ptx=ptx,
            cubin=replace(made.cubin, kernels=kernels),
            tables=parameter_tables(ptx),
            _program=program,
            _folder=path.parent,
        )
        kept.keep(built, text, path, nvcc=nvcc, target=target, called=path.name, kernel=None)


def _part(number: int, of: tuple[Path, str]) -> str:
    """The harness of a text. Macros tell its names from those of the others: the text is included as it stands."""
    path, text = of
    namespace = find_namespace(text)
    names = {word: f"{word}{number}" for word in ("subject", "call_launch", "main")} | {namespace: _name(number)}
    return "\n".join(
        [
            f'extern "C" int main{number}();',
            *(f"#define {word} {own}" for word, own in names.items()),
            harness(path, namespace),
            *(f"#undef {word}" for word in (*names, *_GUARD.findall(text))),
        ]
    )


def _name(number: int) -> str:
    return f"part_{number}"


def _symbol(number: int) -> str:
    """What symbols of a part begin with."""
    return f"_ZN{len(_name(number))}{_name(number)}"


def _ptx_of(ptx: str, number: int) -> str:
    """The PTX without the kernels of other parts and their debug strings, which would be read every time."""
    (entry,) = (found for found in _ENTRY.finditer(ptx) if found[1].startswith(_symbol(number)))
    ptx = _ENTRY.sub(lambda found: found[0] if found[1] == entry[1] else "", ptx)
    labels = set(re.findall(r"\$L__info_string\d+", entry[0]))
    return _STRING.sub(lambda found: found[0] if found[1] in labels else "", ptx)
