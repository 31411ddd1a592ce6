# SPDX-License-Identifier: Apache-2.0
"""The project files say what is so."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tmagen

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SOURCES = sorted(path for path in (ROOT / "tmagen").rglob("*.py"))
TOOLCHAIN = "nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm nvidia-cuda-runtime nvidia-cuda-cccl nvidia-cuda-nvrtc"


def test_version_is_the_changelogs() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## (\S+)", changelog, re.MULTILINE)
    assert headings[headings[0] == "Unreleased"] == tmagen.__version__


def test_license() -> None:
    assert PYPROJECT["project"]["license"] == "Apache-2.0"
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_source_files(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("# SPDX-License-Identifier: Apache-2.0\n")
    assert ast.get_docstring(ast.parse(text))


def test_toolchain_is_one_release() -> None:
    pins = dict(pin.split("==") for pin in PYPROJECT["project"]["optional-dependencies"]["toolchain"])
    assert {".".join(pins[name].split(".")[:2]) for name in TOOLCHAIN.split()} == {"13.0"}
    tirx = dict(pin.split("==") for pin in PYPROJECT["project"]["optional-dependencies"]["tirx"])
    assert tirx == {"apache-tvm": "0.26.0", "apache-tvm-ffi": "0.1.15.post2"}


def test_base_dependencies_are_light() -> None:
    names = [re.split(r"[<>=]", requirement)[0] for requirement in PYPROJECT["project"]["dependencies"]]
    assert names == ["click", "jinja2", "ml_dtypes", "numpy", "rich"]


def test_what_is_imported_is_required() -> None:
    """Every package that tmagen imports is the standard library's, a base dependency, or one of an optional extra."""
    base = {"click", "jinja2", "ml_dtypes", "numpy", "rich"}
    optional = {"matplotlib", "pycuda", "tvm"}
    found: set[str] = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
    assert found - set(sys.stdlib_module_names) - {"tmagen"} <= base | optional


@pytest.mark.parametrize("path", sorted((ROOT / "tmagen" / "emu").rglob("*.py")), ids=lambda path: path.stem)
def test_emulator_stands_alone(path: Path) -> None:
    """The emulator is judged by what it knows of PTX, not of the generator: of tmagen it imports its errors alone."""
    allowed = re.compile(r"tmagen\.errors|tmagen\.emu(\.\w+)*")
    for node in ast.walk(ast.parse(path.read_text())):
        modules: list[str] = []
        if isinstance(node, ast.ImportFrom):
            assert not node.level
            modules = [node.module or ""]
            if node.module == "tmagen":
                modules = [f"tmagen.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        for module in modules:
            assert module.split(".")[0] != "tmagen" or allowed.fullmatch(module), f"line {node.lineno}: {module}"  # type: ignore[attr-defined]


def make(*arguments: str) -> str:
    return subprocess.run(["make", "-C", ROOT, *arguments], check=True, capture_output=True, text=True).stdout


def test_make_without_a_target_helps() -> None:
    out = make("--no-print-directory")
    for target in ("demo", "test", "lint", "regen", "bench", "clean", "help"):
        assert re.search(rf"^  make {target} +\S", out, re.MULTILINE)


def test_ci_runs_lint_and_tests() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    text = script.read_text()
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail\n" in text
    assert text.endswith("make lint\nmake test\n")


def test_scripts_and_templates_are_in_the_package() -> None:
    """The wheel takes the whole folder, so whatever the package reads at run time only has to be in it."""
    assert PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["tmagen"]}
    assert list((ROOT / "tmagen" / "templates").rglob("*.j2"))
    assert [path for path in (ROOT / "tmagen" / "hostrun" / "runtime").rglob("*") if path.is_file()]
    assert PYPROJECT["project"]["scripts"] == {"tmagen": "tmagen.cli:main"}


def test_no_tracked_file_names_this_machine() -> None:
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], check=False, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    home = str(Path.home())
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and home not in ("/", ""):
            assert home.encode() + b"/" not in path.read_bytes(), name
