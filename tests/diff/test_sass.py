# SPDX-License-Identifier: Apache-2.0
"""Machine code, counted."""

from __future__ import annotations

from tmagen.diff.sass import machine_code

SASS = """
        /*0000*/                   LDC R1, c[0x0][0x37c] ;                 /* 0x0000df00ff017b82 */
                                                                           /* 0x000fe20000000800 */
        /*0010*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R7+URZ+0x18000], R4 ;
        /*0020*/              @!P0 BRA 0x90 ;
        /*0030*/               @P0 ELECT P2, URZ, PT ;
        /*0040*/                   UTCHMMA gdesc[UR8], gdesc[UR14], tmem[UR19], tmem[UR42], idesc[UR43], UP0 ;
        /*0050*/               @P0 BRA.U.ANY 0x30 ;
        /*0060*/                   UTCHMMA gdesc[UR28], gdesc[UR30], tmem[UR19], tmem[UR42], idesc[UR43], UPT ;
        /*0070*/                   BRA.U UP0, 0x10 ;
        /*0080*/                   EXIT ;
        /*0090*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R7+URZ+0x18000], R4 ;
        /*00a0*/                   BRA 0x0 ;
        /*00b0*/                   BRA 0xb0;
        /*00c0*/                   NOP;
"""


def test_instructions_are_counted_by_opcode() -> None:
    code = machine_code(SASS)
    assert len(code.instructions) == 11  # the endless loop and the padding at the end are none of the kernel
    assert code.count("UTCHMMA") == code.mmas() == 2
    assert code.count("BRA.U.ANY") == 1
    assert code.count("BRA") == 4
    assert code.count("SYNCS.PHASECHK") == 2


def test_the_main_loop_is_the_shortest_around_an_mma_and_a_wait() -> None:
    code = machine_code(SASS)
    loop = code.main_loop()
    assert loop == {0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70}
    assert len(code.range(loop)) == 7


OUT_OF_LINE = """
        /*0000*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R7+URZ], R4 ;
        /*0010*/              @!P0 BRA 0x90 ;
        /*0020*/                   UTCHMMA gdesc[UR8], gdesc[UR14], tmem[UR19], tmem[UR42], idesc[UR43], UP0 ;
        /*0030*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R7+URZ+0x8], R4 ;
        /*0040*/              @!P0 BRA 0xc0 ;
        /*0050*/                   UTCHMMA gdesc[UR8], gdesc[UR14], tmem[UR19], tmem[UR42], idesc[UR43], UP0 ;
        /*0060*/                   IADD3 R2, R2, 0x1, RZ ;
        /*0070*/               @P1 BRA 0x0 ;
        /*0080*/                   EXIT ;
        /*0090*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R7+URZ], R4 ;
        /*00a0*/              @!P0 BRA 0x90 ;
        /*00b0*/                   BRA 0x20 ;
        /*00c0*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R7+URZ+0x8], R4 ;
        /*00d0*/              @!P0 BRA 0xc0 ;
        /*00e0*/                   BRA 0x50 ;
"""


def test_waits_that_are_repeated_out_of_line_make_no_loop_of_their_own() -> None:
    """A branch back from behind the end leads into the middle of the loop: no block of it is passed on every way."""
    code = machine_code(OUT_OF_LINE)
    loop = code.main_loop()
    assert loop is not None
    assert len(loop) == 14 and 0x80 not in loop
    assert code.mmas(loop) == 2


def test_of_several_kernels_the_one_that_is_named() -> None:
    both = f"\t\tFunction : one\n{SASS}\n\t\tFunction : other\n{OUT_OF_LINE}"
    assert len(machine_code(both, "other").instructions) == 15
    assert machine_code(both, "one").mmas() == 2


def test_without_a_wait_in_it_a_loop_is_not_the_main_loop() -> None:
    straight = SASS.replace("BRA.U UP0, 0x10", "BRA.U UP0, 0x30").replace("BRA 0x0 ;", "EXIT ;")
    assert machine_code(straight).main_loop() is None
