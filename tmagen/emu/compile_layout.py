# SPDX-License-Identifier: Apache-2.0
"""Where the variables of an entry lie: static shared memory, the dynamic part behind it, local memory, parameters."""

from __future__ import annotations

from tmagen.emu.compile_emit import Symbols
from tmagen.emu.module import Addr, Entry, Module, Operand, Sym, Vec

RESERVED_SHARED_BYTES = 1024
"""Shared addresses below this belong to the system on sm_90 and later (PTX ISA, "%reserved_smem_offset_...")."""


class Layout:
    """Addresses of the variables that an entry names."""

    def __init__(self, module: Module, entry: Entry) -> None:
        self.symbols = Symbols()
        named = {operand.name for i in entry.body for o in i.operands for operand in _symbols(o)}
        variables = [*(v for v in module.variables if v.name in named), *entry.variables]
        at = RESERVED_SHARED_BYTES
        local = 0
        dynamic_align = 16
        memory = []
        for variable in variables:
            if variable.space == "shared":
                if variable.nbytes is None:
                    dynamic_align = max(dynamic_align, variable.align)
                    continue
                at = -(-at // variable.align) * variable.align
                self.symbols.shared[variable.name] = at
                at += variable.nbytes
            elif variable.space == "local":
                local = -(-local // variable.align) * variable.align
                self.symbols.local[variable.name] = local
                local += variable.nbytes or 0
            else:
                memory.append(variable)
                self.symbols.memory.add(variable.name)
        self.static_end = at
        # Every `extern .shared` array names the same dynamic part.
        self.dynamic_base = -(-at // dynamic_align) * dynamic_align
        for variable in variables:
            if variable.space == "shared" and variable.nbytes is None:
                self.symbols.shared[variable.name] = self.dynamic_base
        for param in entry.params:
            self.symbols.param[param.name] = param.offset
        self.local_bytes = -(-local // 16) * 16
        self.memory = tuple(memory)


def _symbols(operand: Operand) -> list[Sym]:
    if isinstance(operand, Sym):
        return [operand]
    if isinstance(operand, Addr):
        return _symbols(operand.base)
    if isinstance(operand, Vec):
        return [s for item in operand.items for s in _symbols(item)]
    return []
