# SPDX-License-Identifier: Apache-2.0
"""Words for people: places in shared memory, and who waits for what."""

from __future__ import annotations

from typing import Any

from tmagen.emu.module import Entry, Instruction
from tmagen.emu.state.convergence import CONVERGE, WAIT, Fragment, LaneSet


def place_in_shared(address: int, dynamic_base: int, entry: Entry, end: int) -> str:
    """ "shared 0x408 (dynamic + 8)" for an address in the shared window."""
    if dynamic_base <= address < end:
        return f"shared {address:#x} (dynamic + {address - dynamic_base})"
    return f"shared {address:#x}"


def lanes_text(lanes: LaneSet) -> str:
    """ "lanes 0-31", "lane 0", "lanes 0-3, 8"."""
    runs: list[list[int]] = []
    for lane in lanes.lanes:
        if runs and runs[-1][1] == lane - 1:
            runs[-1][1] = lane
        else:
            runs.append([lane, lane])
    text = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
    return f"lane{'s' if lanes.count > 1 else ''} {text}"


def instruction_place(instruction: Instruction) -> str:
    """ "PTX line 12, kernel.cu:34" with the outermost place of an inlined call."""
    text = f"PTX line {instruction.line}"
    source = instruction.source
    if source is not None:
        text += f", {source.file}:{source.line}"
        if source.outer is not None:
            text += f" (inlined at {source.outer[0]}:{source.outer[1]})"
    return text


def waiting_lines(cta: Any) -> list[str]:
    """Who waits where: a line for each place and reason, warps and lanes that share them together."""
    groups: dict[str, dict[str, list[int]]] = {}
    for warp in cta.warps:
        for fragment in warp.fragments:
            groups.setdefault(_why(cta, fragment), {}).setdefault(lanes_text(fragment.lanes), []).append(warp.index)
    lines = []
    for why, who in groups.items():
        names = []
        for lanes, warps in who.items():
            names.append(f"warp{'s' if len(warps) > 1 else ''} {', '.join(map(str, warps))} {lanes}")
        lines.append(f"CTA ({', '.join(map(str, cta.ctaid))}) {'; '.join(names)}")
        lines.append(f"  {why}")
    return lines


def _why(cta: Any, fragment: Fragment) -> str:
    if fragment.state == WAIT and fragment.wait is not None:
        instruction = cta.program.waits[fragment.wait.number]
        name = ".".join(instruction.parts[:2])
        return f"{instruction_place(instruction)}: {name} {fragment.wait.describe(cta)}"
    if fragment.state == CONVERGE:
        block = cta.program.first_instruction(fragment.pc)
        where = (
            f"{instruction_place(block)}: {block.parts[0]}.{block.parts[1]} "
            if block is not None and len(block.parts) > 1
            else ""
        )
        return f"{where}waits for the other lanes of its warp"
    return "looks at memory again and again"
