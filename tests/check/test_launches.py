# SPDX-License-Identifier: Apache-2.0
"""What a launch file says of a launch beside grid and parameters: registers, and the grid before."""

from __future__ import annotations

from typing import Any

import pytest

from tests.check.kernels import ADD_S32, add_launch, check_add

WAITS = ADD_S32.replace("ld.global.u32 %r6", "griddepcontrol.wait;\nld.global.u32 %r6")
LATE = ADD_S32.replace("st.global.u32", "griddepcontrol.wait;\nst.global.u32")


@pytest.mark.parametrize(
    ("text", "dependent", "rules"),
    [
        (ADD_S32, False, []),
        (ADD_S32, True, ["GD-01"] * 3),
        (WAITS, True, []),
        (LATE, True, ["GD-01"] * 2),
        (LATE, {"writes": ["c"]}, ["GD-01"] * 0),
        (LATE, {"writes": ["a"], "reads": []}, ["GD-01"]),
        (ADD_S32, {"writes": [], "reads": ["c"]}, ["GD-01"]),
        (ADD_S32, {"writes": [], "reads": ["a"]}, []),
    ],
)
def test_the_grid_before(text: str, dependent: Any, rules: list[str]) -> None:
    report = check_add(add_launch(programmatic_dependent_launch=dependent), text)
    assert [finding.rule for finding in report.findings] == rules, report.text()
    assert report.exit_code == bool(rules)


def test_the_instruction_that_is_too_early_is_named() -> None:
    text = check_add(add_launch(programmatic_dependent_launch={"writes": ["b"]}), LATE).text()
    assert "instruction: ld.global.u32 %r7, [%rd6]" in text and "griddepcontrol.wait" in text


@pytest.mark.parametrize(("registers", "rules"), [(None, []), (136, []), (128, ["SR-05"])])
def test_registers_at_launch(registers: int | None, rules: list[str]) -> None:
    """Two warpgroups: one keeps 40 registers for each thread, the other asks for 232."""
    change = (
        "mov.u32 %r9, %tid.x;\nsetp.lt.u32 %p1, %r9, 128;\n@%p1 bra FEW;\nsetmaxnreg.inc.sync.aligned.u32 232;\n"
        "bra SET;\nFEW:\nsetmaxnreg.dec.sync.aligned.u32 40;\nSET:\n"
    )
    text = ADD_S32.replace("\n{\n.reg", "\n.maxntid 256\n{\n.reg").replace(
        "mov.u32 %r2, %ctaid.x;", change + "mov.u32 %r2, %ctaid.x;"
    )
    launch = add_launch(256, block=256, grid=1)
    launch |= {} if registers is None else {"registers": registers}
    report = check_add(launch, text)
    assert [finding.rule for finding in report.findings] == rules, report.text()
