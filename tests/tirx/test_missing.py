# SPDX-License-Identifier: Apache-2.0
"""Where TVM is missing, or another release."""

from __future__ import annotations

import importlib.util
from importlib import metadata

import pytest

from tmagen.cli import main


def test_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["emit", "--backend", "tirx-cuda"]) == 2
    assert 'try: pip install "tmagen[tirx]"' in capsys.readouterr().err


def test_the_script_needs_no_tvm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["emit", "--backend", "tirx"]) == 0
    assert "@T.prim_func" in capsys.readouterr().out


def test_another_release_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(metadata, "version", lambda name: "0.27.0")
    assert main(["emit", "--backend", "tirx-cuda"]) == 2
    assert "apache-tvm 0.27.0 is installed" in capsys.readouterr().err
