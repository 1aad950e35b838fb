"""Dependences that must hold: recurrences, stencils, gathers, and cases that other compilers got wrong."""

from __future__ import annotations

import pytest

from leir.polyhedral import OverBudgetError
from rewrite.enumerate import Refused, enumerate_steps
from rules.legality import dependence, timeline
from tests.test_rewrite.checked import applied, program, refused, text

RUNNING = """
# A f32[12] input
# M f32[12] output
L^{3}_{h=0}L^{4}_{a=0}[M^{f32,g}_{h*4+a}=if_then_else(h*4+a<1,0,M^{f32,g}_{h*4+a-1})+A^{f32,g}_{h*4+a};];
"""
DOUBLING = """
# A f32[3,4] input
# X f32[3] output
L^{3}_{a=0}L^{4}_{c=0}[X^{f32,g}_{a}=if_then_else(a<1,0,X^{f32,g}_{a-1})*2+A^{f32,g}_{a,c};];
"""
STENCIL = """
# A f32[6] input
# X f32[5,6] output
L^{5}_{a=0}L^{6}_{c=0}[X^{f32,g}_{a,c}=if_then_else(1<=a&1<=c<5,X^{f32,g}_{a-1,c-1}+X^{f32,g}_{a-1,c+1},A^{f32,g}_{c});];
"""


# ------------------------------------------------------------------------------------------------------------------ recurrences


@pytest.mark.parametrize("source", [RUNNING, DOUBLING], ids=["running", "doubling"])
def test_an_order_dependent_recurrence_is_not_reordered(source: str) -> None:
    refusal = refused(source, "loop_reorder 0 order=1,0")
    assert refusal.code == "dependence-reversed"
    assert refusal.witness is not None
    assert refusal.witness.kind in ("flow", "anti", "output")


def test_both_orders_of_a_recurrence_are_programs_of_their_own() -> None:
    for source, outer, inner in ((RUNNING, "L^{3}_{h=0}", "L^{4}_{a=0}"), (DOUBLING, "L^{3}_{a=0}", "L^{4}_{c=0}")):
        other = source.replace(outer + inner, inner + outer)
        one, two = program(source), program(other)
        assert one.nests[0].body is not two.nests[0].body or one.nests[0].axes != two.nests[0].axes
        steps = [o for o in enumerate_steps(one, strategies=["loop_reorder"], refusals=True) if not isinstance(o, Refused)]
        assert [s.program for s in steps] == []


def test_a_recurrence_may_be_split_and_the_parts_stay_in_order() -> None:
    split = applied(DOUBLING, "loop_split 0 loop=1 factor=2").program
    assert text(split).startswith("L^{3}_{a=0}L^{2}_{d=0}L^{2}_{c=0}[")
    assert refused(split, "loop_reorder 0 order=0,2,1").code == "dependence-reversed"


def test_the_carried_loop_is_not_bound_and_the_free_one_is() -> None:
    rows = """
    # A f32[3,4] input
    # X f32[3,4] output
    L^{3}_{a=0}L^{4}_{c=0}[X^{f32,g}_{a,c}=if_then_else(c<1,0,X^{f32,g}_{a,c-1})+A^{f32,g}_{a,c};];
    """
    refusal = refused(rows, "loop_binding 0 loop=1 axis=tx")
    assert refusal.code == "carried-dependence"
    assert refusal.message == "iteration a=0,c=1 reads X[0,0], which iteration a=0,c=0 writes; the B loop tx would run both at once"
    applied(rows, "loop_binding 0 loop=0 axis=tx")
    applied(rows, "loop_reorder 0 order=1,0")


# --------------------------------------------------------------------------------------------------------------------- stencils


def test_a_time_stencil_is_parallel_in_space_under_its_serial_time_loop() -> None:
    bound = applied(STENCIL, "loop_binding 0 loop=1 axis=bx")
    assert bound.rounding == "bitwise"
    assert refused(STENCIL, "loop_binding 0 loop=0 axis=bx").code == "carried-dependence"
    assert refused(STENCIL, "loop_reorder 0 order=1,0").code == "dependence-reversed"


