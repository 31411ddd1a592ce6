# SPDX-License-Identifier: Apache-2.0
"""Edits of emitted text: what is to be replaced must be there, once."""

from __future__ import annotations

Edit = tuple[str, str]


def edited(text: str, *edits: Edit) -> str:
    """The text with each first part replaced by the second."""
    for old, new in edits:
        count = text.count(old)
        assert count == 1, f"{count} times in the emitted text, where 1 is needed:\n{old}"
        text = text.replace(old, new)
    return text
