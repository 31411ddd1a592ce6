# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tmagen.errors import TmagenError
from tmagen.toolchain import (
    CompileError,
    KernelResources,
    Nvcc,
    ToolchainError,
    compile_cubin,
    compile_nvrtc,
    compile_object,
    compile_ptx,
    count_opcodes,
    disassemble,
    find_nvcc,
    link_host,
    parse_ptxas_report,
)
from tmagen.toolchain import nvcc as nvcc_module
from tmagen.toolchain.errors import trim_output
from tmagen.toolchain.process import run

SOURCE = """\
extern "C" __global__ void __launch_bounds__(64) twice(float* x) {
  __shared__ float staged[64];
  staged[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = 2.0f * staged[63 - threadIdx.x];
}
"""

# A compiler that answers as nvcc 12.4 does, which knows no Blackwell.
OLD_NVCC = """\
#!/bin/sh
case "$1" in
  --version) echo "Cuda compilation tools, release 12.4, V12.4.131" ;;
  *) echo "nvcc fatal   : Unsupported gpu architecture 'compute_100a'" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def fresh_search(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A search that starts with nothing: no CUDA variables, no remembered answers."""
    nvcc_module._find.cache_clear()
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    yield monkeypatch
    nvcc_module._find.cache_clear()


@pytest.fixture(scope="module")
def nvcc() -> Nvcc:
    return find_nvcc()


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go, and must not stay."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def toolkit(folder: Path, script: str) -> Path:
    program = folder / "bin" / "nvcc"
    program.parent.mkdir(parents=True)
    program.write_text(script)
    program.chmod(0o755)
    return folder


