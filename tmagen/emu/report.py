# SPDX-License-Identifier: Apache-2.0
"""Words for people: places in shared memory, and who waits for what."""

from __future__ import annotations

from typing import Any

from tmagen.emu.module import Entry, Frame, Instruction, Source
from tmagen.emu.state.fragments import CONVERGE, WAIT, Fragment, LaneSet


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
    """ "PTX line 12, kernel.cu:34 in main_loop (ptx::wait at line 7), called at line 80": first the innermost line that
    is no wrapper's, then the wrappers, then the callers.
    """
    text = f"PTX line {instruction.line}"
    source = instruction.source
    if source is None:
        return text
    return f"{text}, {source.told.file}:{source.told.line}{calls_text(source)}"


def calls_text(source: Source) -> str:
    """ " in main_loop (ptx::wait at line 7), called at line 80"; "" for a line of the kernel itself."""
    told = source.told
    text = f" in {told.function}" if told.function else ""
    frames = source.frames
    number = frames.index(told)
    inner = [f"{frame.function or 'inlined'} at {_line_of(frame, told)}" for frame in frames[:number]]
    if inner:
        text += f" ({', '.join(reversed(inner))})"
    return text + "".join(f", called at {_line_of(frame, told)}" for frame in frames[number + 1 :])


def _line_of(frame: Frame, told: Frame) -> str:
    return f"line {frame.line}" if frame.file == told.file else f"{frame.file}:{frame.line}"


def waiting_lines(cta: Any) -> list[str]:
    """Who waits where: a line for each place and reason, warps and lanes that share them together."""
    groups: dict[tuple[str, ...], dict[str, list[int]]] = {}
    for warp in cta.warps:
        for fragment in warp.fragments:
            groups.setdefault(_why(cta, fragment), {}).setdefault(lanes_text(fragment.lanes), []).append(warp.index)
    lines = []
    for why, who in groups.items():
        names = []
        for lanes, warps in who.items():
            names.append(f"warp{'s' if len(warps) > 1 else ''} {', '.join(map(str, warps))} {lanes}")
        lines.append(f"CTA ({', '.join(map(str, cta.ctaid))}) {'; '.join(names)}")
        lines.extend(f"  {line}" for line in why)
    return lines


def waiting_at(cta: Any) -> list[Instruction]:
    """The instructions that threads wait at, each once: waits for something first, then for lanes of their own warp."""
    fragments = [fragment for warp in cta.warps for fragment in warp.fragments]
    waits = [cta.program.waits[f.wait.number] for f in fragments if f.state == WAIT and f.wait is not None]
    others = [cta.program.first_instruction(f.pc) for f in fragments if f.state == CONVERGE]
    return list(dict.fromkeys([*waits, *(found for found in others if found is not None)]))


def _why(cta: Any, fragment: Fragment) -> tuple[str, ...]:
    """Where a fragment waits, and for what, indented."""
    if fragment.state == WAIT and fragment.wait is not None:
        instruction = cta.program.waits[fragment.wait.number]
        what, *more = fragment.wait.describe(cta).split("\n")
        return instruction_place(instruction), f"  {_name(instruction)} {what}", *(f"    {line}" for line in more)
    if fragment.state == CONVERGE:
        block = cta.program.first_instruction(fragment.pc)
        waits = "waits for the other lanes of its warp"
        return (waits,) if block is None else (instruction_place(block), f"  {_name(block)} {waits}")
    block = cta.program.first_instruction(fragment.pc)
    looks = "looks at memory again and again"
    return (looks,) if block is None else (instruction_place(block), f"  {looks}")


def _name(instruction: Instruction) -> str:
    return ".".join(instruction.parts[:2])
