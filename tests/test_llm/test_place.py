"""Where a step works, in words."""

from __future__ import annotations

from llm.place import describe_place
from rewrite.step import step_from_text
from tests.test_rewrite.checked import program


def test_loops_by_their_names() -> None:
    start = program("# A f32[6,4] input\n# C f32[6,4] output\nL^{6}_{a=0}L^{4}_{c=0}[C^{f32,g}_{a,c}=A^{f32,g}_{a,c};];")
    places = {
        "loop_unrolling 0 loop=1": "loop c of expression 0",
        "loop_fusion 0 pair=0": "the loops a and c of expression 0",
        "loop_tiling 0 pair=0 factors=2,2": "the loops a and c of expression 0",
        "loop_reorder 0 order=1,0": "expression 0",
    }
    assert {step: describe_place(step_from_text(step), start) for step in places} == places
