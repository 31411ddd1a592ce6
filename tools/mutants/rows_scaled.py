# SPDX-License-Identifier: Apache-2.0
"""Mutants of the product with scales."""

from __future__ import annotations

from tools.mutants.edits import add, both, drop, move, pass_wait_on, substitute
from tools.mutants.mutant import WRONG, table

COPIES = """  tcgen05.cp.cta_group::1.32x128b.warpx4 [%for_a], %desc_s;
  tcgen05.cp.cta_group::1.32x128b.warpx4 [%for_b], %desc_t;"""

MUTANTS = table(
    "scaled",
    (
        (1, "no wait for the loads", pass_wait_on("%full_at"), ("TM-34",)),
        (7, "bytes of the scales not expected", substitute("25600", "24576"), ("TM-34", "MB-07")),
        (19, "no wait for the product", pass_wait_on("%ready_at"), ("TC-05",)),
        (29, "descriptor of the scales: rows twice as far apart",
         substitute("0x0000400800080000", "0x0000401000080000", 0), WRONG),
        (32, "scales of another type", substitute("0x08900000", "0x08100000"), ("ID-01",)),
        (35, "scales of A where D is", substitute(r"%for_a, %tmem, 64", "%for_a, %tmem, 60"), ("TM5-11", "TC-03")),
        (48, "scales copied before they are there",
         both(drop(r"tcgen05\.cp"), add(COPIES, r"^wait_full:", 0)), ("TM-34",)),
        (48, "scales of A not copied", drop(r"tcgen05\.cp", 0), WRONG),
        (48, "scales of B copied after the first product",
         both(drop(r"tcgen05\.cp", 1),
              add("  tcgen05.cp.cta_group::1.32x128b.warpx4 [%for_b], %desc_t;", r"tcgen05\.commit", 0)), WRONG),
        (48, "the first scale of A for every step", substitute("0x20000010", "0x00000010"), WRONG),
        (48, "the first scale of B for every step", substitute("0x20000010", "0x20000000"), WRONG),
        (48, "scales of B a column off", substitute(r"(mma.*\[%for_a\]), \[%for_b\]", r"\1, [%for_a]"), WRONG),
        (48, "scales of A and B exchanged",
         substitute(r"\[%for_a\], \[%for_b\]", "[%for_b], [%for_a]"), WRONG),
        (17, "commit before the products", move(r"tcgen05\.commit", 0, r"mov\.u32 %step, 0;", 0), ("TC-05",)),
    ),
)  # fmt: skip
