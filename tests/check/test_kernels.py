# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.check.kernels import ADD_S32, HEAD, PARAMETERS, add_launch, check_add, subject
from tmagen.check import run
from tmagen.check.kernels import choose, plain_name
from tmagen.errors import SpecError


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("kernel", "kernel"),
        ("_Z3addPKfS0_Pfi", "add"),
        ("_ZN4gemm6kernelEPf", "gemm::kernel"),
        ("_ZN4gemmL6kernelEPf", "gemm::kernel"),
        ("_ZL6kernelPf", "kernel"),
        ("_ZN12_GLOBAL__N_16kernelEv", "(anonymous namespace)::kernel"),
        ("_Z6kernelIfLi4EEvPT_", "kernel"),
        ("_Z", "_Z"),
        ("$weird%name", "$weird%name"),
    ],
)
def test_plain_names(symbol: str, name: str) -> None:
    assert plain_name(symbol) == name


def entry(name: str) -> str:
    return f".visible .entry {name}()\n{{\nret;\n}}\n"


def test_a_kernel_is_found_by_symbol_or_name() -> None:
    module = subject(HEAD + entry("_ZN1a3fooEv") + entry("_ZN1b3fooEv") + entry("_Z3barv")).module
    assert choose(module, "_Z3barv").name == choose(module, "bar").name == "_Z3barv"
    assert choose(module, "a::foo").name == "_ZN1a3fooEv"
    for name, message in ((None, "has 3 kernels"), ("foo", "may be each of 2"), ("bra", "is not in kernel.ptx")):
        with pytest.raises(SpecError, match=message):
            choose(module, name)
    with pytest.raises(SpecError, match="has no kernel"):
        choose(subject(HEAD).module, None)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ([], "params has 0 entries; add takes 4"),
        ([{"s32": 1}] * 5, "params has 5 entries; add takes 4"),
        ([{"pointer": "a"}, {"pointer": "b"}, {"s32": 1}, {"s32": 1}], r"params\[2\] is s32 \(4 bytes\).*has 8 bytes"),
        ([{"pointer": "a"}, {"pointer": "b"}, {"pointer": "c"}, {"s64": 1}], r"params\[3\] is s64 .*has 4 bytes"),
        (
            [{"pointer": "a"}, {"pointer": "b"}, {"pointer": "c"}, {"struct": [{"s32": 1}, {"s8": 1}]}],
            r"params\[3\] is a struct of 2 members of 8 bytes; parameter 3 of add has 4 bytes",
        ),
    ],
)
def test_parameters_that_do_not_fit(params: list[dict[str, object]], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        check_add(add_launch(params=params))


class _Inner(ctypes.Structure):
    _fields_ = (("tag", ctypes.c_int8), ("wide", ctypes.c_double))


class _Outer(ctypes.Structure):
    _fields_ = (
        ("flag", ctypes.c_uint8),
        ("count", ctypes.c_int16),
        ("inner", _Inner),
        ("last", ctypes.c_float),
        ("pointer", ctypes.c_uint64),
    )


def test_a_struct_has_c_layout() -> None:
    """The kernel writes the parameter's bytes; ctypes says where each member lies."""
    inner = {"struct": [{"s8": -3}, {"f64": 2.5}]}
    members = [{"u8": 7}, {"s16": -2}, inner, {"f32": 1.5}, {"u64": 1 << 60}]
    want = bytes(_Outer(7, -2, _Inner(-3, 2.5), 1.5, 1 << 60))
    # Padding is unspecified to C; here it is zero, as in the zeroed structure that ctypes fills.
    size = ctypes.sizeof(_Outer)
    assert size == 40
    text = PARAMETERS.replace("[48]", f"[{size}]")
    checks = [f"out[{i}] == {byte}" for i, byte in enumerate(want)]
    launch = {
        "grid": 1,
        "block": size,
        "params": [{"pointer": "out"}, {"struct": members}],
        "buffers": {"out": {"dtype": "u8", "shape": [size]}},
        "expect": checks,
    }
    report = run(subject(text), launch, completion="eager")
    assert report.exit_code == 0, report.text()


def test_values_of_scalars() -> None:
    data = np.arange(48, dtype=np.uint8)
    launch = {
        "grid": 1,
        "block": 48,
        "params": [{"pointer": "out"}, {"bytes": data.tobytes().hex()}],
        "buffers": {"out": {"dtype": "u8", "shape": [48]}, "iota": {"dtype": "u8", "shape": [48], "fill": "iota"}},
        "expect": "out == iota",
    }
    assert run(subject(PARAMETERS), launch).exit_code == 0


def test_block_follows_from_the_kernel() -> None:
    fixed = ADD_S32.replace("add_param_3)\n", "add_param_3)\n.reqntid 32, 1, 1\n")
    launch = add_launch()
    del launch["block"]
    assert check_add(launch, fixed).exit_code == 0
    with pytest.raises(SpecError, match="block is missing"):
        check_add(launch)
