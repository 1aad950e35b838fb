"""The programs that the benchmarks run on."""

from __future__ import annotations

import json
from pathlib import Path

from leir.ir import Known, Program, Signature
from leir.repair import import_text

SAMPLE = Path(__file__).parent.parent / "tests" / "data" / "reference_leir_sample.jsonl"


def reference_records() -> list[dict[str, object]]:
    """The 60 records of the reference sample, as they stand in the file."""
    return [json.loads(line) for line in SAMPLE.read_text().splitlines()]


def reference_programs() -> list[Program]:
    """The 60 programs of the reference sample, missing casts inserted."""
    found = []
    for record in reference_records():
        tensors = record["tensors"]
        assert isinstance(tensors, list)
        known = tuple(Known(t["name"], _DTYPES[t["dtype"]], tuple(t["shape"]), t["role"]) for t in tensors)
        found.append(import_text(str(record["leir"]), Signature(str(record["name"]), known))[0])
    return found


_DTYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "int64": "i64", "bool": "bool"}
