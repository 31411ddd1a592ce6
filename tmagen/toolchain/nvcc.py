# SPDX-License-Identifier: Apache-2.0
"""Which nvcc is used."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tmagen.errors import Diagnostic
from tmagen.toolchain.errors import ToolchainError, trim_output
from tmagen.toolchain.process import run

_INSTALL = 'pip install "tmagen[toolchain]"'
_UNNAMED = "no --nvcc: CUDA_HOME, CUDA_PATH, PATH and the packages of this Python are searched then"


@dataclass(frozen=True, slots=True)
class Nvcc:
    """A CUDA compiler that knows the architecture asked for."""

    path: Path
    version: str  # "13.0.88"
    origin: str  # how it was found: "--nvcc", "CUDA_HOME", "CUDA_PATH", "PATH" or "PyPI"
    root: Path  # the toolkit that it belongs to: bin, include and lib or lib64 lie there
    include_dirs: tuple[Path, ...]  # where its headers are, for a host compiler
    passed_over: tuple[str, ...] = ()  # one line for each compiler that came first and does not serve

    def __str__(self) -> str:
        return f"nvcc {self.version} ({self.origin}: {self.path})"

    @property
    def library_dirs(self) -> tuple[Path, ...]:
        """Where libcudart lies. The PyPI toolchain has it in `lib`, where its nvcc does not look by itself."""
        candidates = (self.root / "lib64", self.root / "lib", self.root / "targets" / "x86_64-linux" / "lib")
        return tuple(path for path in candidates if path.is_dir())


def find_nvcc(path: str | Path | None = None, *, arch: str = "sm_100a") -> Nvcc:
    """The first nvcc that compiles for `arch`: `path`, CUDA_HOME, CUDA_PATH, PATH, the PyPI toolchain of this Python.

    A compiler that does not serve is passed over, with a line in :attr:`Nvcc.passed_over`; one that the caller named is
    an error instead. Raises ToolchainError, with the command that installs one, where none serves.
    """
    variables = tuple(os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH", "PATH"))
    return _find(None if path is None else str(path), arch, variables)


@lru_cache(maxsize=32)
def _find(named: str | None, arch: str, _variables: tuple[str, ...]) -> Nvcc:
    if named is not None:
        return _probe_named(Path(named), arch)
    passed_over: list[str] = []
    tried: set[Path] = set()
    for origin, candidate in _candidates():
        if candidate in tried:
            continue
        tried.add(candidate)
        found = _probe(candidate, origin, arch)
        if isinstance(found, Nvcc):
            return Nvcc(found.path, found.version, origin, found.root, found.include_dirs, tuple(passed_over))
        passed_over.append(f"passed over {candidate} ({origin}): {found}")
    raise ToolchainError(
        Diagnostic(
            f"no nvcc that compiles for {arch} (looked in CUDA_HOME, CUDA_PATH, PATH and the packages of this Python)",
            detail=tuple(passed_over),
            hint=_INSTALL,
        )
    )


def _probe_named(path: Path, arch: str) -> Nvcc:
    candidate = path / "bin" / "nvcc" if path.is_dir() else path
    resolved = shutil.which(str(candidate))
    if resolved is None:
        raise ToolchainError(Diagnostic(f"--nvcc {path}: no such program", hint=_UNNAMED))
    found = _probe(Path(resolved), "--nvcc", arch)
    if isinstance(found, Nvcc):
        return found
    raise ToolchainError(Diagnostic(f"--nvcc {path}: {found}", hint=_UNNAMED))


def _candidates() -> Iterator[tuple[str, Path]]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        home = os.environ.get(variable)
        if home:
            yield variable, Path(home) / "bin" / "nvcc"
    on_path = shutil.which("nvcc")
    if on_path is not None:
        yield "PATH", Path(on_path)
    for directory in nvidia_packages():
        yield "PyPI", directory / "bin" / "nvcc"


def nvidia_packages() -> tuple[Path, ...]:
    """The folders of NVIDIA's CUDA wheels (`nvidia/cu13` and later) that this Python can import, newest first."""
    roots = dict.fromkeys(
        [*map(Path, sys.path), Path(sysconfig.get_path("purelib")), Path(sysconfig.get_path("platlib"))]
    )
    found = {
        int(name.group(1)): directory
        for root in roots
        for directory in sorted((root / "nvidia").glob("cu*"))
        if (name := re.fullmatch(r"cu(\d+)", directory.name)) and (directory / "bin").is_dir()
    }
    return tuple(found[major] for major in sorted(found, reverse=True))


def _probe(path: Path, origin: str, arch: str) -> Nvcc | str:
    """The compiler at `path`, or why it does not serve."""
    if not path.is_file():
        return "no such file"
    version = run([path, "--version"])
    release = re.search(r"\bV(\d+(?:\.\d+)+)", version.output)
    if version.status != 0 or release is None:
        return "it does not answer --version as nvcc does"
    # A dry run reads no file: it says whether the architecture is known, and prints where the toolkit lies.
    virtual = arch.replace("sm_", "compute_")
    dry = run([path, "--dryrun", "-gencode", f"arch={virtual},code={arch}", "-c", "probe.cu"])
    if "Unsupported gpu architecture" in dry.output:
        return f"nvcc {release.group(1)} does not know {virtual}"
    if dry.status != 0:
        if host_compiler() is None:
            raise no_host_compiler()
        return f"nvcc {release.group(1)} does not work: {' '.join(trim_output(dry.output, shown=3))}"
    settings = dict(re.findall(r"^#\$ (\w+)=(.*)$", dry.output, flags=re.MULTILINE))
    includes = [Path(flag[2:]) for flag in shlex.split(settings.get("INCLUDES", "")) if flag.startswith("-I")]
    root = Path(settings.get("TOP", path.resolve().parent.parent)).resolve()
    return Nvcc(path, release.group(1), origin, root, tuple(folder.resolve() for folder in includes))


def host_compiler() -> str | None:
    """The C++ compiler that nvcc calls for host code, or None if there is none (NVCC_CCBIN, else g++)."""
    return shutil.which(os.environ.get("NVCC_CCBIN") or "g++")


def no_host_compiler() -> ToolchainError:
    """The error that says what to install."""
    wanted = os.environ.get("NVCC_CCBIN") or "g++"
    return ToolchainError(
        Diagnostic(f"no host C++ compiler: nvcc needs {wanted}, which is not on PATH", hint="apt-get install g++")
    )