def test_old_compiler_is_passed_over_with_a_line(fresh_search: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = toolkit(tmp_path / "old", OLD_NVCC)
    fresh_search.setenv("CUDA_HOME", str(home))
    found = find_nvcc()
    assert found.origin != "CUDA_HOME"
    (line,) = found.passed_over
    assert str(home) in line
    assert "nvcc 12.4.131 does not know compute_100a" in line


def test_cuda_home_comes_before_path(fresh_search: pytest.MonkeyPatch, tmp_path: Path, nvcc: Nvcc) -> None:
    fresh_search.setenv("CUDA_HOME", str(toolkit(tmp_path / "here", f'#!/bin/sh\nexec {nvcc.path} "$@"\n')))
    found = find_nvcc()
    assert (found.origin, found.version) == ("CUDA_HOME", nvcc.version)
    assert found.root == nvcc.root, "the toolkit is where the compiler says, not where a wrapper lies"


def test_named_compiler_that_does_not_serve_is_an_error(fresh_search: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="does not know compute_100a"):
        find_nvcc(toolkit(tmp_path / "old", OLD_NVCC))
    with pytest.raises(ToolchainError, match="no such program") as raised:
        find_nvcc(tmp_path / "missing" / "nvcc")
    assert "try: no --nvcc: CUDA_HOME" in raised.value.report(), "installing one more would not help"


def test_no_compiler_at_all_says_how_to_install_one(fresh_search: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fresh_search.setenv("PATH", str(tmp_path))
    fresh_search.setenv("CUDA_HOME", str(tmp_path))
    fresh_search.setattr(nvcc_module, "nvidia_packages", lambda: ())
    with pytest.raises(ToolchainError) as raised:
        find_nvcc()
    assert 'pip install "tmagen[toolchain]"' in raised.value.report()
    assert "no such file" in raised.value.report(), "what CUDA_HOME names is mentioned"


def test_a_folder_for_temporary_files_that_is_not_there_is_passed_over(
    fresh_search: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fresh_search.setenv("TMPDIR", str(tmp_path / "nowhere"))
    fresh_search.setattr(tempfile, "tempdir", None)
    assert find_nvcc().passed_over == ()

    def fails() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/x']")

    fresh_search.setattr(tempfile, "gettempdir", fails)
    with pytest.raises(ToolchainError, match="there is no directory for temporary files") as raised:
        run(["true"])
    assert raised.value.diagnostic.hint == "TMPDIR, set to one that can be written"


def test_missing_host_compiler_is_named(fresh_search: pytest.MonkeyPatch, tmp_path: Path, nvcc: Nvcc) -> None:
    source = tmp_path / "twice.cu"
    source.write_text(SOURCE)
    fresh_search.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match=r"needs g\+\+, which is not on PATH"):
        compile_ptx(nvcc, source)


def test_ptx_has_source_lines_and_the_exact_architecture(nvcc: Nvcc, tmp_path: Path, scratch: Path) -> None:
    source = tmp_path / "twice.cu"
    source.write_text(SOURCE)
    ptx = compile_ptx(nvcc, source)
    assert ".target sm_100a" in ptx
    assert str(source) in ptx, ".file names the source"
    assert "\t.loc\t1 5 " in ptx
    assert list(scratch.iterdir()) == []


def test_cubin_report_and_sass(nvcc: Nvcc, tmp_path: Path, scratch: Path) -> None:
    source = tmp_path / "twice.cu"
    source.write_text(SOURCE)
    cubin = compile_cubin(nvcc, source)
    (kernel,) = cubin.kernels
    assert (kernel.name, kernel.static_smem_bytes, kernel.barriers) == ("twice", 256, 1)
    assert (kernel.spill_store_bytes, kernel.spill_load_bytes) == (0, 0)
    assert 1 <= kernel.registers <= 32
    opcodes = count_opcodes(disassemble(cubin.data, nvcc=nvcc))
    assert opcodes["EXIT"] == 1
    assert sum(count for opcode, count in opcodes.items() if opcode.startswith("BAR.SYNC")) == 1
    assert list(scratch.iterdir()) == []


def test_toolchain_from_pypi_works_alone(fresh_search: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fresh_search.setattr(nvcc_module.shutil, "which", lambda name: None if name == "nvcc" else f"/usr/bin/{name}")
    found = find_nvcc()
    assert found.origin == "PyPI"
    source = tmp_path / "main.cu"
    source.write_text(SOURCE + "int main() { twice<<<1, 64>>>(nullptr); return cudaDeviceSynchronize() == 0; }\n")
    folder = tmp_path / "out"
    folder.mkdir()
    compiled = compile_object(found, source, folder)
    libraries = [flag for place in found.library_dirs for flag in (f"-L{place}", f"-Wl,-rpath,{place}")]
    link_host([compiled.path], tmp_path / "program", flags=[*libraries, "-lcudart_static", "-ldl", "-lrt", "-lpthread"])


def test_one_run_gives_object_ptx_and_cubin(nvcc: Nvcc, tmp_path: Path, scratch: Path) -> None:
    source = tmp_path / "twice.cu"
    source.write_text(SOURCE)
    folder = tmp_path / "out"
    folder.mkdir()
    compiled = compile_object(nvcc, source, folder)
    assert compiled.path.read_bytes()[:4] == b"\x7fELF"
    assert ".visible .entry twice(" in compiled.ptx
    assert [kernel.name for kernel in compiled.cubin.kernels] == ["twice"]


def test_library_dirs_hold_the_runtime(nvcc: Nvcc) -> None:
    assert any(list(folder.glob("libcudart.so*")) for folder in nvcc.library_dirs)


def test_rejected_source_shows_the_compilers_words(nvcc: Nvcc, tmp_path: Path, scratch: Path) -> None:
    source = tmp_path / "broken.cu"
    source.write_text("__global__ void k() { nonsense(); }\n")
    with pytest.raises(CompileError) as raised:
        compile_cubin(nvcc, source)
    assert isinstance(raised.value, TmagenError)
    assert 'identifier "nonsense" is undefined' in raised.value.report()
    assert f"nvcc {nvcc.version}" in raised.value.report()
    assert list(scratch.iterdir()) == []


def test_ptxas_errors_are_told_too(nvcc: Nvcc, tmp_path: Path) -> None:
    source = tmp_path / "broken.cu"
    source.write_text('__global__ void k() { asm volatile("no.such.opcode;"); }\n')
    with pytest.raises(CompileError) as raised:
        compile_cubin(nvcc, source)
    assert "Not a name of any known instruction: 'no'" in raised.value.report()


def test_undefined_symbols_are_named(tmp_path: Path, nvcc: Nvcc) -> None:
    source = tmp_path / "main.cu"
    source.write_text("int missing();\nint main() { return missing(); }\n")
    folder = tmp_path / "out"
    folder.mkdir()
    compiled = compile_object(nvcc, source, folder)
    with pytest.raises(CompileError, match="cannot link") as raised:
        link_host([compiled.path], tmp_path / "program")
    assert "missing" in raised.value.output


def test_nvrtc_compiles_without_a_gpu() -> None:
    result = compile_nvrtc(SOURCE)
    assert ".target sm_100a" in result.ptx
    assert result.cubin[:4] == b"\x7fELF"
    assert result.log == ""


def test_nvrtc_log_is_the_error() -> None:
    with pytest.raises(CompileError) as raised:
        compile_nvrtc("__global__ void k() { nonsense(); }", name="broken.cu")
    assert 'broken.cu(1): error: identifier "nonsense" is undefined' in raised.value.report()


REPORT = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1aPf' for 'sm_100a'
ptxas info    : Function properties for _Z1aPf
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 255 registers, used 3 barriers, 16 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 9.739 ms
ptxas info    : Compiling entry function 'b' for 'sm_100a'
ptxas info    : Function properties for helper
    64 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Function properties for b
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
"""


def test_ptxas_report_is_read_kernel_by_kernel() -> None:
    assert parse_ptxas_report(REPORT) == (
        KernelResources("_Z1aPf", 255, 8, 12, 16, 1024, 3),
        KernelResources("b", 8, 0, 0, 0, 0, 0),
    )


def test_ptxas_report_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="registers of b"):
        parse_ptxas_report("Compiling entry function 'b' for 'sm_100a'\nUsing eight registers\n")


def test_opcodes_of_both_disassemblers() -> None:
    text = """\
        /*0000*/                   LDC R1, c[0x0][0x37c] ;      /* 0x0000df00ff017b82 */
        /*0010*/              @!P0 BRA.U.ANY 0x90 ;
        /*0020*/             @UP1  UTCHMMA gdesc[UR4] ;
        /*0030*/                   EXIT ;
"""
    assert count_opcodes(text) == {"LDC": 1, "BRA.U.ANY": 1, "UTCHMMA": 1, "EXIT": 1}


def test_long_output_is_cut_at_the_first_error() -> None:
    lines = [f"warning {i}" for i in range(100)] + ["x.cu(7): error: no"] + [f"note {i}" for i in range(50)]
    shown = trim_output("\n".join(lines), shown=10)
    assert shown[0] == "(100 lines before this)"
    assert shown[1] == "x.cu(7): error: no"
    assert shown[-1] == "(41 more lines)"
    assert trim_output("a\n\nb\n") == ("a", "b")
