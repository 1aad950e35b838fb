"""The 60 programs that other tools wrote, and what there is to say about each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leir.check import check_flat
from leir.diagnostics import Diagnostic
from leir.files import DTYPE_NAMES
from leir.ir import Known, Signature
from leir.parser import parse_nests
from leir.repair import import_text

SAMPLE = Path(__file__).parent.parent / "data" / "reference_leir_sample.jsonl"


def reference_programs() -> Iterator[tuple[Signature, str]]:
    """Signature and text of every program, in the order of the file."""
    for line in SAMPLE.read_text(encoding="utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        known = (Known(t["name"], DTYPE_NAMES[t["dtype"]], tuple(t["shape"]), t["role"]) for t in row["tensors"])
        yield Signature(row["name"], tuple(known)), row["leir"]


def report() -> list[dict[str, Any]]:
    """Per program: what the checker says of the text as it came, and what import says, with and without demotion."""
    found = []
    for signature, text in reference_programs():
        parsed = parse_nests(text)
        found.append(
            {
                "name": signature.name,
                "check": _lines(check_flat(signature, parsed.nests, spans=parsed.spans)),
                "import": _lines(import_text(text, signature)[1]),
                "import, demoted": _lines(import_text(text, signature, demote=True)[1]),
            }
        )
    return found


def _lines(diagnostics: list[Diagnostic]) -> list[str]:
    return [f"{d.place}: {d.severity}[{d.code}]: {d.message}" for d in diagnostics]
