# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from tmagen.hostrun import SourceFormError
from tmagen.hostrun.source import find_namespace, harness

BODY = """\
struct GemmArgs { };
constexpr int kStaticM = 0, kStaticN = 0, kStaticK = 0;
static int launch(const GemmArgs&, void*);
const char* last_error();
}
"""


def test_first_namespace_at_the_start_of_a_line() -> None:
    assert find_namespace(f"  namespace inner {{}}\nnamespace gemm_a {{\n{BODY}") == "gemm_a"
    assert find_namespace(f"namespace a::b\n{{\n{BODY}") == "a::b"


def test_missing_parts_are_named() -> None:
    with pytest.raises(SourceFormError, match="opens no namespace"):
        find_namespace("int main() {}", "x.cu")
    with pytest.raises(SourceFormError, match=r"x\.cu has no last_error\(\) in namespace a") as raised:
        find_namespace("namespace a {\n" + BODY.replace("last_error", "error"), "x.cu")
    assert raised.value.exit_code == 2


def test_path_that_cannot_be_included() -> None:
    with pytest.raises(SourceFormError, match="quotes"):
        harness(Path('/tmp/a"b.cu'), "a")


def test_c_symbols() -> None:
    text = harness(Path("/x/k.cu"), "outer::k", extern_c=True)
    assert '#include "/x/k.cu"' in text
    assert "subject::k_launch(&args, stream)" in text
    assert "subject::k_last_error" in text
