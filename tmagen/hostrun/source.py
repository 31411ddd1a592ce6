# SPDX-License-Identifier: Apache-2.0
"""What must be known about a kernel file before it is compiled, and the translation unit that calls it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tmagen.errors import printable
from tmagen.hostrun.errors import SourceFormError

_FORM = "the form is that of `tmagen emit`: a namespace with the kernel, GemmArgs and launch()"
_NEEDED = {
    "launch(const GemmArgs&, cudaStream_t)": re.compile(r"\blaunch\s*\("),
    "last_error()": re.compile(r"\blast_error\s*\("),
    "kStaticM, kStaticN, kStaticK": re.compile(r"\bkStaticM\b[\s\S]*\bkStaticN\b[\s\S]*\bkStaticK\b"),
}

_NO_CODE = re.compile(
    r"""
    //(?:[^\n\\]|\\[\s\S])*                             # a comment goes on after a backslash at a line's end
    | ^[ \t]*\#(?:[^\n\\/]|\\[\s\S]|/(?![/*]))*          # so does a directive: braces of macros open nothing here
    | /\*[\s\S]*?(?:\*/|\Z)
    | \bR"(?P<mark>[^()\\\s"]{0,16})\([\s\S]*?\)(?P=mark)"
    | "(?:[^"\\\n]|\\[\s\S])*"
    | (?<![0-9a-fA-F])'(?:[^'\\\n]|\\[\s\S])+'            # not the mark between digits
    """,
    re.VERBOSE | re.MULTILINE,
)
_SCOPE = re.compile(
    r"""
    \bnamespace\s+(?:\[\[[^\]]*\]\]\s*)?(?P<name>[A-Za-z_]\w*(?:\s*::\s*(?:inline\s+)?[A-Za-z_]\w*)*)?\s*\{
    | \bextern\s*\{                                        # its "C" is gone
    | (?P<arguments>\bstruct\s+(?:\w+\s*\([^()]*\)\s*)?GemmArgs\s*(?:final\s*)?(?::[^{;]*)?)\{
    | (?P<open>\{)
    | (?P<close>\})
    """,
    re.VERBOSE,
)
_PLAIN_PATH = re.compile(r"[\w/.,:;+=@%~ ()\[\]^!-]+")
"""Paths that an #include directive, nvcc's command lines and PTX hold as they are."""

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


def find_namespace(text: str, name: str = "the file", wanted: str | None = None) -> str:
    """The namespace that defines GemmArgs; of several the one called `wanted`, by its last part or as a whole.

    Comments and strings are no code; other namespaces are passed over. Raises SourceFormError for a file of another
    form, naming what is missing, and for one of several kernels where none is wanted.
    """
    code = _without_comments(text)
    found: dict[str, str] = {}  # what each namespace that defines GemmArgs holds, opened again or not
    for namespace, body, defines in _scopes(code):
        if defines or namespace in found:
            found[namespace] = found.get(namespace, "") + body
    if wanted is not None:
        meant = [one for one in found if wanted.removeprefix("::") in (one, one.split("::")[-1])]
        if len(meant) != 1:
            have = f"it has {', '.join(found)}" if found else _FORM
            raise SourceFormError(f"{name} has no kernel {wanted!r}", detail=(have,))
        found = {meant[0]: found[meant[0]]}
    if not found:
        known = [*dict.fromkeys(namespace for namespace, _, _ in _scopes(code))]
        what = f"no GemmArgs in namespace {' or '.join(known[:3])}" if known else "no namespace with GemmArgs"
        raise SourceFormError(
            f"{name} has {what}", detail=(_FORM,), hint=f"tmagen check {name} --host, for a program of any other form"
        )
    if len(found) > 1:
        names = list(found)
        raise SourceFormError(
            f"{name} holds {len(names)} kernels, {', '.join(names[:-1])} and {names[-1]}: one is judged at a time",
            hint=f"tmagen verify {name} --kernel {names[0]}",
        )
    ((namespace, body),) = found.items()
    missing = [what for what, pattern in _NEEDED.items() if not pattern.search(body)]
    if missing:
        raise SourceFormError(f"{name} has no {', no '.join(missing)} in namespace {namespace}", detail=(_FORM,))
    return namespace


def _without_comments(text: str) -> str:
    """The text with a blank for each comment, directive, string and character."""
    return _NO_CODE.sub(" ", text)


def _scopes(code: str) -> Iterator[tuple[str, str, bool]]:
    """Each namespace body of `code`: the whole name, the text with what is nested in it, whether it defines GemmArgs.

    What an anonymous namespace or a language linkage holds belongs to the namespace around it.
    """
    # Of each open brace: the namespace around it (None inside functions and classes), where its text starts, and
    # whether GemmArgs is defined in it.
    stack: list[list[Any]] = []
    for match in _SCOPE.finditer(code):
        around: str | None = stack[-1][0] if stack else ""
        if match["close"]:
            if stack:
                namespace, start, defines, own = stack.pop()
                if own:
                    yield namespace, code[start : match.start()], defines
                elif namespace is not None and defines and stack:
                    stack[-1][2] = True
        elif match["open"]:
            stack.append([None, 0, False, False])
        elif match["arguments"]:
            if stack and around is not None:
                stack[-1][2] = True
            stack.append([None, 0, False, False])
        elif match["name"] and around is not None:
            path = "::".join(re.findall(r"(?!inline\b)\b[A-Za-z_]\w*", match["name"]))
            stack.append([f"{around}::{path}" if around else path, match.end(), False, True])
        else:
            stack.append([around, 0, False, False])
    for namespace, start, defines, own in stack:  # a brace is missing: let the compiler say so
        if own:
            yield namespace, code[start:], defines


def includable(source: Path, folder: Path) -> tuple[Path, Path]:
    """Paths of `source` and of its folder that an #include directive and a command line can hold: its own, or links in
    `folder` where that has quotes, backslashes or control characters.
    """
    path = source.absolute()
    if _PLAIN_PATH.fullmatch(str(path)):
        return path, path.parent
    link, beside = folder / "kernel.cu", folder / "beside"
    link.symlink_to(path)
    beside.symlink_to(path.parent)
    return link, beside


def quotable(path: str) -> str:
    """A path as a string of PTX, which knows no escapes, can show it."""
    return printable(path).replace("\n", r"\n").replace('"', "'")


def harness(source: Path, namespace: str, *, extern_c: bool = False) -> str:
    """The C++ text of a program that includes `source` unmodified and calls its launch() on request.

    The path is one of :func:`includable`. With `extern_c` it goes through the C symbols that TMAGEN_EXTERN_C adds.
    """
    symbol = f"subject::{namespace.split('::')[-1]}"
    launch = f"{symbol}_launch(&args, stream)" if extern_c else "subject::launch(args, stream)"
    last_error = f"{symbol}_last_error" if extern_c else "subject::last_error"
    return _HARNESS.format(source=f'"{source}"', namespace=namespace, launch=launch, last_error=last_error)
