"""The reasoning text says what is so: the program, the place, the change, the proof."""

from __future__ import annotations

from leir.ir import Known, Signature
from leir.lift import flatten
from leir.parser import parse
from llm.describe import changed_expressions, describe_nest, describe_program
from llm.place import describe_place
from llm.reasoning import Thought, reasoning
from rewrite.apply import Applied, apply
from rewrite.step import step_from_text
from rules.catalogue import find

CHAIN = parse(
    "B^{8}_{tx=0}L^{4}_{a=0}[D^{f32,g}_{tx}=D^{f32,g}_{tx}+A^{f32,g}_{tx,a};];"
    "L^{8}_{a=0}[D^{f32,g}_{a}=D^{f32,g}_{a}+1.0;L^{2}_{c=0}[E^{f32,g}_{a,c}=D^{f32,g}_{a}*2+D^{f32,g}_{a}*c;];];",
    Signature("chain", (Known("A", "f32", (8, 4), "input"), Known("E", "f32", (8, 2), "output"))),
)


def test_a_program_in_words() -> None:
    assert describe_program(CHAIN).splitlines() == [
        "The known tensors are A (input, f32[8,4]), E (output, f32[8,2]).",
        "Expression 0: loops bound tx<8, serial a<4; D accumulates a sum over a from A.",
        "Expression 1: loops serial a<8; D accumulates a sum, continuing from what is there; then (c<2: E is computed from D).",
    ]


def test_a_nest_without_loops() -> None:
    program = parse("[E^{f32,g}=1.0;];", Signature("one", (Known("E", "f32", (), "output"),)))
    assert describe_nest(flatten(program.nests[0])) == "no loop; E is computed"


def test_reasoning_quotes_the_change_and_the_proof() -> None:
    step = step_from_text("loop_split 0 loop=1 factor=2")
    outcome = apply(CHAIN, step)
    assert isinstance(outcome, Applied)
    strategy = find("loop_split")
    assert strategy is not None
    text = reasoning(
        Thought(CHAIN, outcome.program, strategy, describe_place(step, CHAIN), step.args, outcome.rounding, outcome.proofs)
    )
    gone, come = changed_expressions(CHAIN, outcome.program)
    assert len(gone) == len(come) == 1
    assert gone[0] in text
    assert come[0] in text
    assert "loop a of expression 0" in text
    assert "with loop = 1, factor = 2." in text
    assert all(proof.condition in text for proof in outcome.proofs)
    assert text.endswith("to the last bit.")


def test_a_scalar_place_quotes_the_subexpression() -> None:
    step = step_from_text("factorization 1.1.0: rule=factor form=0")
    assert describe_place(step, CHAIN) == "the right-hand side of the equation for E^{f32,g} in item 1.0 of expression 1"


def test_what_stayed_is_not_part_of_the_change() -> None:
    outcome = apply(CHAIN, step_from_text("loop_split 1 loop=0 factor=4"))
    assert isinstance(outcome, Applied)
    gone, _ = changed_expressions(CHAIN, outcome.program)
    assert len(gone) == 1
    assert gone[0].startswith("L^{8}")
