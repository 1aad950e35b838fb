"""The structured difference of two programs."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from leir.diff import (
    Added,
    EquationChanged,
    LoopsChanged,
    Moved,
    NameChanged,
    Removed,
    TensorChanged,
    TensorsReordered,
    diff,
    render,
    to_json,
)
from leir.files import from_json
from leir.ir import Known, Program, Signature
from leir.parser import parse

DATA = Path(__file__).parents[1] / "data"
TENSORS = (Known("A", "f32", (8, 4), "input"), Known("D", "f32", (8, 4), "output"))

EXP = "L^{8}_{a=0}L^{4}_{c=0}[F^{f32,g}_{a,c}=exp(A^{f32,g}_{a,c});];"
SUM = "L^{8}_{a=0}L^{4}_{c=0}[H^{f32,g}_{a}=H^{f32,g}_{a}+F^{f32,g}_{a,c};];"
DIV = "L^{8}_{a=0}L^{4}_{c=0}[D^{f32,g}_{a,c}=F^{f32,g}_{a,c}/H^{f32,g}_{a};];"


def program(*expressions: str, name: str = "p", tensors: tuple[Known, ...] = TENSORS) -> Program:
    return parse("".join(expressions), Signature(name, tensors))


def test_equal_programs_do_not_differ() -> None:
    assert diff(program(EXP, SUM, DIV), program(EXP, SUM, DIV)) == []
    assert render([]) == ""


def test_an_expression_added_removed_or_moved() -> None:
    whole = program(EXP, SUM, DIV)
    assert diff(whole, program(EXP, DIV)) == [Removed((1,), SUM)]
    assert diff(program(EXP, DIV), whole) == [Added((1,), SUM)]
    assert diff(program(EXP, SUM), program(SUM, EXP)) == [Moved((0,), (1,), EXP)]


def test_loops_and_equations_change_apart() -> None:
    unrolled = SUM.replace("L^{4}", "U^{4}")
    assert diff(program(EXP, SUM), program(EXP, unrolled)) == [
        LoopsChanged((1,), (1,), "L^{8}_{a=0}L^{4}_{c=0}", "L^{8}_{a=0}U^{4}_{c=0}")
    ]
    product = SUM.replace("+", "*")
    assert diff(program(EXP, SUM), program(EXP, product)) == [
        EquationChanged(
            (1, 0), (1, 0), "H^{f32,g}_{a}=H^{f32,g}_{a}+F^{f32,g}_{a,c}", "H^{f32,g}_{a}=H^{f32,g}_{a}*F^{f32,g}_{a,c}"
        )
    ]


def test_items_of_nested_expressions_have_paths() -> None:
    def nested(constant: str) -> str:
        return f"L^{{8}}_{{a=0}}[X^{{f32,g}}_{{a}}=0;L^{{4}}_{{c=0}}[X^{{f32,g}}_{{a}}=c;X^{{f32,g}}_{{a}}={constant};];];"

    assert diff(program(nested("1")), program(EXP, nested("2"))) == [
        Added((0,), EXP),
        EquationChanged((0, 1, 1), (1, 1, 1), "X^{f32,g}_{a}=1", "X^{f32,g}_{a}=2"),
    ]


def test_fusion_is_shown_as_what_it_did() -> None:
    fused = EXP.removesuffix("];") + "H^{f32,g}_{a}=H^{f32,g}_{a}+F^{f32,g}_{a,c};];"
    assert diff(program(EXP, SUM, DIV), program(fused, DIV)) == [
        Removed((0,), EXP),
        Added((0, 0), "F^{f32,g}_{a,c}=exp(A^{f32,g}_{a,c});"),
    ]


def test_the_signature() -> None:
    more = (Known("D", "f16", (8, 4), "output"), Known("I", "i64", (4,), "input", (0, 7)))
    assert diff(program(EXP), program(EXP, name="q", tensors=more)) == [
        NameChanged("p", "q"),
        TensorChanged("A", "A f32[8,4] input", None),
        TensorChanged("D", "D f32[8,4] output", "D f16[8,4] output"),
        TensorChanged("I", None, "I i64[4] input range[0,7]"),
    ]
    assert diff(program(EXP), program(EXP, tensors=TENSORS[::-1])) == [TensorsReordered(("A", "D"), ("D", "A"))]


def test_rendering() -> None:
    changes = diff(program(EXP, SUM, DIV), program(SUM.replace("+", "*"), EXP, DIV.replace("L^{4}", "V^{4}"), name="q"))
    assert render(changes) == (
        "name\n"
        "- p\n"
        "+ q\n"
        "expression 0 added\n"
        f"+ {SUM.replace('+', '*')}\n"
        "expression 1 removed\n"
        f"- {SUM}\n"
        "expression 2, loops\n"
        "- L^{8}_{a=0}L^{4}_{c=0}\n"
        "+ L^{8}_{a=0}V^{4}_{c=0}\n"
    )
    assert render(diff(program(EXP, SUM), program(SUM, EXP))) == f"expression 0 moved to 1\n  {EXP}\n"
    assert render(diff(program(EXP), program(EXP, tensors=TENSORS[:1]))) == "tensor D\n- D f32[8,4] output\n"


def test_json() -> None:
    changes = diff(program(EXP, SUM), program(SUM, EXP, name="q"))
    assert json.loads(json.dumps(to_json(changes))) == [
        {"change": "NameChanged", "old": "p", "new": "q"},
        {"change": "Moved", "old_path": [0], "new_path": [1], "text": EXP},
    ]


EXPRESSIONS = (EXP, SUM, DIV, SUM.replace("+", "*"), "[D^{f32,g}_{0,0}=1;];", "[[D^{f32,g}_{0,0}=1;];D^{f32,g}_{1,0}=2;];")
programs = st.builds(lambda parts: program(*parts), st.lists(st.sampled_from(EXPRESSIONS), max_size=6))


@settings(max_examples=200)
@given(programs, programs)
def test_the_difference_is_empty_exactly_when_equal_and_accounts_for_every_expression(a: Program, b: Program) -> None:
    changes = diff(a, b)
    assert (changes == []) == (a == b)
    added = sum(isinstance(change, Added) and len(change.path) == 1 for change in changes)
    removed = sum(isinstance(change, Removed) and len(change.path) == 1 for change in changes)
    assert len(a.nests) - removed == len(b.nests) - added


def test_reference_programs_differ_from_each_other_and_not_from_themselves() -> None:
    programs = []
    for line in (DATA / "reference_leir_sample.jsonl").read_text().splitlines():
        entry = json.loads(line)
        programs.append(from_json({"leir_version": 1, **{key: entry[key] for key in ("name", "leir", "tensors")}}))
    for a, b in pairwise(programs):
        assert diff(a, a) == []
        assert diff(a, b)
        assert render(diff(a, b)).endswith("\n")
