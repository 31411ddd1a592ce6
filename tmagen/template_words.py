# SPDX-License-Identifier: Apache-2.0
"""The identifiers that the templates themselves print: a kernel named like one of them would clash with it."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

_NOT_CODE = re.compile(r'\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|//[^\n]*|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
_COMPUTED = re.compile(r"kInstr\w+|kDescriptor\w+|cvt_rn_(f16|bf16)x2")
"""Identifiers whose text comes from the plan and not from a template."""

_WORD = re.compile(r"\b[A-Za-z_]\w*")


def is_emitted(name: str) -> bool:
    """Whether an emitted file may use ``name`` for something of its own."""
    return name in template_words() or _COMPUTED.fullmatch(name) is not None


@cache
def template_words() -> frozenset[str]:
    """Every identifier in the templates, comments and string literals left out."""
    words: set[str] = set()
    for text in _texts(files("tmagen") / "templates" / "cuda"):
        words.update(_WORD.findall(_NOT_CODE.sub(" ", text)))
    return frozenset(words)


def _texts(folder: Traversable) -> list[str]:
    found = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _texts(entry)
        elif entry.name.endswith(".j2"):
            found.append(entry.read_text(encoding="utf-8"))
    return found
