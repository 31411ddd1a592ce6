# SPDX-License-Identifier: Apache-2.0
"""The parameter table of each kernel, read from its PTX: where in the parameter block each argument lies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

from tmagen.hostrun.errors import NotModelledError

_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?([^{]*)\{")
_LAUNCH_BOUND = re.compile(r"\.(?:maxntid|reqntid)\s+(\d+(?:\s*,\s*\d+)*)")
_CLUSTER = re.compile(r"\.reqnctapercluster\s+(\d+(?:\s*,\s*\d+)*)")
_PARAM = re.compile(
    r"\.param(?:\s+\.align\s+(?P<align>\d+))?\s+\.(?P<type>[bsuf]\d+)"
    r"(?:\s+\.ptr(?:\s+\.\w+)*(?:\s+\.align\s+\d+)?)?\s+(?P<name>[\w$]+)(?:\[(?P<count>\d+)\])?$"
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One kernel parameter."""

    name: str
    offset: int  # in the parameter block, bytes
    size: int  # bytes
    align: int  # bytes


@dataclass(frozen=True, slots=True)
class ParameterTable:
    """The parameters of one kernel, in order."""

    kernel: str
    parameters: tuple[Parameter, ...]
    max_threads: int = 1024  # per CTA: the launch bound
    cluster: tuple[int, int, int] = (1, 1, 1)  # CTAs, of a launch that names no cluster

    @property
    def size(self) -> int:
        """The parameter block, bytes."""
        last = self.parameters[-1] if self.parameters else None
        return last.offset + last.size if last else 0


def parameter_tables(ptx: str) -> dict[str, ParameterTable]:
    """The table of every entry of a PTX module, by kernel name.

    Parameters follow each other, each at the next multiple of its alignment: its own size for a scalar, what `.align`
    says for an array (PTX ISA, parameter state space). Raises NotModelledError for a declaration of another form.
    """
    return {
        match[1]: ParameterTable(
            match[1], tuple(_parameters(match[2] or "")), _launch_bound(match[3]), _required_cluster(match[3])
        )
        for match in _ENTRY.finditer(_without_comments(ptx))
    }


def _without_comments(ptx: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", ptx, flags=re.DOTALL)


def _launch_bound(directives: str) -> int:
    bound = _LAUNCH_BOUND.search(directives)
    return prod(map(int, bound[1].split(","))) if bound else 1024


def _required_cluster(directives: str) -> tuple[int, int, int]:
    """What `__cluster_dims__` asks for (PTX ISA, `.reqnctapercluster`)."""
    required = _CLUSTER.search(directives)
    x, y, z = (*map(int, required[1].split(",")), 1, 1)[:3] if required else (1, 1, 1)
    return x, y, z


def _parameters(declarations: str) -> list[Parameter]:
    found: list[Parameter] = []
    offset = 0
    for declaration in declarations.split(","):
        text = " ".join(declaration.split())
        if not text:
            continue
        match = _PARAM.match(text)
        if match is None:
            raise NotModelledError(f"the kernel parameter `{text}` is of a form that is not known")
        element = int(match["type"][1:]) // 8
        size = element * int(match["count"] or 1)
        align = int(match["align"] or element)
        offset = -(-offset // align) * align
        found.append(Parameter(match["name"], offset, size, align))
        offset += size
    return found
