# SPDX-License-Identifier: Apache-2.0
"""Where a cubin expects its kernel's parameters.

PTX numbers parameters from offset 0. ptxas may put a gap in front of them: parameters start at a fixed place of the
constant bank, and a tensor map has to be aligned in the bank itself. A launch that passes pointers to parameters need
not know; one that passes them as one buffer, as PyCUDA does (cuLaunchKernel with CU_LAUNCH_PARAM_BUFFER_POINTER), has
to leave the gap, or the kernel reads its parameters from the wrong place.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tmagen.gpu.errors import GpuError

# Of the section .nv.info.KERNEL, a list of attributes: format, attribute, then a 16-bit value or size and a payload.
_FORMAT_SIZED = 4  # EIFMT_SVAL
_KPARAM_INFO = 0x17  # EIATTR_KPARAM_INFO: index, ordinal, offset, and in the upper 14 bits of a word the size
_CBANK_PARAM_SIZE = 0x19  # EIATTR_CBANK_PARAM_SIZE: all parameters, gap included

_ELF64 = b"\x7fELF\x02"
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")


@dataclass(frozen=True, slots=True)
class CubinParameters:
    """The parameter buffer of one kernel."""

    places: tuple[tuple[int, int], ...]  # (offset, size) of each parameter, bytes
    size: int  # of the buffer, bytes

    def buffer(self, block: bytes) -> bytes:
        """`block`, whose first parameter is at offset 0, as the buffer that the cubin expects.

        Raises GpuError for a block of another length.
        """
        lead = self.places[0][0] if self.places else 0
        used = max((offset + size for offset, size in self.places), default=0)
        if not used - lead <= len(block) <= used - lead + 7:
            raise GpuError(f"the cubin takes {used - lead} bytes of parameters, not {len(block)}")
        return (bytes(lead) + block[: used - lead]).ljust(self.size, b"\0")


def cubin_parameters(cubin: bytes, kernel: str) -> CubinParameters:
    """The parameters of a kernel of a cubin, in their order. Raises GpuError where the cubin does not say."""
    section = _sections(cubin).get(f".nv.info.{kernel}")
    if section is None:
        raise GpuError(f"the cubin has no kernel {kernel}, or does not describe it")
    places: dict[int, tuple[int, int]] = {}
    size = 0
    for attribute, value, payload in _attributes(section):
        if attribute == _KPARAM_INFO:
            _, ordinal, offset, packed = struct.unpack("<IHHI", payload)
            places[ordinal] = (offset, packed >> 18)
        elif attribute == _CBANK_PARAM_SIZE:
            size = value
    if sorted(places) != list(range(len(places))):
        raise GpuError(f"the cubin describes the parameters {sorted(places)} of {kernel}")
    return CubinParameters(tuple(places[ordinal] for ordinal in range(len(places))), size)


def _attributes(section: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(attribute, 16-bit value, payload) of each entry."""
    at = 0
    while at + 4 <= len(section):
        form, attribute, value = struct.unpack_from("<BBH", section, at)
        at += 4
        size = value if form == _FORMAT_SIZED else 0
        yield attribute, value, section[at : at + size]
        at += size


def _sections(cubin: bytes) -> dict[str, bytes]:
    """The sections of an ELF file by name."""
    if not cubin.startswith(_ELF64):
        raise GpuError("this is no cubin: it does not start as a 64-bit ELF file does")
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    entry, count, names_index = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [_SECTION_HEADER.unpack_from(cubin, table + index * entry) for index in range(count)]
    names_at = headers[names_index][4]

    def name(offset: int) -> str:
        start = names_at + offset
        return cubin[start : cubin.index(b"\0", start)].decode()

    return {name(header[0]): cubin[header[4] : header[4] + header[5]] for header in headers}
