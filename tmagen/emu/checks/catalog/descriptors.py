# SPDX-License-Identifier: Apache-2.0
"""Descriptors of MMA operands."""

from __future__ import annotations

from tmagen.emu.checks.registry import Check, add

add(
    Check(
        "DS-01", "E", "Bad field in a shared memory descriptor",
        "Reserved bits are set, the version bits are not what the architecture asks for, or the swizzle code has no "
        "meaning.",
        "An sm_90 descriptor, without the constant 0b001 of bits 46 to 48, given to tcgen05.mma.",
        "Build the descriptor from named fields; carry no address bits past bit 13.",
        "tcgen05: Shared memory descriptor; wgmma: Matrix-descriptor Format", "fault",
    ),
    Check(
        "DS-03", "E", "Absolute leading-dimension mode",
        "Bit 52 belongs to sm_103a.",
        "A descriptor made for another architecture.",
        "Leave bit 52 zero.",
        "tcgen05: Shared memory descriptor", "fault",
    ),
    Check(
        "DS-04", "E", "MMA operand outside the CTA's shared memory",
        "Start, offsets and shape of the operand name bytes that the CTA does not have, or wrap past 256 KiB.",
        "A stride offset in bytes where units of 16 bytes are meant.",
        "Offsets and start are shifted right by four.",
        "tcgen05: Shared memory descriptor; wgmma: Matrix-descriptor Format", "fault",
    ),
    Check(
        "DS-05", "R", "Base offset of an operand that TMA wrote",
        "The swizzle takes the address, of TMA and of MMAs alike: a tile is read with base offset 0, wherever it "
        "starts. Told beside a wrong result, and with --strict.",
        "A tile that starts 512 bytes after a multiple of 1024, read with base offset 4.",
        "Leave bits 49 to 51 zero.",
        "tcgen05: Shared memory descriptor; wgmma: Matrix-descriptor Format", "lint",
    ),
    Check(
        "DS-08", "R", "An MMA reads what nobody has written",
        "Bytes of an operand were never written. That is right for rows of the result that nobody looks at; it is told "
        "beside a wrong result alone.",
        "A stride one row too long.",
        "Compare the descriptor's offsets with the box of the tensor map.",
        "tcgen05: Shared memory descriptor; wgmma: Matrix-descriptor Format", "lint",
    ),
    Check(
        "DS-10", "R", "Swizzle of a descriptor that is not that of the tensor map",
        "All bytes of the operand were written by TMA with another swizzle than the descriptor reads with. Told beside "
        "a wrong result, and with --strict.",
        "A map with CU_TENSOR_MAP_SWIZZLE_128B, and swizzle code 2 shifted by 61 on sm_90.",
        "One swizzle for both.",
        "Swizzling modes; tcgen05: Shared memory descriptor", "lint",
    ),
    Check(
        "ID-01", "E/R", "Bad field in an instruction descriptor",
        "Reserved bits, or a type code that the kind does not define. R for kind f16 with A of one type and B of the "
        "other, of which the text says nothing.",
        "The fp8 type codes with kind::f16.",
        "Build the descriptor from named fields of the instruction's kind.",
        "tcgen05: Instruction descriptor", "fault",
    ),
    Check(
        "ID-02", "E", "Shape or place of an MMA that the hardware does not have",
        "M or N outside the table of the kind, or lanes of D and A that do not go with M.",
        "N = 12, or D at lane 16 with M = 128.",
        "Take M and N from the table of shapes; D starts at lane 0 (or 16 for M = 64).",
        "tcgen05: Matrix shape; Layout organization", "fault",
    ),
    Check(
        "ID-04", "E", "float16 accumulator with inputs that do not allow it",
        "D is float16 with float16 inputs (or 8-bit and smaller ones) alone.",
        "bf16 inputs with the D type left 0.",
        "Set the D type to float32.",
        "tcgen05: Instruction descriptor", "fault",
    ),
    Check(
        "TM5-01", "R", "An MMA adds to what nobody has written",
        "With enable-input-d the MMA adds to D as it is, and nobody has written some of its words since they were "
        "allocated. Told beside a wrong result alone.",
        "enable-input-d is true in the first K step of a tile.",
        "False in the first MMA of each tile, true in the others.",
        "tcgen05.mma", "lint",
    ),
    Check(
        "TM5-02", "E", "scale-input-d where there is none",
        "0 to 15, with kinds f16 and tf32.",
        "kind::f8f6f4 with scale-input-d.",
        "Leave the operand out.",
        "tcgen05.mma", "fault",
    ),
    Check(
        "TM5-09", "R", "The collector buffer holds another A",
        "collector::a::use and ::lastuse take the A that an MMA before them, of the same thread, has left with ::fill. "
        "An A of another address, or whose bytes have changed, is not it.",
        "use in the first MMA of a stage.",
        "fill where A changes; discard, the default, where it is used once.",
        "tcgen05.mma: Collector buffer", "lint",
    ),
    Check(
        "TM5-11", "E", "An MMA that writes D over its own operand",
        "D shares columns and lanes with A in tensor memory, or with the scale factors.",
        "P of an attention kernel in the columns of the accumulator that it is multiplied into.",
        "Columns of their own.",
        "tcgen05.mma", "lint",
    ),
)  # fmt: skip
