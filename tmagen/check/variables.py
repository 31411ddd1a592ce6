# SPDX-License-Identifier: Apache-2.0
"""Variables of modules between the launches of one program.

The emulator places them anew for each launch, with their initial values. That is right unless an earlier launch wrote
one; what it wrote is then missing, and a launch that names the variable is not judged.
"""

from __future__ import annotations

from tmagen.emu import GlobalMemory, Module
from tmagen.emu.compile import compile_entry

_ATTACHED_FROM = 1 << 44


class Variables:
    """Watches the allocations that the emulator makes in `memory`."""

    def __init__(self, memory: GlobalMemory) -> None:
        self._memory = memory
        self._changed: set[tuple[int, str]] = set()  # (module, variable)
        self._modules: list[Module] = []  # kept, so that their identities stay theirs

    def changed_before(self, module: Module, kernel: str) -> str | None:
        """A variable that `kernel` names and that an earlier launch wrote."""
        if not self._changed or kernel not in module.entries:
            return None
        named = (variable.name for variable in compile_entry(module, kernel).memory_variables)
        return next((name for name in named if (id(module), name) in self._changed), None)

    def after(self, module: Module, kernel: str) -> None:
        """Looks at the variables of a launch that has ended, and takes them out of memory."""
        # The program's own allocations are attached, at addresses above any that the emulator chooses.
        own = [allocation for allocation in self._memory.allocations if allocation.address < _ATTACHED_FROM]
        if not own:
            return
        self._modules.append(module)
        for variable, allocation in zip(compile_entry(module, kernel).memory_variables, own, strict=False):
            initial = (variable.initial or b"").ljust(allocation.nbytes, b"\0")
            if allocation.data.tobytes() != initial:
                self._changed.add((id(module), variable.name))
        for allocation in own:
            self._memory.detach(allocation.address)
