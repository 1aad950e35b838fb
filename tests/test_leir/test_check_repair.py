"""Import of foreign text: casts put in, bound reductions kept or made serial, places in the text as it came."""

from __future__ import annotations

import pytest

from leir.elaborate import elaborate
from leir.ir import Known, Signature, equations
from leir.parser import parse_nests
from leir.printer import print_program
from leir.repair import import_text, insert_casts, original_path


def imported(body: str, *tensors: Known, demote: bool = False) -> tuple[str, list[str]]:
    """The text after import, and the codes reported."""
    program, found = import_text(body, Signature("test", tensors), demote=demote)
    return print_program(program), [d.code for d in found]


CASES = [
    ("bool times float", "C^{f32,g}=A^{f32,g}*I^{bool,g};", "C^{f32,g}=A^{f32,g}*cast_f32(I^{bool,g});"),
    ("wider operand wins", "C^{f64,g}=A^{f32,g}*D^{f64,g};", "C^{f64,g}=cast_f64(A^{f32,g})*D^{f64,g};"),
    ("to the target", "C^{f32,g}=D^{f64,g};", "C^{f32,g}=cast_f32(D^{f64,g});"),
    ("accumulator stays", "C^{f32,g}=C^{f32,g}+D^{f64,g}*2;", "C^{f32,g}=C^{f32,g}+cast_f32(D^{f64,g}*2);"),
    ("maximum stays", "C^{f32,g}=max(C^{f32,g},D^{f64,g});", "C^{f32,g}=max(C^{f32,g},cast_f32(D^{f64,g}));"),
    ("chain stays", "C^{f32,g}=C^{f32,g}+A^{f32,g}-D^{f64,g};", "C^{f32,g}=C^{f32,g}+A^{f32,g}-cast_f32(D^{f64,g});"),
    ("quotient of integers", "C^{f32,g}=J^{i64,g}/2;", "C^{f32,g}=cast_f32(J^{i64,g})/2;"),
    ("integer and a point", "C^{f64,g}=J^{i64,g}*0.5;", "C^{f64,g}=cast_f64(J^{i64,g})*0.5;"),
    ("exp of an integer", "C^{f32,g}=exp(J^{i64,g});", "C^{f32,g}=exp(cast_f32(J^{i64,g}));"),
    ("sum of bools", "C^{i32,g}=I^{bool,g}+I^{bool,g};", "C^{i32,g}=cast_i32(I^{bool,g})+cast_i32(I^{bool,g});"),
    ("condition", "C^{f32,g}=if_then_else(J^{i64,g},1,0);", "C^{f32,g}=if_then_else(cast_bool(J^{i64,g}),1,0);"),
    (
        "branches",
        "C^{f64,g}=if_then_else(I^{bool,g},A^{f32,g},D^{f64,g});",
        "C^{f64,g}=if_then_else(I^{bool,g},cast_f64(A^{f32,g}),D^{f64,g});",
    ),
    (
        "comparison",
        "C^{f32,g}=if_then_else(A^{f32,g}<J^{i64,g},1,0);",
        "C^{f32,g}=if_then_else(A^{f32,g}<cast_f32(J^{i64,g}),1,0);",
    ),
    ("halves", "C^{f32,g}=H^{f16,g}+M^{bf16,g};", "C^{f32,g}=cast_f32(H^{f16,g})+cast_f32(M^{bf16,g});"),
    ("index is free", "L^{4}_{a=0}[C^{f32,g}_{a}=a*2+1;];", "L^{4}_{a=0}[C^{f32,g}_{a}=a*2+1;];"),
    ("a cast that is there", "C^{f32,g}=cast_f32(D^{f64,g});", "C^{f32,g}=cast_f32(D^{f64,g});"),
]


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_missing_casts(text: str, expected: str) -> None:
    if not text.startswith("L"):
        text, expected = f"[{text}];", f"[{expected}];"
    parsed = parse_nests(text)
    for nest in parsed.nests:
        for equation in equations(nest):
            repaired, casts = insert_casts(equation)
            elaborate(repaired)  # every operation has a dtype now
            assert insert_casts(repaired) == (repaired, {}), "twice is as good as once"
            assert (repaired is equation) == (not casts)
    program, _ = import_text(text, Signature("test", ()))
    assert print_program(program) == expected


def test_a_cast_is_reported_at_the_operand() -> None:
    a, mask, c = Known("A", "f32", (4,), "input"), Known("M", "bool", (4,), "input"), Known("C", "f32", (4,), "output")
    text = "L^{4}_{a=0}[C^{f32,g}_{a}=1+A^{f32,g}_{a}*M^{bool,g}_{a};];"
    _, found = import_text(text, Signature("test", (a, mask, c)))
    assert [(d.code, d.severity, d.place.column) for d in found] == [("cast-inserted", "warning", text.index("M^") + 1)]


def test_places_after_a_cast_are_those_of_the_text_as_it_came() -> None:
    a, mask, c = Known("A", "f32", (4,), "input"), Known("M", "bool", (4,), "input"), Known("C", "f32", (4,), "output")
    text = "L^{4}_{a=0}[C^{f32,g}_{a}=M^{bool,g}_{a+1}*A^{f32,g}_{a+1};];"
    _, found = import_text(text, Signature("test", (a, mask, c)))
    columns = {(d.code, d.place.column) for d in found}
    assert columns == {
        ("cast-inserted", text.index("M^") + 1),
        ("out-of-bounds", text.index("M^") + 1),
        ("out-of-bounds", text.index("A^") + 1),
    }


def test_paths_before_casts() -> None:
    casts = {(): "f32", (0,): "f64"}
    assert original_path(casts, ()) == ()
    assert original_path(casts, (0,)) == ()
    assert original_path(casts, (0, 1)) == (1,)
    assert original_path(casts, (0, 0, 0, 2)) == (0, 2)


A = Known("A", "f32", (4, 2), "input")
C = Known("C", "f32", (2,), "output")
REDUCTION = "B^{4}_{tx=0}L^{2}_{a=0}[C^{f32,g}_{a}=C^{f32,g}_{a}+A^{f32,g}_{tx,a};];"


def test_a_bound_reduction_is_kept_and_reported() -> None:
    assert imported(REDUCTION, A, C) == (REDUCTION, ["reduction-bound"])


def test_a_bound_reduction_is_made_serial_on_request() -> None:
    serial = "L^{4}_{c=0}L^{2}_{a=0}[C^{f32,g}_{a}=C^{f32,g}_{a}+A^{f32,g}_{c,a};];"
    assert imported(REDUCTION, A, C, demote=True) == (serial, ["loop-demoted"])


def test_only_the_loop_that_carries_is_made_serial() -> None:
    text = "B^{2}_{bx=0}[B^{4}_{tx=0}[C^{f32,g}_{bx}=C^{f32,g}_{bx}+A^{f32,g}_{tx,bx};];];"
    serial = "B^{2}_{bx=0}[L^{4}_{a=0}[C^{f32,g}_{bx}=C^{f32,g}_{bx}+A^{f32,g}_{a,bx};];];"
    assert imported(text, A, C, demote=True) == (serial, ["loop-demoted"])


def test_a_legal_text_comes_back_as_it_is() -> None:
    text = "B^{2}_{bx=0}L^{4}_{a=0}[C^{f32,g}_{bx}=C^{f32,g}_{bx}+A^{f32,g}_{a,bx};];"
    assert imported(text, A, C, demote=True) == (text, [])
