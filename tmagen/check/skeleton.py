# SPDX-License-Identifier: Apache-2.0
"""What a launch file must provide for a module: its kernels and their parameters, as a launch file to fill in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tmagen.check.kernels import plain_name
from tmagen.check.subject import Subject
from tmagen.emu import Entry, Param

_POINTER = re.compile(r"\.param\s+\.[bsu]64\s+\.ptr\b[^,)]*?([\w$%]+)\s*(?=[,)])")
_MAP_BYTES = 128
_SCALARS = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}


def skeleton(subject: Subject) -> str:
    """A launch file for each kernel of the module, one after another; what only a person knows is left to fill in."""
    pointers = set(_POINTER.findall(subject.ptx))
    entries = list(subject.module.entries.values())
    if not entries:
        return f"# {subject.label} has no kernel: no .entry\n"
    parts = ["\n".join(_lines(entry, pointers, commented=bool(number))) for number, entry in enumerate(entries)]
    head = f"# {subject.label}: {len(entries)} kernel{'s' if len(entries) > 1 else ''}\n"
    return head + "\n\n".join(parts) + "\n"


def _lines(entry: Entry, pointers: set[str], *, commented: bool) -> Iterator[str]:
    """The first kernel's file is ready to edit; the others follow as comments."""
    mark = "# " if commented else ""
    for line in _file(entry, pointers):
        yield (mark + line).rstrip()


def _file(entry: Entry, pointers: set[str]) -> Iterator[str]:
    name = plain_name(entry.name)
    if name != entry.name:
        yield f"# {entry.name}"
    yield f'kernel = "{name}"'
    yield "grid = [1, 1, 1]  # CTAs"
    yield from _block(entry)
    cluster = entry.directives.get("reqnctapercluster")
    yield f"cluster = {list(cluster)}  # as the kernel requires" if cluster else "# cluster = [1, 1, 1]"
    yield "dynamic_smem_bytes = 0"
    yield f"params = [  # {entry.param_bytes} bytes"
    buffers, maps = [], []
    for number, param in enumerate(entry.params):
        text, about = _param(param, param.name in pointers, number)
        if "pointer" in text:
            buffers.append(f"buffer_{number}")
        if "map =" in text:
            maps.append(number)
            buffers.append(f"buffer_{number}")
        yield f"  {text},  # {number}: {about}"
    yield "]"
    yield "# names of buffers are yours to choose; with no expectation results are not compared"
    yield 'expect = []  # such as "D == A @ B.T"'
    for buffer in buffers:
        yield from ("", f"[buffers.{buffer}]", 'dtype = "f32"', "shape = [128, 128]", 'fill = "integers"')
    for number in maps:
        yield from ("", f"[maps.map_{number}]", f'buffer = "buffer_{number}"', "box = [32, 32]  # innermost first")
        yield 'swizzle = "none"'


def _block(entry: Entry) -> Iterator[str]:
    required, most = entry.directives.get("reqntid"), entry.directives.get("maxntid")
    if required:
        yield f"block = {list(required)}  # threads, as the kernel requires"
    elif most:
        yield f"block = {list(most)}  # threads; the kernel takes no more"
    else:
        yield "block = [128, 1, 1]  # threads"


def _param(param: Param, is_pointer: bool, number: int) -> tuple[str, str]:
    size, align = param.size, param.align
    if size == _MAP_BYTES and align >= 64:
        return f'{{ map = "map_{number}" }}', f"{size} bytes, a tensor map or a struct"
    if is_pointer:
        return f'{{ pointer = "buffer_{number}" }}', "8 bytes, a pointer"
    if size in _SCALARS and size == align:
        kind = _SCALARS[size]
        return f"{{ {kind} = 0 }}", f"{size} bytes" + (", an integer or a pointer" if size == 8 else "")
    return f'{{ bytes = "{"00" * size}" }}', f"{size} bytes aligned to {align}, a struct"
