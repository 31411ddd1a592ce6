# SPDX-License-Identifier: Apache-2.0
"""The questions, a module for each topic: a docstring that names it, and `QUESTIONS`."""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache

from tests.gpu.conformance.question import Question


@lru_cache(maxsize=1)
def topics() -> dict[str, tuple[Question, ...]]:
    """All questions by topic, which is the name of a module here."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    found = {name: tuple(importlib.import_module(f"{__name__}.{name}").QUESTIONS) for name in names}
    ids = [question.id for questions in found.values() for question in questions]
    if len(ids) != len(set(ids)):
        raise ValueError(f"questions of one id: {sorted({i for i in ids if ids.count(i) > 1})}")
    return found


def title(topic: str) -> str:
    """What a topic is about: the first line of its module."""
    return (importlib.import_module(f"{__name__}.{topic}").__doc__ or topic).strip().splitlines()[0].rstrip(".")
