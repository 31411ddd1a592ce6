# SPDX-License-Identifier: Apache-2.0
"""A comparison as text, JSON, HTML or Markdown."""

from __future__ import annotations

import json
from typing import TextIO

from tmagen.diff.compare import Comparison
from tmagen.diff.document import document_of
from tmagen.diff.render_html import render_html
from tmagen.diff.render_markdown import render_markdown
from tmagen.diff.render_text import render_text
from tmagen.diff.to_json import to_dict

FORMATS = ("text", "json", "html", "markdown")


def render(comparison: Comparison, form: str, stream: TextIO | None = None, *, times: bool = True) -> str:
    """The report. `stream` is where text goes: a terminal gets colours, and its own width.

    Without `times` nothing in it differs from run to run. Raises ValueError for another form than FORMATS.
    """
    if form == "json":
        return json.dumps(to_dict(comparison, times=times), indent=2) + "\n"
    document = document_of(comparison, times=times)
    if form == "text":
        return render_text(document, stream)
    if form == "markdown":
        return render_markdown(document)
    if form == "html":
        return render_html(document)
    raise ValueError(f"format {form!r} is not one of {', '.join(FORMATS)}")
