# SPDX-License-Identifier: Apache-2.0
"""wgmma on small kernels: layouts, types, fragments, asynchrony, and what a warpgroup may not do."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emu import warpgroup as wg
from tests.emu.warpgroup import COMMIT, FENCE, Image, execute, integers, load, mma, same, store, vector, wait, zeros
from tmagen.emu import wgmma_descriptor
from tmagen.emu.errors import Deadlock, Fault, NotJudged
from tmagen.emu.policy import THOROUGH
from tmagen.emu.swizzle import Swizzle

COMPLETIONS = (*THOROUGH, "timed")


def run_one(n, kind_a, kind_b, a_desc, b_desc, image, tail, completion="eager", d="f32"):
    """One instruction without an old D; D as registers."""
    k = 32 // wg.size_of(kind_a)
    count = n // 4 if d == "f16" else n // 2
    body = FENCE + mma(f"m64n{n}k{k}.{d}.{kind_a}.{kind_b}", vector("d", count), a_desc, b_desc, "0", tail)
    return execute(body + COMMIT + wait() + store(count), image, words=count, completion=completion)


class TestDescriptor:
    @pytest.mark.parametrize(
        ("code", "swizzle"), [(0, Swizzle.NONE), (1, Swizzle.B128), (2, Swizzle.B64), (3, Swizzle.B32)]
    )
    def test_fields(self, code, swizzle):
        desc = wgmma_descriptor.decode(0x2345 | 0x1678 << 16 | 0x0ABC << 32 | 5 << 49 | code << 62)
        assert (desc.start, desc.leading, desc.stride) == (0x23450, 0x16780, 0xABC0)
        assert (desc.base_offset, desc.swizzle) == (5, swizzle)

    @pytest.mark.parametrize("bit", [14, 15, 30, 31, 46, 47, 48, *range(52, 62)])
    def test_reserved_bits(self, bit):
        with pytest.raises(Fault, match="reserved bits"):
            wgmma_descriptor.decode(1 << 62 | 1 << bit)

    def test_the_constant_of_tcgen05_is_a_reserved_bit_here(self):
        image = Image()
        a, b = image.put("f16", integers(0, 64, 16)), image.put("f16", integers(1, 8, 16))
        with pytest.raises(Fault, match="reserved bits 46-48 are 0x1") as caught:
            run_one(8, "f16", "f16", a, b | 1 << 46, image, "1, 1, 0, 0")
        assert caught.value.instruction.startswith("wgmma.mma_async")

    def test_an_operand_past_shared_memory(self):
        image = Image()
        a = image.put("f16", integers(0, 64, 16))
        with pytest.raises(Fault, match="reaches byte"):
            run_one(8, "f16", "f16", a, wg.descriptor(49 * 1024, 16, 1024, 128), image, "1, 1, 0, 0")


class TestLayouts:
    @pytest.mark.parametrize("kind", ["f16", "bf16"])
    @pytest.mark.parametrize("span", [0, 32, 64, 128])
    @pytest.mark.parametrize(("a_mn", "b_mn"), [(False, False), (True, False), (False, True), (True, True)])
    def test_16_bit_operands(self, kind, span, a_mn, b_mn):
        """Every swizzle, K- and MN-major; N is a multiple of the widest span."""
        n = 64
        a, b = integers(1, 64, 16), integers(2, n, 16)
        image = Image()
        descs = image.put(kind, a, span, a_mn), image.put(kind, b, span, b_mn)
        got = run_one(n, kind, kind, *descs, image, f"1, 1, {int(a_mn)}, {int(b_mn)}")
        assert same(got, wg.d_words(a @ b.T))

    @pytest.mark.parametrize("n", [8, 24, 136, 256])
    def test_any_n(self, n):
        a, b = integers(3, 64, 16), integers(4, n, 16)
        image = Image()
        got = run_one(n, "f16", "f16", image.put("f16", a), image.put("f16", b, 32), image, "1, 1, 0, 0")
        assert same(got, wg.d_words(a @ b.T))

    @pytest.mark.parametrize(
        ("a_kind", "b_kind", "k"),
        [("tf32", "tf32", 8), ("e4m3", "e4m3", 32), ("e5m2", "e4m3", 32), ("e4m3", "e5m2", 32), ("e5m2", "e5m2", 32)],
    )
    @pytest.mark.parametrize("span", [0, 32, 128])
    def test_other_types(self, a_kind, b_kind, k, span):
        a, b = integers(5, 64, k), integers(6, 16, k)
        image = Image()
        descs = image.put(a_kind, a, span), image.put(b_kind, b, span)
        assert same(run_one(16, a_kind, b_kind, *descs, image, "1, 1"), wg.d_words(a @ b.T))

    def test_tf32_ignores_the_low_bits(self):
        a, b = integers(5, 64, 8), integers(6, 8, 8)
        image = Image()
        descs = image.put("tf32", a + 2.0**-11), image.put("tf32", b)
        kept = (a + 2.0**-11).astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
        want = kept.view(np.float32) @ b.T.astype(np.float32)
        assert same(run_one(8, "tf32", "tf32", *descs, image, "1, 1"), wg.d_words(want))

    @pytest.mark.parametrize(("a_kind", "b_kind"), [("s8", "s8"), ("s8", "u8"), ("u8", "s8"), ("u8", "u8")])
    def test_integers(self, a_kind, b_kind):
        def values(seed, rows, kind):
            low, high = (-128, 128) if kind == "s8" else (0, 256)
            return integers(seed, rows, 32, low=low, high=high)

        a, b = values(7, 64, a_kind), values(8, 32, b_kind)
        image = Image()
        got = run_one(32, a_kind, b_kind, image.put(a_kind, a), image.put(b_kind, b), image, "", d="s32")
        assert same(got, wg.d_words(a @ b.T, np.int32))

    def test_a_tile_that_starts_within_the_pattern(self):
        """The XOR takes absolute addresses: base_offset stays 0."""
        a, b = integers(9, 64, 16), integers(10, 8, 16)
        image = Image()
        descs = image.put("f16", a, shift=256), image.put("f16", b, shift=640)
        assert same(run_one(8, "f16", "f16", *descs, image, "1, 1, 0, 0"), wg.d_words(a @ b.T))

    def test_base_offset_is_subtracted_from_the_phase(self):
        a, b = integers(9, 64, 16), integers(10, 8, 16)
        image = Image()
        a_desc, b_desc = image.put("f16", a), image.put("f16", b)
        right, wrong = wg.d_words(a @ b.T), b_desc | 3 << 49
        assert not same(run_one(8, "f16", "f16", a_desc, wrong, image, "1, 1, 0, 0"), right)
        plain = Image()
        descs = plain.put("f16", a, 0), plain.put("f16", b, 0) | 3 << 49
        assert same(run_one(8, "f16", "f16", *descs, plain, "1, 1, 0, 0"), right)

    @pytest.mark.parametrize("code", [0, 2, 3])
    def test_a_wrong_swizzle_code_gives_wrong_values(self, code):
        a, b = integers(9, 64, 16), integers(10, 64, 16)
        image = Image()
        a_desc, b_desc = image.put("f16", a), image.put("f16", b)
        changed = b_desc & ~(3 << 62) | code << 62
        assert not same(run_one(64, "f16", "f16", a_desc, changed, image, "1, 1, 0, 0"), wg.d_words(a @ b.T))


class TestFragments:
    @pytest.mark.parametrize(
        ("kind", "tail"), [("f16", "1, 1, 0"), ("bf16", "1, 1, 0"), ("tf32", "1, 1"), ("e4m3", "1, 1")]
    )
    def test_a_from_registers(self, kind, tail):
        k = 32 // wg.size_of(kind)
        a, b = integers(11, 64, k), integers(12, 40, k)
        image = Image()
        b_desc = image.put(kind, b)
        body = load("a", 4) + FENCE
        body += mma(f"m64n40k{k}.f32.{kind}.{kind}", vector("d", 20), vector("a", 4), b_desc, "0", tail)
        got = execute(body + COMMIT + wait() + store(20), image, wg.a_words(kind, a), words=20)
        assert same(got, wg.d_words(a @ b.T))

    def test_integer_a_from_registers(self):
        a, b = integers(11, 64, 32, low=-128, high=128), integers(12, 8, 32, low=0, high=256)
        image = Image()
        b_desc = image.put("u8", b)
        body = load("a", 4) + FENCE + mma("m64n8k32.s32.s8.u8", vector("d", 4), vector("a", 4), b_desc, "0", "")
        got = execute(body + COMMIT + wait() + store(4), image, wg.a_words("s8", a), words=4)
        assert same(got, wg.d_words(a @ b.T, np.int32))

    def test_a_from_registers_with_mn_major_b(self):
        a, b = integers(11, 64, 16), integers(12, 64, 16)
        image = Image()
        b_desc = image.put("f16", b, 128, True)
        body = load("a", 4) + FENCE
        body += mma("m64n64k16.f32.f16.f16", vector("d", 32), vector("a", 4), b_desc, "0", "1, 1, 1")
        got = execute(body + COMMIT + wait() + store(32), image, wg.a_words("f16", a), words=32)
        assert same(got, wg.d_words(a @ b.T))

    def test_d_of_one_as_a_of_the_next(self):
        """A float16 D of 16 columns lies in its registers as A does."""
        a, b, c = integers(11, 64, 16, low=-1, high=2), integers(12, 16, 16, low=-1, high=2), integers(13, 8, 16)
        image = Image()
        descs = [image.put("f16", x) for x in (a, b, c)]
        body = FENCE + mma("m64n16k16.f16.f16.f16", vector("d", 4), descs[0], descs[1], "0") + COMMIT + wait() + FENCE
        body += mma("m64n8k16.f32.f16.f16", vector("e", 4), vector("d", 4), descs[2], "0", "1, 1, 0") + COMMIT + wait()
        assert same(execute(body + store(4, "e"), image, words=4), wg.d_words(a @ b.T @ c.T))
        early = body.replace(COMMIT + wait() + FENCE, "", 1)
        with pytest.raises(Fault, match="is in flight"):
            execute(early + store(4, "e"), image, words=4)

    def test_old_d_from_registers(self):
        a, b, d = integers(13, 64, 16), integers(14, 24, 16), integers(15, 64, 24, low=-99, high=99)
        image = Image()
        descs = image.put("f16", a), image.put("f16", b)
        body = load("d", 12) + FENCE + mma("m64n24k16.f32.f16.f16", vector("d", 12), *descs) + COMMIT + wait()
        assert same(execute(body + store(12), image, wg.d_words(d), words=12), wg.d_words(a @ b.T + d))

    def test_float16_accumulator(self):
        """Two elements to a register, the old D among them, and rounded by each instruction."""
        a, b = np.zeros((64, 16)), np.zeros((8, 16))
        a[:, 0], b[:, 0] = 1, 1
        d = np.full((64, 8), 2048.0) + 2 * integers(1, 64, 8)
        image = Image()
        descs = image.put("f16", a), image.put("f16", b)
        twice = mma("m64n8k16.f16.f16.f16", vector("d", 2), *descs) * 2
        body = load("d", 2) + FENCE + twice + COMMIT + wait() + store(2)
        want = (d.astype(np.float16) + np.float16(1)) + np.float16(1)  # 2048 + 1 is a tie, and stays
        assert want[d == 2048].max() == 2048
        assert same(execute(body, image, wg.d_words(d, np.float16), words=2), wg.d_words(want, np.float16))

    @pytest.mark.parametrize(("signs", "factor"), [("1, 1", 1), ("-1, 1", -1), ("1, -1", -1), ("-1, -1", 1)])
    def test_negated_operands(self, signs, factor):
        a, b = integers(13, 64, 16), integers(14, 8, 16)
        image = Image()
        descs = image.put("f16", a), image.put("f16", b)
        add = mma("m64n8k16.f32.f16.f16", vector("d", 4), *descs)
        body = FENCE + mma("m64n8k16.f32.f16.f16", vector("d", 4), *descs, "0", f"{signs}, 0, 0") + add + COMMIT
        got = execute(body + wait() + store(4), image, words=4)
        assert same(got, wg.d_words((1 + factor) * (a @ b.T)))

    def test_saturation(self):
        a, b = np.full((64, 32), 127), np.full((8, 32), 127)
        image = Image()
        descs = image.put("s8", a), image.put("s8", b)
        start = np.full((64, 8), 2**31 - 5)
        for suffix, want in ((".satfinite", 2**31 - 1), ("", 2**31 - 5 + 32 * 127 * 127 - 2**32)):
            body = load("d", 4) + FENCE + mma(f"m64n8k32.s32.s8.s8{suffix}", vector("d", 4), *descs, tail="")
            got = execute(body + COMMIT + wait() + store(4), image, wg.d_words(start, np.int32), words=4)
            assert set(got.view(np.int32).ravel()) == {want}


@pytest.mark.parametrize("completion", COMPLETIONS)
class TestChains:
    def test_a_loop_over_k_with_two_accumulators(self, completion):
        """A second accumulator joins in each step, and lanes part ways between the steps."""
        a, b, c = integers(20, 64, 64), integers(21, 16, 64), integers(22, 64, 64)
        image = Image()
        descs = [image.put("f16", x) for x in (a, b, c)]
        body = f"mov.b64 %rd5, {descs[0]};\nmov.b64 %rd6, {descs[1]};\nmov.b64 %rd7, {descs[2]};\nmov.u32 %r20, 0;\n"
        body += "$loop:\n" + FENCE
        body += mma("m64n16k16.f32.f16.f16", vector("d", 8), "%rd5", "%rd6", "%r20")
        body += mma("m64n16k16.f32.f16.f16", vector("e", 8), "%rd7", "%rd6", "%r20")
        body += COMMIT + wait() + "setp.ne.u32 %p2, %r0, 33;\n@%p2 bra $skip;\nadd.s32 %r21, %r20, 1;\n$skip:\n"
        body += "add.s64 %rd5, %rd5, 2;\nadd.s64 %rd6, %rd6, 2;\nadd.s64 %rd7, %rd7, 2;\n"
        body += "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p3, %r20, 4;\n@%p3 bra $loop;\n"
        body += "".join(f"mov.b32 %d{8 + i}, %e{i};\n" for i in range(8)) + store(16)
        want = np.hstack([wg.d_words(a @ b.T), wg.d_words(c @ b.T)])
        for seed in range(3):
            assert same(execute(body, image, words=16, completion=completion, seed=seed), want)

    def test_registers_changed_between_two_chains(self, completion):
        """Some registers in all lanes, one in some lanes by a guard, one in some lanes by a branch."""
        a, b = integers(23, 64, 16), integers(24, 8, 16)
        image = Image()
        descs = image.put("f16", a), image.put("f16", b)
        add = FENCE + mma("m64n8k16.f32.f16.f16", vector("d", 4), *descs) + COMMIT + wait()
        body = zeros(4) + add + "add.f32 %d0, %d0, %d0;\nand.b32 %r20, %r0, 1;\nsetp.eq.u32 %p2, %r20, 0;\n"
        body += "@%p2 mov.b32 %d1, 0x42C80000;\n@%p2 bra $even;\nadd.f32 %d2, %d2, %d2;\n$even:\n"
        body += "setp.ne.u32 %p3, %r0, 70;\n@%p3 bra $rest;\nadd.f32 %d3, %d3, %d3;\n$rest:\n" + add + store(4)
        d = wg.d_words(a @ b.T).view(np.float32)
        first, odd = d.copy(), np.arange(128) % 2 == 1
        first[:, 0] *= 2
        first[~odd, 1] = 100
        first[odd, 2] *= 2
        first[70, 3] *= 2
        assert same(execute(body, image, words=4, completion=completion).view(np.float32), first + d)

    def test_two_warpgroups(self, completion):
        """Each with operands of its own; the descriptors come from the thread index."""
        a, b = integers(25, 128, 16), integers(26, 8, 16)
        image = Image()
        a_desc, b_desc = image.put("f16", a), image.put("f16", b)
        body = f"shr.u32 %r20, %r0, 7;\nmul.wide.u32 %rd5, %r20, {64 * 128 // 16};\nadd.s64 %rd5, %rd5, {a_desc};\n"
        body += FENCE + mma("m64n8k16.f32.f16.f16", vector("d", 4), "%rd5", b_desc, "0") + COMMIT + wait() + store(4)
        got = execute(body, image, words=4, threads=256, completion=completion)
        assert same(got, np.vstack([wg.d_words(half @ b.T) for half in (a[:64], a[64:])]))

    def test_wait_group_leaves_the_newest(self, completion):
        a, b, c = integers(27, 64, 16), integers(28, 8, 16), integers(29, 8, 16)
        image = Image()
        descs = [image.put("f16", x) for x in (a, b, c)]
        body = FENCE + mma("m64n8k16.f32.f16.f16", vector("d", 4), descs[0], descs[1], "0") + COMMIT
        body += mma("m64n8k16.f32.f16.f16", vector("e", 4), descs[0], descs[2], "0") + COMMIT
        body += wait(1) + "".join(f"mov.b32 %r{20 + i}, %d{i};\n" for i in range(4))
        body += wait(0) + "".join(f"mov.b32 %r{24 + i}, %e{i};\n" for i in range(4)) + store(8, "r", 20)
        want = np.hstack([wg.d_words(a @ b.T), wg.d_words(a @ c.T)])
        assert same(execute(body, image, words=8, completion=completion), want)

    def test_empty_groups_count(self, completion):
        a, b = integers(27, 64, 16), integers(28, 8, 16)
        image = Image()
        descs = image.put("f16", a), image.put("f16", b)
        body = wait(0) + COMMIT + wait(3) + FENCE + mma("m64n8k16.f32.f16.f16", vector("d", 4), *descs, "0")
        body += COMMIT * 3 + wait(2) + store(4)
        assert same(execute(body, image, words=4, completion=completion), wg.d_words(a @ b.T))

    def test_shared_memory_reused_after_the_wait(self, completion):
        """Every warp waits before the barrier, so the operands have been read when they are overwritten."""
        a, b = integers(27, 64, 16), integers(28, 8, 16)
        image = Image()
        descs = image.put("f16", a), image.put("f16", b)
        first = FENCE + mma("m64n8k16.f32.f16.f16", vector("d", 4), *descs, "0") + COMMIT
        clear = f"mov.u32 %r30, {wg.BASE};\nshl.b32 %r31, %r0, 2;\nadd.s32 %r30, %r30, %r31;\n"
        clear += "".join(f"st.shared.b32 [%r30+{512 * i}], 0;\n" for i in range(16))
        right = execute(first + wait() + "bar.sync 0;\n" + clear + store(4), image, words=4, completion=completion)
        assert same(right, wg.d_words(a @ b.T))
        late = execute(first + "bar.sync 0;\n" + clear + wait() + store(4), image, words=4, completion=completion)
        if completion in ("lazy", "newest-first"):
            assert not same(late, right)


class TestInFlight:
    def setup_method(self):
        self.a, self.b = integers(30, 64, 16), integers(31, 8, 16)
        self.image = Image()
        self.descs = self.image.put("f16", self.a), self.image.put("f16", self.b)
        self.one = FENCE + mma("m64n8k16.f32.f16.f16", vector("d", 4), *self.descs, "0")

    def fails(self, body, match="is in flight", error=Fault, **options):
        with pytest.raises(error, match=match) as caught:
            execute(body, self.image, words=options.pop("words", 4), **options)
        return caught.value

    @pytest.mark.parametrize("completion", COMPLETIONS)
    @pytest.mark.parametrize("waiting", ["", COMMIT, COMMIT + wait(1), wait(0), wait(0) + COMMIT])
    def test_reading_d_too_early(self, waiting, completion):
        """No wait, one group too few (N + 1), or a wait that no commit precedes."""
        error = self.fails(self.one + waiting + store(4), completion=completion)
        assert error.instruction.startswith("st.global")
        assert "warp" in error.where

    @pytest.mark.parametrize("text", ["mov.b32 %d3, 0;\n", "@%p1 mov.b32 %d3, 0;\n", "ld.shared.b32 %d3, [1024];\n"])
    def test_writing_d_too_early(self, text):
        self.fails(self.one + COMMIT + text + wait() + store(4))

    def test_a_wait_of_one_chain_does_not_cover_the_next(self):
        self.fails((self.one + COMMIT) * 2 + wait(1) + store(4))

    def test_an_overlapping_accumulator(self):
        other = mma("m64n8k16.f32.f16.f16", vector("d", 4, 2), *self.descs, "0")
        self.fails(self.one + other + COMMIT + wait() + store(4))
        got = execute(self.one + COMMIT + wait() + other + COMMIT + wait() + store(6), self.image, words=6)
        want = wg.d_words(self.a @ self.b.T)
        assert same(got, np.hstack([want[:, :2], want]))

    def test_writing_registers_of_a_too_early(self):
        one = FENCE + mma("m64n8k16.f32.f16.f16", vector("d", 4), vector("a", 4), self.descs[1], "0", "1, 1, 0")
        words = wg.a_words("f16", self.a)
        for change in ("mov.b32 %a2, 0;\n", load("a", 4)):
            with pytest.raises(Fault, match="registers that hold A are written"):
                execute(load("a", 4) + one + COMMIT + change + wait() + store(4), self.image, words, words=4)
        got = execute(load("a", 4) + one + COMMIT + wait() + "mov.b32 %a2, 0;\n" + store(4), self.image, words, words=4)
        assert same(got, wg.d_words(self.a @ self.b.T))

    def test_reading_registers_of_a_is_allowed(self):
        one = FENCE + mma("m64n8k16.f32.f16.f16", vector("d", 4), vector("a", 4), self.descs[1], "0", "1, 1, 0")
        body = load("a", 4) + one + COMMIT + "mov.b32 %r20, %a2;\n" + wait() + store(4)
        got = execute(body, self.image, wg.a_words("f16", self.a), words=4)
        assert same(got, wg.d_words(self.a @ self.b.T))


class TestWarpgroups:
    def setup_method(self):
        self.image = Image()
        self.descs = self.image.put("f16", integers(30, 64, 16)), self.image.put("f16", integers(31, 8, 16))
        self.shape, self.d = "m64n8k16.f32.f16.f16", vector("d", 4)

    def fails(self, body, match, error=Fault, **options):
        with pytest.raises(error, match=match):
            execute(body, self.image, words=4, **options)

    def test_other_descriptors(self):
        body = f"shr.u32 %r20, %r0, 6;\ncvt.u64.u32 %rd5, %r20;\nadd.s64 %rd5, %rd5, {self.descs[1]};\n"
        body += mma(self.shape, self.d, self.descs[0], "%rd5") + COMMIT + wait()
        self.fails(body, "warp 2 executes .* of B, other warps of warpgroup 0 with")

    def test_descriptors_that_differ_within_a_warp(self):
        body = f"cvt.u64.u32 %rd5, %r0;\nadd.s64 %rd5, %rd5, {self.descs[1]};\n"
        self.fails(body + mma(self.shape, self.d, self.descs[0], "%rd5"), "descriptor of B differs between the lanes")

    def test_other_predicates(self):
        body = zeros(4) + "shr.u32 %r20, %r0, 5;\n" + mma(self.shape, self.d, *self.descs, "%r20") + COMMIT + wait()
        self.fails(body, "warp 1 executes a wgmma.mma_async with scale-d True")

    def test_another_instruction(self):
        one = mma(self.shape, self.d, *self.descs, "0")
        body = f"setp.lt.u32 %p2, %r0, 64;\n@%p2 bra $low;\n{one}bra.uni $end;\n$low:\n{one}$end:\n" + COMMIT + wait()
        self.fails(body, "where other warps of warpgroup 0 execute another one")

    @pytest.mark.parametrize("completion", COMPLETIONS)
    def test_a_warp_that_does_not_come(self, completion):
        one = mma(self.shape, self.d, *self.descs, "0")
        skipped = f"setp.ge.u32 %p2, %r0, 96;\n@%p2 bra $end;\n{one}{COMMIT}"
        for ending in ("$end:\nbar.sync 0;\n", "$end:\n"):
            self.fails(skipped + wait() + ending, "nothing is left", Deadlock, completion=completion)
        self.fails(skipped + "$end:\n", "warp 3 of warpgroup 0 did not execute", completion=completion)

    def test_the_report_of_a_deadlock(self):
        one = mma(self.shape, self.d, *self.descs, "0")
        body = f"setp.ge.u32 %p2, %r0, 96;\n@%p2 bra $end;\n{one}{COMMIT}{wait()}$end:\n"
        reason = "waits for 1 wgmma.mma_async of warpgroup 0, of which warp 3 did not execute the first"
        self.fails(body, reason, Deadlock)

    def test_a_part_of_a_warpgroup(self):
        body = mma(self.shape, self.d, *self.descs, "0") + COMMIT + wait()
        self.fails(body, "fewer than four warps", threads=64)
        self.fails(body, "fewer than four warps", threads=192)

    def test_a_part_of_a_warp(self):
        body = "setp.eq.u32 %p2, %r0, 40;\n@%p2 exit;\n" + mma(self.shape, self.d, *self.descs, "0") + COMMIT + wait()
        self.fails(body, "threads that have exited")


@pytest.mark.parametrize(
    ("shape", "d", "tail"),
    [
        ("m64n12k16.f32.f16.f16", 6, "1, 1, 0, 0"),
        ("m64n8k8.f32.f16.f16", 4, "1, 1, 0, 0"),
        ("m64n264k16.f32.f16.f16", 132, "1, 1, 0, 0"),
        ("m64n8k16.f16.bf16.bf16", 2, "1, 1, 0, 0"),
        ("m64n8k16.f32.f16.bf16", 4, "1, 1, 0, 0"),
        ("m64n40k32.s32.s8.s8", 20, ""),
        ("m64n8k16.f32.f16.f16", 8, "1, 1, 0, 0"),
        ("m64n8k16.f32.f16.f16", 4, "1, 1"),
        ("m64n8k16.f32.f16.f16", 4, "2, 1, 0, 0"),
        ("m64n8k8.f32.tf32.tf32", 4, "1, 1, 0, 0"),
        ("m64n8k16.f32.f16.f16.satfinite", 4, "1, 1, 0, 0"),
    ],
)
def test_what_is_not_judged(shape, d, tail):
    image = Image()
    descs = image.put("f16", integers(30, 64, 16)), image.put("f16", integers(31, 8, 16))
    with pytest.raises(NotJudged):
        execute(FENCE + mma(shape, vector("d", d), *descs, "0", tail) + COMMIT + wait(), image, words=4)


def test_a_kernel_without_instructions_may_wait():
    assert execute(FENCE + COMMIT + wait() + zeros(4) + store(4), Image(), words=4).sum() == 0
