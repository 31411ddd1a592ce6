# SPDX-License-Identifier: Apache-2.0
"""What must be known about a kernel file before it is compiled, and the translation unit that calls it."""

from __future__ import annotations

import re
from pathlib import Path

from tmagen.hostrun.errors import SourceFormError

_NAMESPACE = re.compile(r"^namespace\s+([A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)\s*\{", flags=re.MULTILINE)
_NEEDED = {
    "struct GemmArgs": re.compile(r"\bstruct\s+GemmArgs\b"),
    "launch(const GemmArgs&, cudaStream_t)": re.compile(r"\blaunch\s*\("),
    "last_error()": re.compile(r"\blast_error\s*\("),
    "kStaticM, kStaticN, kStaticK": re.compile(r"\bkStaticM\b[\s\S]*\bkStaticN\b[\s\S]*\bkStaticK\b"),
}

_HARNESS = """\
#include {source}

#include "harness.hpp"

namespace subject = ::{namespace};

static cudaError_t call_launch(const standin::Arguments& values, cudaStream_t stream) {{
  subject::GemmArgs args{{}};
  args.a = reinterpret_cast<decltype(args.a)>(values.a);
  args.b = reinterpret_cast<decltype(args.b)>(values.b);
  args.d = reinterpret_cast<decltype(args.d)>(values.d);
  args.m = values.m;
  args.n = values.n;
  args.k = values.k;
  args.lda = values.lda;
  args.ldb = values.ldb;
  args.ldd = values.ldd;
  return {launch};
}}

int main() {{
  using Args = subject::GemmArgs;
  return standin::serve({{{{standin::element_name(decltype(Args::a){{}}), standin::element_name(decltype(Args::b){{}}),
                           standin::element_name(decltype(Args::d){{}})}},
                          {{subject::kStaticM, subject::kStaticN, subject::kStaticK}},
                          call_launch,
                          {last_error}}});
}}
"""


def find_namespace(text: str, name: str = "the file") -> str:
    """The first namespace opened at the start of a line, which holds GemmArgs, launch() and last_error().

    Raises SourceFormError, naming what is missing, for a file of another form.
    """
    found = _NAMESPACE.search(text)
    if found is None:
        raise SourceFormError(
            f"{name} opens no namespace at the start of a line",
            detail=("verify runs files in the form that `tmagen emit` writes",),
        )
    missing = [what for what, pattern in _NEEDED.items() if not pattern.search(text)]
    if missing:
        raise SourceFormError(
            f"{name} has no {', no '.join(missing)} in namespace {found.group(1)}",
            detail=("verify runs files in the form that `tmagen emit` writes",),
        )
    return found.group(1)


def harness(source: Path, namespace: str, *, extern_c: bool = False) -> str:
    """The C++ text of a program that includes `source` unmodified and calls its launch() on request.

    With `extern_c` it goes through the C symbols that TMAGEN_EXTERN_C adds.
    """
    quoted = str(source.absolute())
    if '"' in quoted or "\n" in quoted or "\\" in quoted:
        raise SourceFormError(f"{source}: a path with quotes, backslashes or line breaks cannot be included")
    symbol = f"subject::{namespace.split('::')[-1]}"
    launch = f"{symbol}_launch(&args, stream)" if extern_c else "subject::launch(args, stream)"
    last_error = f"{symbol}_last_error" if extern_c else "subject::last_error"
    return _HARNESS.format(source=f'"{quoted}"', namespace=namespace, launch=launch, last_error=last_error)
