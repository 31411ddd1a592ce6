# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from tmagen.hostrun import SourceFormError, build
from tmagen.hostrun.source import find_namespace, harness, includable, quotable

BODY = """\
struct GemmArgs { };
constexpr int kStaticM = 0, kStaticN = 0, kStaticK = 0;
static int launch(const GemmArgs&, void*) { if (1) { return 0; } return 1; }
const char* last_error();
}
"""
SAMPLE = Path(__file__).parent / "sample.cu"


@pytest.mark.parametrize(
    "text",
    [
        f"namespace gemm_a {{\n{BODY}",
        f"  namespace gemm_a\n{{\n{BODY}",
        f"namespace inner {{}}\nnamespace gemm_a {{\n{BODY}",
        f"namespace helpers {{\nint launch(int);\nstruct Other {{}};\n}}\nnamespace gemm_a {{\n{BODY}",
        f"/*\nnamespace foo {{\n*/\nnamespace gemm_a {{\n{BODY}",
        f"// namespace foo {{\n// goes on \\\nnamespace foo {{\nnamespace gemm_a {{\n{BODY}",
        f'const char* s = "\\"namespace foo {{";\nchar c = \'{{\';\nnamespace gemm_a {{\n{BODY}',
        f'const char* s = R"(namespace foo {{ " )";\nnamespace gemm_a {{\n{BODY}',
        f"int big = 1'000'000, hex = 0xf'f;\nnamespace gemm_a {{\n{BODY}",
        f"namespace gemm_a {{ namespace {{ int hidden; }}\n{BODY}",
        f"#define OPEN namespace foo \\\n  {{\nnamespace gemm_a {{\n{BODY}",
        f"#define X /* a\n{{ */ 1\n#define Y 1 // {{\nnamespace gemm_a {{\n{BODY}",
        f"namespace gemm_a {{\n{BODY}".rstrip().removesuffix("}"),
        f"namespace gemm_a {{ struct Fwd; struct GemmArgs; {BODY}",
        f"namespace gemm_a {{ int before; }}\nnamespace gemm_a {{\n{BODY}",
        f"namespace [[maybe_unused]] gemm_a {{\n{BODY}",
        "namespace gemm_a { struct GemmArgs {}; }\nnamespace gemm_a {\n" + BODY.split("\n", 1)[1],
        'namespace gemm_a { extern "C" { struct alignas(16) GemmArgs {}; }\n' + BODY.split("\n", 1)[1],
    ],
)
def test_the_namespace_that_holds_the_arguments(text: str) -> None:
    assert find_namespace(text) == "gemm_a"


def test_nested_namespaces() -> None:
    assert find_namespace(f"namespace a::b\n{{\n{BODY}") == "a::b"
    assert find_namespace(f"namespace a {{ namespace b {{\n{BODY}}}") == "a::b"
    assert find_namespace(f"namespace a {{ inline namespace b {{\n{BODY}}}") == "a::b"
    assert find_namespace(f"namespace a::inline b {{\n{BODY}") == "a::b"


def test_missing_parts_are_named() -> None:
    with pytest.raises(SourceFormError, match=r"x\.cu has no namespace with GemmArgs"):
        find_namespace("int main() {}", "x.cu")
    with pytest.raises(SourceFormError, match=r"x\.cu has no namespace with GemmArgs"):
        find_namespace(BODY.removesuffix("}\n"), "x.cu")
    with pytest.raises(SourceFormError, match=r"x\.cu has no GemmArgs in namespace a or b"):
        find_namespace("namespace a { void f() { struct GemmArgs {}; } }\nnamespace b {}", "x.cu")
    with pytest.raises(SourceFormError, match=r"x\.cu has no last_error\(\) in namespace a") as raised:
        find_namespace("namespace a {\n" + BODY.replace("last_error", "error") + "int last_error();", "x.cu")
    assert raised.value.exit_code == 2


def test_of_several_kernels_one_is_named() -> None:
    text = f"namespace gemm_a {{\n{BODY}\nnamespace outer::gemm_b {{\n{BODY}"
    with pytest.raises(SourceFormError) as raised:
        find_namespace(text, "x.cu")
    assert raised.value.report() == (
        "error: x.cu holds 2 kernels, gemm_a and outer::gemm_b: one is judged at a time\n"
        "  try: tmagen verify x.cu --kernel gemm_a"
    )
    for wanted in ("gemm_b", "outer::gemm_b", "::outer::gemm_b"):
        assert find_namespace(text, wanted=wanted) == "outer::gemm_b"
    assert find_namespace(text, wanted="gemm_a") == "gemm_a"
    with pytest.raises(SourceFormError, match="the file has no kernel 'gemm_c'") as raised:
        find_namespace(text, wanted="gemm_c")
    assert raised.value.diagnostic.detail == ("it has gemm_a, outer::gemm_b",)


def test_paths_that_no_directive_holds(tmp_path: Path) -> None:
    folder = tmp_path / 'a "quoted" \\ folder\n'
    folder.mkdir()
    source = folder / "k'$(x).cu"
    text = SAMPLE.read_text()
    source.write_text('#include "beside it.h"\n' + text)
    (folder / "beside it.h").write_text("#pragma once\n")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    included, beside = includable(source, scratch)
    assert included.read_text() == source.read_text()
    assert (beside / "beside it.h").is_file()
    assert includable(tmp_path / "plain one.cu", scratch) == (tmp_path / "plain one.cu", tmp_path)
    with build(source) as program:
        assert f'"{quotable(str(source))}"' in program.ptx
        assert str(program._folder) not in program.ptx


def test_c_symbols() -> None:
    text = harness(Path("/x/k.cu"), "outer::k", extern_c=True)
    assert '#include "/x/k.cu"' in text
    assert "subject::k_launch(&args, stream)" in text
    assert "subject::k_last_error" in text
