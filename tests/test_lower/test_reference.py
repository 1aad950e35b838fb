"""The 60 programs that other tools wrote (tests/data): TVM's LLVM against the interpreter, on every one of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from leir.files import DTYPE_NAMES
from leir.interpret import interpret
from leir.ir import Known, Signature
from leir.repair import import_text
from lower.build import build
from lower.compare import compare_within, summed, within
from lower.draws import draw_inputs
from lower.error_bound import error_bounds

LINES = (Path(__file__).parents[1] / "data" / "reference_leir_sample.jsonl").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", LINES, ids=[json.loads(line)["name"] for line in LINES])
def test_tvm_and_the_interpreter_agree(line: str) -> None:
    row = json.loads(line)
    known = [
        Known(t["name"], DTYPE_NAMES[t["dtype"]], tuple(t["shape"]), t["role"], tuple(t["range"]) if "range" in t else None)
        for t in row["tensors"]
    ]
    p, _ = import_text(row["leir"], Signature(row["name"], tuple(known)))
    inputs = draw_inputs(p.signature, 0, "normal")
    got, native, reference, bounds = (
        build(p).run(inputs),
        interpret(p, inputs),
        interpret(p, inputs, mode="f64"),
        error_bounds(p, inputs),
    )
    for tensor in p.signature.outputs:
        name = tensor.name
        tolerance = summed(tensor.dtype, bounds.get(name), bounds.get(name))
        assert within(tensor, got[name], reference[name], tolerance)
        found = compare_within(tensor, "normal", native[name], got[name], reference[name], tolerance)
        assert found.mismatches == 0
        assert found.compared > 0 or not np.isfinite(reference[name]).any()
