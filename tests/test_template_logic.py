# SPDX-License-Identifier: Apache-2.0
"""Templates print what the plan holds: no arithmetic, no comparison, no variable."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import Environment, nodes

import tmagen

TEMPLATES = Path(tmagen.__file__).parent / "templates"
FILES = sorted(TEMPLATES.rglob("*.j2"))

LOGIC = (
    nodes.BinExpr,  # arithmetic, `and`, `or`
    nodes.Concat,
    nodes.Compare,
    nodes.CondExpr,
    nodes.Assign,
    nodes.AssignBlock,
    nodes.Neg,
    nodes.Pos,
    nodes.Test,
)
"""`not` is left: a template may ask for the absence of what a plan names."""


def logic_in(source: str) -> list[str]:
    tree = Environment().parse(source)
    return [f"line {node.lineno}: {type(node).__name__}" for node in tree.find_all(LOGIC)]


def test_there_are_templates() -> None:
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(TEMPLATES).as_posix())
def test_template_holds_no_logic(path: Path) -> None:
    assert logic_in(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        *("{{ a + b }}", "{{ a - 1 }}", "{{ a * 2 }}", "{{ a / 2 }}", "{{ a // 2 }}", "{{ a % 2 }}", "{{ a ** 2 }}"),
        *("{{ a ~ b }}", "{{ -a }}", "{{ a == b }}", "{% if a > 1 %}{% endif %}", "{% if a and b %}{% endif %}"),
        *("{% if a or b %}{% endif %}", "{% set a = 1 %}", "{% set a %}x{% endset %}", "{{ a if b else c }}"),
        *("{% if a is none %}{% endif %}", "{% for x in y %}{{ x + 1 }}{% endfor %}"),
    ],
)
def test_logic_is_found(source: str) -> None:
    assert logic_in(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ plan.x }}",
        "{% if plan.persistent %}{% endif %}",
        "{% if not a %}{% endif %}",
        "{% for x in y %}{{ x.z }}{% endfor %}",
    ],
)
def test_printing_is_not_logic(source: str) -> None:
    assert logic_in(source) == []
