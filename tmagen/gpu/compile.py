# SPDX-License-Identifier: Apache-2.0
"""From a kernel's source to what a GPU can load: a cubin, or a shared library with the file's own launch()."""

from __future__ import annotations

import ctypes
import tempfile
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tmagen.gpu.errors import MissingError
from tmagen.hostrun.source import find_namespace, includable
from tmagen.ir import DType, Target
from tmagen.toolchain import CompileError, KernelResources, Nvcc, compile_cubin, compile_object, link_host

COMPILERS = ("nvcc", "pycuda")

_EXTERN_C = "-DTMAGEN_EXTERN_C"
_RUNTIME = ("-lcudart_static", "-ldl", "-lrt", "-lpthread")

_UNIT = """\
#include {source}

#include <cstddef>
#include <cstdint>

struct __half;
struct __nv_bfloat16;

namespace subject = ::{namespace};

// The caller fills this struct from the outside.
static_assert(sizeof(subject::GemmArgs) == 72, "GemmArgs is three pointers and six 64-bit integers");
static_assert(offsetof(subject::GemmArgs, d) == 16 && offsetof(subject::GemmArgs, m) == 24 &&
                  offsetof(subject::GemmArgs, lda) == 48 && offsetof(subject::GemmArgs, ldd) == 64,
              "the members of GemmArgs are a, b, d, m, n, k, lda, ldb, ldd");

static constexpr const char* element(const __half*) {{ return "f16"; }}
static constexpr const char* element(const __nv_bfloat16*) {{ return "bf16"; }}
static constexpr const char* element(const float*) {{ return "f32"; }}

extern "C" const char* tmagen_element(int which) {{
  using Args = subject::GemmArgs;
  const char* const names[] = {{element(decltype(Args::a){{}}), element(decltype(Args::b){{}}),
                               element(decltype(Args::d){{}})}};
  return names[which];
}}

extern "C" std::int64_t tmagen_static(int which) {{
  const std::int64_t sizes[] = {{subject::kStaticM, subject::kStaticN, subject::kStaticK}};
  return sizes[which];
}}
"""


class GemmArgs(ctypes.Structure):
    """The struct of an emitted file."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in "abd"),
        *((name, ctypes.c_int64) for name in ("m", "n", "k", "lda", "ldb", "ldd")),
    )


@dataclass(frozen=True, slots=True, eq=False)
class LaunchLibrary:
    """A kernel file's host part, loaded into this process."""

    name: str
    elements: tuple[DType, DType, DType]  # of A, B and D
    static_mnk: tuple[int | None, int | None, int | None]  # None: given at run time
    resources: tuple[KernelResources, ...]
    launch: Any  # (GemmArgs*, stream) -> cudaError_t
    last_error: Any  # () -> bytes


def cubin_by_nvcc(source: Path, target: Target, nvcc: Nvcc) -> tuple[bytes, tuple[KernelResources, ...]]:
    """The machine code of an emitted file, its kernel under its C symbol. Raises CompileError."""
    built = compile_cubin(nvcc, source, arch=target.value, flags=(_EXTERN_C,))
    return built.data, built.kernels


def cubin_by_pycuda(text: str, target: Target, nvcc: Nvcc) -> bytes:
    """The same through `pycuda.compiler`, which calls nvcc. Raises MissingError, CompileError."""
    try:
        compiler = import_module("pycuda.compiler")
        compile_error = import_module("pycuda.driver").CompileError
    except ImportError as error:
        raise MissingError(f"PyCUDA cannot be imported: {error}", hint="--compiler nvcc") from error
    try:
        data: bytes = compiler.compile(
            text,
            nvcc=str(nvcc.path),
            options=["-std=c++17", _EXTERN_C],
            no_extern_c=True,  # the file says itself which symbol is C's
            arch=target.value,
            cache_dir=False,
        )
    except compile_error as error:
        said = "\n".join(filter(None, (error.stdout, error.stderr)))
        raise CompileError("pycuda.compiler.compile rejects the kernel", said) from error
    return data


def launch_library(source: Path, target: Target, nvcc: Nvcc) -> LaunchLibrary:
    """Builds `source` as it stands into a shared library, by its `NAME_launch`, and loads it.

    Raises SourceFormError for a file of another form, CompileError where nvcc rejects it or a symbol is missing.
    """
    text = source.read_text(encoding="utf-8", errors="replace")
    namespace = find_namespace(text, str(source))
    name = namespace.split("::")[-1]
    with tempfile.TemporaryDirectory(prefix="tmagen-") as place:
        folder = Path(place)
        unit = folder / "unit.cu"
        included, beside = includable(source, folder)
        unit.write_text(_UNIT.format(source=f'"{included}"', namespace=namespace))
        flags = ["-Xcompiler", "-fPIC", _EXTERN_C, f"-I{beside}"]
        built = compile_object(nvcc, unit, folder, arch=target.value, flags=flags)
        path = folder / "kernel.so"
        link_host([built.path], path, flags=["-shared", *(f"-L{d}" for d in nvcc.library_dirs), *_RUNTIME])
        try:
            library = ctypes.CDLL(str(path))  # the loader maps the file: it may go with its folder
            launch, last_error = library[f"{name}_launch"], library[f"{name}_last_error"]
        except (OSError, AttributeError) as error:
            raise CompileError(f"{source}: the library built from it does not serve", str(error)) from error
    launch.restype, launch.argtypes = ctypes.c_int, (ctypes.POINTER(GemmArgs), ctypes.c_void_p)
    last_error.restype, last_error.argtypes = ctypes.c_char_p, ()
    library.tmagen_element.restype = ctypes.c_char_p
    library.tmagen_static.restype = ctypes.c_int64
    a, b, d = (DType(library.tmagen_element(which).decode()) for which in range(3))
    m, n, k = (size if size >= 0 else None for size in map(library.tmagen_static, range(3)))
    return LaunchLibrary(name, (a, b, d), (m, n, k), built.cubin.kernels, launch, last_error)
