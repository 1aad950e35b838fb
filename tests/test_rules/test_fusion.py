"""operator_fusion: which loops two expressions can share, and what becomes of the rest."""

from __future__ import annotations

from rewrite.enumerate import enumerate_steps
from tests.test_rewrite.checked import applied, program, refused, text

SOFTMAX = """
# A f32[4,6] input
# E f32[4,6] output
L^{4}_{a=0}L^{6}_{c=0}[M^{f32,g}_{a}=max(M^{f32,g}_{a},A^{f32,g}_{a,c});];
L^{4}_{a=0}L^{6}_{c=0}[S^{f32,g}_{a}=S^{f32,g}_{a}+exp(A^{f32,g}_{a,c}-M^{f32,g}_{a});];
L^{4}_{a=0}L^{6}_{c=0}[E^{f32,g}_{a,c}=exp(A^{f32,g}_{a,c}-M^{f32,g}_{a})/S^{f32,g}_{a};];
"""


def test_depth_goes_from_one_loop_to_all_that_agree() -> None:
    outcomes = enumerate_steps(program(SOFTMAX), strategies=["operator_fusion"], refusals=True)
    assert [str(o.step) for o in outcomes] == [
        "operator_fusion 0 depth=1",
        "operator_fusion 0 depth=2",
        "operator_fusion 1 depth=1",
        "operator_fusion 1 depth=2",
    ]


def test_rows_fuse_and_columns_do_not() -> None:
    made = applied(SOFTMAX, "operator_fusion 0 depth=1")
    assert made.rounding == "bitwise"
    assert text(made).startswith("L^{4}_{a=0}[L^{6}_{c=0}[M^{f32,g}_{a}=max(")
    refusal = refused(SOFTMAX, "operator_fusion 0 depth=2")
    assert refusal.code == "dependence-reversed"
    assert refusal.message == (
        "iteration a=0,c=0 reads M[0], which iteration a=0,c=1 writes; a shared loop c would run them the other way round"
    )
    assert refusal.witness is not None
    assert (refusal.witness.first.path, refusal.witness.second.path) == ((0, 0), (1, 0))
    assert refusal.witness.kind == "flow"


def test_all_three_expressions_of_softmax_become_one() -> None:
    once = applied(SOFTMAX, "operator_fusion 0 depth=1").program
    twice = applied(once, "operator_fusion 0 depth=1").program
    assert len(twice.nests) == 1
    assert [len(nest.body) for nest in twice.nests] == [3]


def test_an_axis_that_runs_on_inside_the_bracket_is_cut() -> None:
    source = """
    # A f32[12] input
    # C f32[12] output
    L^{3}_{a=0}L^{4}_{c=0}[D^{f32,g}_{a*4+c}=A^{f32,g}_{a*4+c};];
    L^{3}_{a=0}L^{4}_{d=0}[C^{f32,g}_{a*4+d}=D^{f32,g}_{a*4+d};];
    """
    made = applied(source, "operator_fusion 0 depth=1")
    expected = "L^{3}_{a=0}[L^{4}_{c=0}[D^{f32,g}_{a*4+c}=A^{f32,g}_{a*4+c};];L^{4}_{d=0}[C^{f32,g}_{a*4+d}=D^{f32,g}_{a*4+d};];];"
    assert text(made) == expected
    assert made.program.nests[0].axes == (3,)


def test_indices_of_the_second_follow_the_first_and_avoid_its_names() -> None:
    source = """
    # A f32[4,6] input
    # C f32[6,4] output
    L^{4}_{a=0}L^{6}_{c=0}[D^{f32,g}_{a,c}=A^{f32,g}_{a,c};];
    L^{4}_{c=0}L^{6}_{a=0}[C^{f32,g}_{a,c}=D^{f32,g}_{c,a};];
    """
    one = text(applied(source, "operator_fusion 0 depth=1"))
    assert one == "L^{4}_{a=0}[L^{6}_{c=0}[D^{f32,g}_{a,c}=A^{f32,g}_{a,c};];L^{6}_{c=0}[C^{f32,g}_{c,a}=D^{f32,g}_{a,c};];];"
    two = text(applied(source, "operator_fusion 0 depth=2"))
    assert two == "L^{4}_{a=0}L^{6}_{c=0}[D^{f32,g}_{a,c}=A^{f32,g}_{a,c};C^{f32,g}_{c,a}=D^{f32,g}_{a,c};];"


def test_loops_of_another_kind_extent_or_gpu_index_are_not_shared() -> None:
    source = """
    # A f32[4,6] input
    # C f32[4,6] output
    L^{4}_{a=0}L^{6}_{c=0}[D^{f32,g}_{a,c}=A^{f32,g}_{a,c};];
    L^{4}_{a=0}L^{6}_{c=0}[C^{f32,g}_{a,c}=D^{f32,g}_{a,c};];
    """

    def steps(changed: str) -> int:
        return len(list(enumerate_steps(program(changed), strategies=["operator_fusion"], refusals=True)))

    assert steps(source) == 2
    assert steps(source.replace("L^{4}_{a=0}", "P^{4}_{a=0}", 1)) == 0
    bound = source.replace("L^{4}_{a=0}", "B^{4}_{tx=0}").replace("_{a,c}", "_{tx,c}")
    assert steps(bound) == 2
    assert steps(bound.replace("B^{4}_{tx=0}", "B^{4}_{ty=0}", 1).replace("_{tx,c}", "_{ty,c}", 2)) == 0


def test_a_shared_thread_loop_carries_nothing() -> None:
    source = """
    # A f32[4] input
    # C f32[4] output
    B^{4}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx};];
    B^{4}_{tx=0}[C^{f32,g}_{tx}=if_then_else(tx<1,0,D^{f32,g}_{tx-1});];
    """
    refusal = refused(source, "operator_fusion 0 depth=1")
    assert refusal.code == "carried-dependence"
    assert refusal.message == "iteration tx=1 reads D[0], which iteration tx=0 writes; a shared B loop tx would run both at once"
    applied(source.replace("B^{4}_{tx=0}", "L^{4}_{a=0}").replace("tx", "a"), "operator_fusion 0 depth=1")


def test_two_kernels_with_different_blocks_do_not_become_one() -> None:
    source = """
    # A f32[2,4] input
    # C f32[2,4] output
    L^{2}_{a=0}B^{4}_{bx=0}[D^{f32,g}_{a,bx}=A^{f32,g}_{a,bx};];
    L^{2}_{a=0}B^{4}_{bx=0}[C^{f32,g}_{a,bx}=D^{f32,g}_{a,3-bx};];
    """
    refusal = refused(source, "operator_fusion 0 depth=1")
    assert refusal.code == "crosses-blocks"
    assert refusal.witness is not None
    applied(source.replace("3-bx", "bx"), "operator_fusion 0 depth=1")


def test_initialisation_stays_with_the_first_writer() -> None:
    source = """
    # A f32[4,6] input
    # C f32[4] output
    L^{4}_{a=0}L^{6}_{c=0}[C^{f32,g}_{a}=C^{f32,g}_{a}+A^{f32,g}_{a,c};];
    L^{4}_{a=0}L^{6}_{d=0}[C^{f32,g}_{a}=C^{f32,g}_{a}+2*A^{f32,g}_{a,d};];
    """
    made = applied(source, "operator_fusion 0 depth=1")
    inner = [item.body[0].init for item in made.program.nests[0].body]  # type: ignore[union-attr]
    assert inner == ["all", None]
    assert refused(source, "operator_fusion 0 depth=2").code == "dependence-reversed"
