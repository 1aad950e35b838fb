"""operator_fission and expression_reorder: dependences, memory that ends with a launch, loop kinds."""

from __future__ import annotations

from rewrite.enumerate import Found, enumerate_steps
from tests.test_rewrite.checked import applied, program, refused, text

REUSED = """
    # A f32[4,3] input
    # E f32[4,3] output
    L^{4}_{a=0}[
    L^{3}_{c=0}[D^{f32,g}_{c}=exp(A^{f32,g}_{a,c});];
    L^{3}_{c=0}[E^{f32,g}_{a,c}=D^{f32,g}_{2-c};];];
"""

KERNEL = """
    # A f32[8,16] input
    # E f32[8,16] output
    B^{8}_{bx=0}B^{16}_{tx=0}[
    D^{f32,SCOPE}_{bx,tx}=exp(A^{f32,g}_{bx,tx});
    E^{f32,g}_{bx,tx}=D^{f32,SCOPE}_{bx,tx}*2.0;];
"""


def test_a_buffer_that_every_iteration_fills_again_holds_the_parts_together() -> None:
    refusal = refused(REUSED, "operator_fission 0 cut=1")
    assert refusal.code == "dependence-reversed"
    assert refusal.message == (
        "iteration a=1,c=0 writes D[0], which iteration a=0,c=2 reads; the first part would run in full before the second"
    )
    assert refusal.witness is not None
    assert (refusal.witness.first.path, refusal.witness.second.path) == ((1, 0), (0, 0))


def test_a_local_temporary_across_the_cut_becomes_global() -> None:
    for scope in ("l", "s"):
        made = applied(KERNEL.replace("SCOPE", scope), "operator_fission 0 cut=1", "cuda")
        assert text(made) == (
            "B^{8}_{bx=0}B^{16}_{tx=0}[D^{f32,g}_{bx,tx}=exp(A^{f32,g}_{bx,tx});];"
            "B^{8}_{bx=0}B^{16}_{tx=0}[E^{f32,g}_{bx,tx}=D^{f32,g}_{bx,tx}*2.0;];"
        )
        assert "scopes" in [p.condition for p in made.proofs]


def test_a_local_temporary_that_stays_on_one_side_stays_local() -> None:
    source = """
        # A f32[8] input
        # E f32[8] output
        # F f32[8] output
        B^{8}_{tx=0}[D^{f32,l}=exp(A^{f32,g}_{tx});E^{f32,g}_{tx}=D^{f32,l};F^{f32,g}_{tx}=E^{f32,g}_{tx};];
    """
    assert "D^{f32,l}=" in text(applied(source, "operator_fission 0 cut=2", "cuda"))
    assert refused(source, "operator_fission 0 cut=1", "cuda").code == "dependence-reversed"


def test_a_temporary_that_is_shared_elsewhere_cannot_become_global_here() -> None:
    source = KERNEL.replace("SCOPE", "l").replace("# E", "# F f32[8,16] output\n    # E")
    twice = source + KERNEL.replace("SCOPE", "l").replace("E^", "F^").split("output")[-1]
    assert refused(twice, "operator_fission 0 cut=1", "cuda").code == "tensor-scopes"


def test_kinds_and_nested_items_are_kept() -> None:
    source = """
        # A f32[4,8] input
        # E f32[4,8] output
        P^{4}_{a=0}[
        V^{8}_{c=0}[D^{f32,g}_{a,c}=exp(A^{f32,g}_{a,c});];
        F^{f32,g}_{a}=1.0;
        U^{8}_{c=0}[E^{f32,g}_{a,c}=D^{f32,g}_{a,c}+F^{f32,g}_{a};];];
    """
    steps = [f for f in enumerate_steps(program(source), "llvm", ["operator_fission"]) if isinstance(f, Found)]
    assert [str(f.step) for f in steps] == ["operator_fission 0 cut=1", "operator_fission 0 cut=2"]
    first, second = text(steps[1].program).split(";];];")[0], text(steps[1].program)
    assert first.startswith("P^{4}_{a=0}[V^{8}_{c=0}[")
    assert "P^{4}_{a=0}[U^{8}_{c=0}[E" in second


def test_fission_of_a_fusion_gives_the_two_expressions_back() -> None:
    source = """
        # A f32[4,8] input
        # E f32[4,8] output
        L^{4}_{a=0}L^{8}_{c=0}[D^{f32,g}_{a,c}=exp(A^{f32,g}_{a,c});];
        L^{4}_{a=0}L^{8}_{c=0}[E^{f32,g}_{a,c}=D^{f32,g}_{a,c}*2.0;];
    """
    fused = applied(source, "operator_fusion 0 depth=2").program
    assert applied(fused, "operator_fission 0 cut=1").program == program(source)


def test_accumulations_of_two_equations_into_one_tensor_do_not_swap() -> None:
    source = """
        # A f32[4] input
        # E f32[4] output
        L^{4}_{a=0}[E^{f32,g}_{a}=E^{f32,g}_{a}+A^{f32,g}_{a};];
        L^{4}_{a=0}[E^{f32,g}_{a}=E^{f32,g}_{a}+1.0;];
    """
    refusal = refused(source, "expression_reorder 0")
    assert refusal.code == "dependence-reversed"
    assert refusal.witness is not None
    assert refusal.witness.kind == "accumulation"


def test_what_reads_and_what_overwrites_do_not_swap() -> None:
    source = """
        # A f32[4] input
        # C i64[4] input range[0,3]
        # E f32[4] output
        # F f32[4] output
        L^{4}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a};];
        L^{4}_{a=0}[E^{f32,g}_{a}=D^{f32,g}_{a};];
        L^{2}_{a=0}[D^{f32,g}_{a+HERE}=2.0;];
        L^{4}_{a=0}[F^{f32,g}_{a}=D^{f32,g}_{C^{i64,g}_{a}};];
    """
    met = source.replace("HERE", "1")
    assert refused(met, "expression_reorder 1").message.startswith("iteration a=0 writes D[1], which iteration a=1 reads;")
    assert refused(met, "expression_reorder 2").code == "dependence-inexact"
    apart = met.replace("E f32[4]", "E f32[1]").replace("L^{4}_{a=0}[E^{f32,g}_{a}=D", "L^{1}_{a=0}[E^{f32,g}_{a}=D")
    made = applied(apart, "expression_reorder 1")
    assert applied(made.program, "expression_reorder 1").program == made.before
