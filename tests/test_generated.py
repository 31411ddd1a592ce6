# SPDX-License-Identifier: Apache-2.0
"""`generated/` is what the templates emit: the same files, byte for byte. `make regen` rewrites them."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

from tools import regen

CLANG_FORMAT = Path(sysconfig.get_path("scripts"), "clang-format")


def test_files_and_bytes() -> None:
    assert regen.differences(regen.wanted()) == [], "run `make regen`"


def test_a_change_a_gap_and_a_leftover_are_seen(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(regen, "GENERATED", tmp_path)
    (tmp_path / "old.cu").write_text("x")
    (tmp_path / "same.cu").write_text("y")
    (tmp_path / "other.cu").write_text("z")
    files = {Path("same.cu"): "y", Path("other.cu"): "w", Path("new.cu"): "v"}
    assert sorted(regen.differences(files)) == ["changed: other.cu", "left over: old.cu", "missing: new.cu"]
    regen.write(files)
    assert regen.differences(files) == []


def test_clang_format_agrees() -> None:
    files = sorted(regen.GENERATED.rglob("*.cu"))
    assert files
    done = subprocess.run([CLANG_FORMAT, "--dry-run", "-Werror", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
