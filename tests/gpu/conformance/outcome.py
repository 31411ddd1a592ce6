# SPDX-License-Identifier: Apache-2.0
"""What came of a question, as it is written down and compared."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.gpu.conformance.question import Array, Question

MEMORY, TRAP, HANG, REFUSED = "memory", "trap", "hang", "refused"
"""It ended; it was ended by a trap; it did not end; it was not begun: a launch or a tensor map that is no good."""

_HEX_BYTES = 128
_PACKED_CHARS = 3200


@dataclass(frozen=True)
class Outcome:
    """`what` happened, `says` the error's name or message, and for MEMORY the bytes of each output."""

    what: str
    says: str = ""
    outputs: Mapping[str, bytes] = field(default_factory=dict)

    def arrays(self, question: Question) -> dict[str, Array]:
        """The outputs as the question's types."""
        return {b.name: np.frombuffer(self.outputs[b.name], b.dtype) for b in question.outputs}

    def record(self, question: Question) -> dict[str, Any]:
        """What is written down of an answer by hardware."""
        found: dict[str, Any] = {"digest": question.digest, "what": self.what}
        if self.says:
            found["says"] = self.says
        if self.what == MEMORY:
            if question.shows:
                found["shows"] = shown(question, self)
            if question.varies is not None:
                found["reduced"] = question.varies(self.arrays(question))
            else:
                found["outputs"] = {name: _packed(raw) for name, raw in self.outputs.items()}
        return found


def shown(question: Question, outcome: Outcome) -> str:
    """The answer in the question's words."""
    arrays = outcome.arrays(question)
    first = arrays[question.outputs[0].name]
    return question.shows.format(w=[item.item() for item in first], **arrays)


def difference(question: Question, record: Mapping[str, Any], outcome: Outcome) -> str:
    """How the emulator's outcome differs from a record of hardware; empty where it does not."""
    if record["what"] != outcome.what:
        return f"H200: {record['what']} {record.get('says', '')}; emulator: {outcome.what} {outcome.says}".strip()
    if outcome.what != MEMORY:
        return ""
    if question.varies is not None:
        ours = question.varies(outcome.arrays(question))
        return "" if ours == record["reduced"] else f"H200: {record['reduced']}; emulator: {ours}"
    for buffer in question.outputs:
        ours_raw, theirs = outcome.outputs[buffer.name], record["outputs"][buffer.name]
        if not _same(ours_raw, theirs):
            return f"{buffer.name}: {_where(ours_raw, theirs, buffer.dtype)}"
    return ""


def _packed(raw: bytes) -> dict[str, str | int]:
    if len(raw) <= _HEX_BYTES:
        return {"hex": _words(raw)}
    packed = base64.b64encode(zlib.compress(raw, 9)).decode()
    if len(packed) <= _PACKED_CHARS:
        return {"bytes": len(raw), "zlib": packed, "begins": _words(raw[:32])}
    return {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest(), "begins": _words(raw[:128])}


def _same(raw: bytes, record: Mapping[str, Any]) -> bool:
    theirs = unpacked(record)
    return raw == theirs if theirs is not None else hashlib.sha256(raw).hexdigest() == record["sha256"]


def unpacked(record: Mapping[str, Any]) -> bytes | None:
    """The bytes of an output that was written down; None where only its digest was."""
    if "hex" in record:
        return b"".join(int(word, 16).to_bytes(len(word) // 2, "little") for word in record["hex"].split())
    return zlib.decompress(base64.b64decode(record["zlib"])) if "zlib" in record else None


def _words(raw: bytes) -> str:
    """Little-endian words of 32 bits, as they are read."""
    return " ".join(raw[at : at + 4][::-1].hex() for at in range(0, len(raw), 4))


def _where(ours: bytes, record: Mapping[str, Any], dtype: str) -> str:
    theirs = unpacked(record)
    if theirs is None:
        return f"another digest; H200 begins {record['begins']}; emulator begins {_words(ours[:128])}"
    mine, hardware = np.frombuffer(ours, dtype), np.frombuffer(theirs, dtype)
    bits = f"u{mine.itemsize}"
    wrong = np.flatnonzero(mine.view(bits) != hardware.view(bits))
    first = ", ".join(
        f"[{i}] H200 {hardware.view(bits)[i]:#x} ({hardware[i]}), emulator {mine.view(bits)[i]:#x} ({mine[i]})"
        for i in wrong[:6]
    )
    return f"{wrong.size} of {mine.size} elements differ: {first}"
