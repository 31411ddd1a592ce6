# SPDX-License-Identifier: Apache-2.0
"""A spec as TOML: the tree of :mod:`tmagen.ir`, with the words of the command line for its enums."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

from tmagen.arch import ARCHES, Arch, arch_of
from tmagen.choices import KINDS, Layer, choices_of, spec_from, value_of
from tmagen.errors import Diagnostic, SpecError, printable
from tmagen.ir import Gemm, Layout, Shape, Target
from tmagen.legality import require_legal
from tmagen.typecheck import INT_BITS
from tmagen.words import nearest, one_of, shown, toml_key

_SHOWN_CHARACTERS = 60

_TOML_TYPES = {
    bool: "a boolean",
    int: "an integer",
    float: "a float",
    str: "a string",
    list: "an array",
    dict: "a table",
}


def from_toml(text: str, source: str = "TOML") -> Gemm:
    """The spec that ``text`` describes; ``source`` names it in messages.

    Raises :class:`SpecError` for text that is no TOML, for unknown keys and wrong values, and for an illegal spec.
    """
    return spec_from([toml_layer(text, source)])


def toml_layer(text: str, source: str = "TOML") -> Layer:
    """What ``text`` says, and what of it could not be read."""
    from tomllib import loads

    try:
        document = loads(text)
    except (ValueError, RecursionError) as error:  # a number of too many digits is a plain ValueError
        reason = "tables or arrays are nested too deep" if isinstance(error, RecursionError) else str(error)
        shown_reason = " ".join(printable(reason[:200]).split())
        return Layer({}, (Diagnostic(f"{source} is no TOML: {shown_reason}"),))
    choices: dict[str, Any] = {}
    diagnostics: list[Diagnostic] = []
    for key, value in _flattened(document):
        try:
            choices[key] = _read(key, value)
        except SpecError as error:
            diagnostics += [Diagnostic(f"{source}: {d.message}", d.detail, d.hint) for d in error.diagnostics]
    return Layer(choices, tuple(diagnostics))


def _flattened(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """`section.key` and value of each entry, as TOML writes the key; what is not at the depth of a spec's keys comes as
    it is.
    """
    sections = {key.split(".")[0] for key in KINDS if "." in key}
    for name, value in document.items():
        if name in sections and isinstance(value, dict):
            for key, member in value.items():
                yield f"{name}.{toml_key(key)}", member
        else:
            yield toml_key(name), value


def _read(key: str, value: Any) -> Any:
    """The choice that ``key = value`` is. Raises :class:`SpecError`."""
    kind = KINDS.get(key)
    if kind is None:
        raise SpecError(_unknown(key, value))
    if kind is Shape:
        sizes: list[Any] = value if isinstance(value, list) else []
        if len(sizes) == 3 and all(type(size) is int for size in sizes):
            m, n, k = (_bounded(key, size) for size in sizes)
            return Shape(m, n, k)
        raise SpecError(_wrong(key, value, "an array of three integers [M, N, K]"))
    if issubclass(kind, Enum):
        words = {member.value: member for member in kind}
        if isinstance(value, str) and value in words:
            return words[value]
        takes = one_of(f'"{member.value}"' for member in _legal_anywhere(key) or kind)
        if isinstance(value, str):
            raise SpecError(Diagnostic(f"{key} = {shown(value)} is unknown", detail=(f"it takes {takes}",)))
        raise SpecError(_wrong(key, value, takes))
    if type(value) is not kind:
        raise SpecError(_wrong(key, value, _TOML_TYPES[kind]))
    return _bounded(key, value) if isinstance(value, int) and kind is int else value


def _legal_anywhere(key: str) -> tuple[Enum, ...]:
    """The members that ``key`` may have on some target; none where all are."""
    found: dict[str, tuple[Enum, ...]] = {
        "problem.layout_a": (Layout.K_MAJOR,),
        "problem.layout_b": (Layout.K_MAJOR,),
        "problem.layout_d": (Layout.ROW_MAJOR,),
    }
    for arch in ARCHES.values():
        for name, legal in (
            ("problem.a", arch.operands),
            ("problem.b", arch.operands),
            ("problem.d", arch.outputs),
            ("problem.acc", arch.accumulators),
        ):
            found[name] = tuple(dict.fromkeys((*found.get(name, ()), *legal)))
    return found.get(key, ())


def _bounded(key: str, value: int) -> int:
    if value.bit_length() > INT_BITS:
        raise SpecError(Diagnostic(f"{key} is an integer of {value.bit_length():,} bits, which is out of every range"))
    return value


def _wrong(key: str, value: Any, takes: str) -> Diagnostic:
    article = _TOML_TYPES.get(type(value), "a date or time")
    text = str(value).lower() if isinstance(value, bool) else shown(value)
    return Diagnostic(f"{key} = {text} is {article}", detail=(f"it takes {takes}",))


def _unknown(key: str, value: Any) -> Diagnostic:
    """A key that no spec has, with the one that was probably meant: by its whole name, or by its last part."""
    sections = dict.fromkeys(known.split(".")[0] for known in KINDS if "." in known)
    if key in sections:
        return _wrong(key, value, f"a table: [{key}]")
    if isinstance(value, dict):
        meant = nearest(key, sections)
        return Diagnostic(
            f"[{key[:_SHOWN_CHARACTERS]}] is no table of a spec", hint=None if meant is None else f"[{meant}]"
        )
    meant = nearest(key, KINDS)
    if meant is None or "." not in key:
        last = {known.split(".")[-1]: known for known in reversed(list(KINDS))}
        near_last = nearest(key.split(".")[-1], last)
        meant = meant if near_last is None else last[near_last]
    return Diagnostic(f"{key[:_SHOWN_CHARACTERS]} is no key of a spec", hint=meant)


def to_toml(spec: Gemm) -> str:
    """``spec`` as TOML that :func:`from_toml` reads back, each field with what it takes.

    A field that follows from the others stands there as a comment, so that it still follows when they are edited.
    Raises :class:`SpecError` for an illegal spec.
    """
    require_legal(spec)
    arch, said = arch_of(spec.target), choices_of(spec)
    follows = {
        "name": "my_kernel",
        "problem.b": spec.problem.b,
        "problem.d": spec.problem.d,
        "problem.shape": Shape(4096, 4096, 4096),
        "pipeline.policy": spec.pipeline.policy,
        "schedule.ctas": arch.sm_count,
    }
    lines: list[str] = []
    section = ""
    for key, takes in _takes(arch).items():
        table, _, name = key.rpartition(".")
        if table != section:
            section = table
            lines += ["", f"[{table}]"]
        if key in follows and key not in said:
            entry = f"# {name} = {_toml_value(follows[key])}"
        else:
            entry = f"{name} = {_toml_value(value_of(spec, key))}"
        lines.append(f"{entry:<28} # {takes}" if takes else entry)
    return "\n".join(lines) + "\n"


def _takes(arch: Arch) -> dict[str, str]:
    """What each key takes on ``arch``."""

    def words(members: Iterable[Enum]) -> str:
        return one_of(member.value for member in members)

    return {
        "target": words(Target),
        "name": "an identifier; left out: made from the rest",
        "problem.a": words(arch.operands),
        "problem.b": "as a",
        "problem.d": f"{words(arch.outputs)}; left out: as a",
        "problem.acc": words(arch.accumulators),
        "problem.layout_a": words([Layout.K_MAJOR]),
        "problem.layout_b": words([Layout.K_MAJOR]),
        "problem.layout_d": words([Layout.ROW_MAJOR]),
        "problem.shape": "M, N, K baked in; left out: run-time arguments",
        "tile.m": one_of(arch.block_m),
        "tile.n": one_of(arch.block_n),
        "tile.k": one_of(arch.block_k),
        "pipeline.depth": "stages, as many as shared memory holds",
        "pipeline.policy": "serial for one stage, prefetch for more; left out: by depth",
        "schedule.persistent": "true: a fixed grid, tile after tile; false: one CTA per tile",
        "schedule.ctas": f"CTAs of a persistent grid; left out: {arch.sm_count}, the SM count",
        "schedule.l2_group": "tile rows that a persistent grid finishes together",
        "cluster.m": one_of(m for m, _ in arch.clusters),
        "cluster.n": one_of(n for _, n in arch.clusters),
    }


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Enum):
        return f'"{value.value}"'
    if isinstance(value, Shape):
        return f"[{value.m}, {value.n}, {value.k}]"
    return f'"{value}"' if isinstance(value, str) else str(value)  # a legal name needs no escapes