def test_time_inside_a_block_loop_needs_a_barrier_between_blocks() -> None:
    """loopy #221: a dependence that a loop inside the kernel carries across work groups. Each launch runs the whole time loop."""
    rows = """
    # A f32[2,6] input
    # X f32[2,5,6] output
    B^{2}_{by=0}L^{5}_{a=0}L^{6}_{c=0}
    [X^{f32,g}_{by,a,c}=if_then_else(1<=a&1<=c,X^{f32,g}_{by,a-1,c-1},A^{f32,g}_{by,c});];
    """
    refusal = refused(rows, "loop_binding 0 loop=2 axis=bx")
    assert refusal.code == "crosses-blocks"
    assert refusal.witness is not None
    assert [dict(i.point)["bx"] for i in (refusal.witness.first, refusal.witness.second)] == [0, 1]
    applied(rows, "loop_binding 0 loop=2 axis=tx")


# ----------------------------------------------------------------------------------------------------------- known miscompilations


def test_mlir_212032_a_consumer_that_overwrites_what_the_producer_still_reads() -> None:
    source = """
    # A f32[8] input
    # C f32[8] output
    # D f32[8] output
    L^{8}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a};];
    L^{8}_{a=0}[C^{f32,g}_{a}=if_then_else(a<1,0,D^{f32,g}_{a-1});];
    L^{8}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a}*2;];
    """
    refusal = refused(source, "operator_fusion 1 depth=1")
    assert refusal.code == "dependence-reversed"
    assert refusal.message.startswith("iteration a=0 writes D[0], which iteration a=1 reads")
    assert refusal.witness is not None
    assert refusal.witness.kind == "anti"
    applied(source.replace("if_then_else(a<1,0,D^{f32,g}_{a-1})", "D^{f32,g}_{a}"), "operator_fusion 1 depth=1")


def test_two_accumulations_into_one_tensor_keep_their_order() -> None:
    source = """
    # A f32[4,3] input
    # C f32[4] output
    L^{4}_{a=0}L^{3}_{c=0}[C^{f32,g}_{a}=C^{f32,g}_{a}+A^{f32,g}_{a,c};C^{f32,g}_{a}=C^{f32,g}_{a}*A^{f32,g}_{a,c};];
    """
    applied(source, "loop_reorder 0 order=1,0")
    reversed_ = """
    # A f32[4,3] input
    # C f32[4] output
    L^{3}_{c=0}L^{2}_{d=0}L^{4}_{a=0}[C^{f32,g}_{a}=C^{f32,g}_{a}+A^{f32,g}_{a,c};C^{f32,g}_{a}=C^{f32,g}_{a}*A^{f32,g}_{a,d};];
    """
    assert refused(reversed_, "loop_reorder 0 order=1,0,2").code == "dependence-reversed"


# ---------------------------------------------------------------------------------------------------------------------- inexact


def test_a_gather_covers_the_whole_dimension_and_the_refusal_says_so() -> None:
    source = """
    # I i64[4] input range[0,3]
    # A f32[4] input
    # C f32[4] output
    L^{4}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a};];
    L^{4}_{a=0}[C^{f32,g}_{a}=D^{f32,g}_{I^{i64,g}_{a}};];
    """
    refusal = refused(source, "operator_fusion 0 depth=1")
    assert refusal.code == "dependence-inexact"
    assert "a subscript or a guard reads data" in refusal.message
    assert refusal.witness is not None


def test_over_budget_is_refused_and_says_that_nothing_was_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    def exceeded(question: object, operations: int = 0) -> object:
        raise OverBudgetError("too much")

    source = RUNNING.replace("f32[12]", "f32[15]").replace("L^{3}", "L^{5}").replace("*4", "*3").replace("L^{4}", "L^{3}")
    start = program(source)
    monkeypatch.setattr(dependence, "within_budget", exceeded)
    monkeypatch.setattr(timeline, "within_budget", exceeded)
    refusal = refused(start, "loop_reorder 0 order=1,0")
    assert refusal.code == "over-budget"
    assert "M" in refusal.message
