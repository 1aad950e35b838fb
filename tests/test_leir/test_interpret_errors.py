"""What has no meaning, and what the interpreter says about it. Both walks refuse alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from leir.interpret import InterpretError, run_flat
from leir.ir import Known, Signature
from leir.parser import parse_nests

SIGNATURE = Signature(
    "t",
    (
        Known("A", "f32", (4,), "input"),
        Known("I", "i32", (4,), "param", (0, 3)),
        Known("J", "i32", (4,), "input"),
        Known("D", "f32", (4,), "output"),
    ),
)
INPUTS = {"A": np.arange(4, dtype=np.float32), "I": np.int32([0, 1, 2, 3]), "J": np.int32([0, 1, 4, 0])}
FILL = "L^{4}_{a=0}[D^{f32,g}_{a}=0;];"


def error_of(text: str, walk: Any, inputs: dict[str, Any] | None = None) -> str:
    with pytest.raises(InterpretError) as caught:
        run_flat(SIGNATURE, parse_nests(text).nests, INPUTS if inputs is None else inputs, walk=walk)
    return str(caught.value)


@pytest.mark.parametrize("walk", ["points", "vector"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("L^{4}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a+1};];", "expression 1: reads A[4], outside its shape [4], at a=3"),
        ("L^{4}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a-1};];", "expression 1: reads A[-1], outside its shape [4], at a=0"),
        (
            "L^{4}_{a=0}[D^{f32,g}_{a}=if_then_else(a<2&A^{f32,g}_{a+1}>0,1,0);];",
            "expression 1: reads A[4], outside its shape [4], at a=3",
        ),
        (
            "L^{4}_{a=0}[D^{f32,g}_{a}=if_then_else(a>0,A^{f32,g}_{a-2},0);];",
            "expression 1: reads A[-1], outside its shape [4], at a=1",
        ),
        ("L^{5}_{a=0}[D^{f32,g}_{a}=0;];", "expression 1: writes D[4], outside its shape [4], at a=4"),
        (FILL + "L^{3}_{a=0}[E^{f32,g}_{a-1}=0;];", "expression 2: writes E[-1], outside its shape [2], at a=0"),
        (
            FILL + "L^{2}_{a=0}[E^{f32,g}_{a*2}=0;];L^{2}_{a=0}L^{2}_{c=0}[D^{f32,g}_{c}=E^{f32,g}_{a+c};];",
            "expression 3: reads E[1] before it is written, at a=0, c=1",
        ),
        ("L^{4}_{a=0}[D^{f32,g}_{a}=D^{f32,g}_{a}+D^{f32,g}_{a};];", "expression 1: reads D[0] before it is written, at a=0"),
        (
            FILL + "L^{4}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{J^{i32,g}_{a}};];",
            "expression 2: reads A[4], outside its shape [4], at a=2",
        ),
        (
            "L^{4}_{a=0}[E^{f32,g}_{a}=1;[D^{f32,g}_{a}=A^{f32,g}_{a//a};];];",
            "expression 1, equation 2: // by zero, at a=0",
        ),
        ("L^{4}_{a=0}[E^{i32,g}_{a}=3%J^{i32,g}_{a};];", "expression 1: % by zero, at a=0"),
        ("[E^{i32,g}=2**(-J^{i32,g}_{2});];", "expression 1: an integer to a negative power"),
        ("[E^{f32,g}=F^{f32,g};];", "expression 1: reads F, which nothing writes"),
        ("[E^{f16,g}=A^{f16,g}_{0};];", "expression 1: A is f32, and used as f16"),
        ("[E^{f32,g}=A^{f32,g}_{0,0};];", "expression 1: A has 1 dimensions, and 2 subscripts"),
        ("[A^{f32,g}_{0}=1;];", "expression 1: writes A, which is an input"),
        ("[E^{f32,g}=J^{i32,g}_{0};];", "expression 1: i32 where f32 is expected"),
        ("[E^{f32,g}_{J^{i32,g}_{0}}=1;];", "E: a target's subscript holds more than loop indices and integers"),
        ("[D^{f32,g}_{J^{i32,g}_{0}}=1;];", "expression 1: the target D has an access in a subscript"),
        ("L^{3}_{a=0}[D^{f32,g}_{a}=1;];", "D[3]: an output that is never written"),
        ("[E^{f32,g}=A^{f32,g}_{9223372036854775807+1-9223372036854775807-1};];", "expression 1: an index expression leaves i64"),
    ],
)
def test_programs_without_a_meaning(text: str, message: str, walk: str) -> None:
    assert error_of(text, walk) == message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": None}, "A: input missing"),
        ({"A": np.zeros((4, 1), np.float32)}, "A: shape [4, 1], expected [4]"),
        ({"A": np.zeros(4)}, "A: dtype float64, expected f32"),
        ({"I": np.int32([0, 1, 4, 3])}, "I: holds 4, outside its range [0, 3]"),
        ({"I": np.int32([0, -1, 2, 3])}, "I: holds -1, outside its range [0, 3]"),
        ({"D": np.zeros(4, np.float32)}, "D: no input of t"),
    ],
)
def test_inputs_that_do_not_fit(change: dict[str, Any], message: str) -> None:
    inputs = {name: array for name, array in {**INPUTS, **change}.items() if array is not None}
    assert error_of(FILL, "vector", inputs) == message


def test_the_inputs_stay_as_they_are() -> None:
    before = {name: array.copy() for name, array in INPUTS.items()}
    run_flat(SIGNATURE, parse_nests(FILL).nests, INPUTS)
    assert all(np.array_equal(before[name], INPUTS[name]) for name in before)
