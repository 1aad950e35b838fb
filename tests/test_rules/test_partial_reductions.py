"""reduction_factorization: what it offers, what it makes, and what it refuses, law by law."""

from __future__ import annotations

import numpy as np
import pytest

from leir.interpret import bits, interpret
from leir.ir import Program, equations
from rewrite.enumerate import Found, Refused, enumerate_steps
from tests.generators import random_inputs
from tests.test_rewrite.checked import applied, program, refused, text

ROWS = """
# A f32[3,12] input
# S f32[3] output
L^{3}_{a=0}L^{12}_{c=0}[S^{f32,g}_{a}=S^{f32,g}_{a}+A^{f32,g}_{a,c};];
"""
STEP = "reduction_factorization 0 loop=1 "


def space(source: Program | str) -> list[str]:
    """The arguments of every step, legal or not."""
    start = program(source) if isinstance(source, str) else source
    outcomes = enumerate_steps(start, strategies=["reduction_factorization"], refusals=True)
    return [" ".join(str(outcome.step).split()[1:]) for outcome in outcomes]


def same(before: Program, after: Program, exactly: bool) -> None:
    inputs = random_inputs(before, 7)
    one, two = (interpret(p, inputs, mode="native" if exactly else "f64") for p in (before, after))
    for name, array in one.items():
        if exactly:
            np.testing.assert_array_equal(bits(array), bits(two[name]))
        else:
            np.testing.assert_allclose(array, two[name], rtol=1e-12)


# ------------------------------------------------------------------------------------------------------------------------ space


def test_every_proper_divisor_and_two_cuts_of_every_reduction_loop() -> None:
    assert space(ROWS) == [
        *(f"0 loop=1 shape=axis factor={f}" for f in (2, 3, 4, 6)),
        "0 loop=1 shape=pair cut=1",
        "0 loop=1 shape=pair cut=6",
    ]
    assert space(ROWS.replace("12", "3")) == ["0 loop=1 shape=pair cut=1"]
    assert space(ROWS.replace("12", "1")) == []


def test_parts_are_at_most_1024() -> None:
    factors = [int(s.split("=")[-1]) for s in space(ROWS.replace("12", "4096")) if "axis" in s]
    assert factors == [2**k for k in range(1, 11)]


def test_spatial_loops_and_loops_of_plain_equations_are_no_reductions() -> None:
    copied = "# A f32[4,6] input\n# C f32[4] output\nL^{4}_{a=0}L^{6}_{c=0}[C^{f32,g}_{a}=A^{f32,g}_{a,c};];"
    assert space(copied) == []


def test_a_fused_reduction_loop_is_cut_at_its_digits() -> None:
    fused = "# A f32[4,3] input\n# S f32[] output\nL^{12}_{a=0}[S^{f32,g}=S^{f32,g}+A^{f32,g}_{a//3,a%3};];"
    assert space(fused) == [
        "0 loop=0 shape=axis factor=3",
        "0 loop=0 shape=axis factor=6",
        "0 loop=0 shape=pair cut=1",
        "0 loop=0 shape=pair cut=6",
    ]
    made = applied(fused, "reduction_factorization 0 loop=0 shape=axis factor=3")
    assert text(made) == (
        "L^{4}_{c=0}L^{3}_{a=0}[C^{f32,g}_{a}=C^{f32,g}_{a}+A^{f32,g}_{c,a};];L^{3}_{a=0}[S^{f32,g}=S^{f32,g}+C^{f32,g}_{a};];"
    )
    for step in space(fused):
        same(program(fused), applied(fused, f"reduction_factorization {step}").program, exactly=False)


# ----------------------------------------------------------------------------------------------------------------------- results


def test_a_pair_of_temporaries_as_in_the_paper() -> None:
    """Table 8, except that the pair is combined once per element of F, not once per iteration of d and f as well."""
    source = """
    # A f32[32,8,6,5] input
    # F f32[32,4] output
    B^{32}_{tx=0}L^{4}_{a=0}L^{2}_{c=0}L^{6}_{d=0}L^{5}_{f=0}[F^{f32,g}_{tx,a}=F^{f32,g}_{tx,a}+A^{f32,g}_{tx,a*2+c,d,f};];
    """
    made = applied(source, "reduction_factorization 0 loop=2 shape=pair cut=1")
    loops = "B^{32}_{tx=0}L^{4}_{a=0}L^{1}_{c=0}L^{6}_{d=0}L^{5}_{f=0}"
    assert text(made) == (
        f"{loops}[C^{{f32,g}}_{{tx,a}}=C^{{f32,g}}_{{tx,a}}+A^{{f32,g}}_{{tx,a*2+c,d,f}};];"
        f"{loops}[D^{{f32,g}}_{{tx,a}}=D^{{f32,g}}_{{tx,a}}+A^{{f32,g}}_{{tx,a*2+c+1,d,f}};];"
        "B^{32}_{tx=0}L^{4}_{a=0}[F^{f32,g}_{tx,a}=F^{f32,g}_{tx,a}+(C^{f32,g}_{tx,a}+D^{f32,g}_{tx,a});];"
    )
    same(program(source), made.program, exactly=False)


@pytest.mark.parametrize(
    ("value", "combined"),
    [
        ("S^{f32,g}_{a}-A^{f32,g}_{a,c}", "S^{f32,g}_{a}+C^{f32,g}_{a,c}"),
        ("S^{f32,g}_{a}*A^{f32,g}_{a,c}", "S^{f32,g}_{a}*C^{f32,g}_{a,c}"),
        ("max(A^{f32,g}_{a,c},S^{f32,g}_{a})", "max(S^{f32,g}_{a},C^{f32,g}_{a,c})"),
        ("min(S^{f32,g}_{a},A^{f32,g}_{a,c})", "min(S^{f32,g}_{a},C^{f32,g}_{a,c})"),
        ("S^{f32,g}_{a}+A^{f32,g}_{a,c}-c", "S^{f32,g}_{a}+C^{f32,g}_{a,c}"),
    ],
)
def test_every_operator_and_its_rounding(value: str, combined: str) -> None:
    source = ROWS.replace("S^{f32,g}_{a}+A^{f32,g}_{a,c}", value)
    exact = value.startswith("m")
    for arguments in ("shape=axis factor=4", "shape=pair cut=6"):
        made = applied(source, STEP + arguments)
        assert made.rounding == ("bitwise" if exact else "reassociates")
        same(program(source), made.program, exactly=exact)
    assert f"L^{{3}}_{{a=0}}L^{{4}}_{{c=0}}[S^{{f32,g}}_{{a}}={combined};];" in text(applied(source, f"{STEP}shape=axis factor=4"))
    integers = source.replace("f32", "i8")
    made = applied(integers, f"{STEP}shape=axis factor=3")
    assert made.rounding == "bitwise"
    same(program(integers), made.program, exactly=True)


def test_the_target_goes_on_where_it_stood() -> None:
    source = ROWS.replace("L^{3}_{a=0}L", "L^{2}_{a=0}[S^{f32,g}_{a}=5;];L^{3}_{a=0}L", 1)
    start = program(source)
    made = applied(start, "reduction_factorization 1 loop=1 shape=axis factor=3").program
    before, after = ([eq.init for nest in p.nests for eq in equations(nest)] for p in (start, made))
    assert after == [None, "all", before[1]]
    assert before[1] not in (None, "all")
    same(start, made, exactly=False)


def test_a_map_that_is_not_injective_gets_a_part_per_point() -> None:
    """A transposed convolution: several points of the spatial axes write one element, and each of their parts counts once."""
    source = """
    # A f32[4,6] input
    # C f32[3,6] input
    # D f32[6] output
    L^{4}_{a=0}L^{3}_{c=0}L^{6}_{d=0}[D^{f32,g}_{a+c}=D^{f32,g}_{a+c}+A^{f32,g}_{a,d}*C^{f32,g}_{c,d};];
    """
    made = applied(source, "reduction_factorization 0 loop=2 shape=axis factor=2")
    assert text(made).endswith("L^{4}_{a=0}L^{3}_{c=0}L^{2}_{d=0}[D^{f32,g}_{a+c}=D^{f32,g}_{a+c}+E^{f32,g}_{a,c,d};];")
    same(program(source), made.program, exactly=False)


def test_spatial_loops_keep_digits_kinds_and_places() -> None:
    source = """
    # A f32[12,8] input
    # S f32[12] output
    U^{8}_{d=0}L^{3}_{a=0}P^{4}_{c=0}[S^{f32,g}_{a*4+c}=max(S^{f32,g}_{a*4+c},A^{f32,g}_{a*4+c,d});];
    """
    made = applied(source, "reduction_factorization 0 loop=0 shape=axis factor=2")
    assert text(made) == (
        "L^{4}_{f=0}U^{2}_{d=0}L^{3}_{a=0}P^{4}_{c=0}[C^{f32,g}_{a*4+c,d}=max(C^{f32,g}_{a*4+c,d},A^{f32,g}_{a*4+c,f*2+d});];"
        "U^{2}_{d=0}L^{3}_{a=0}P^{4}_{c=0}[S^{f32,g}_{a*4+c}=max(S^{f32,g}_{a*4+c},C^{f32,g}_{a*4+c,d});];"
    )
    same(program(source), made.program, exactly=True)


def test_new_temporaries_avoid_every_name_of_the_program() -> None:
    source = """
    # A f32[3,12] input
    # C f32[3] output
    # E f32[3] output
    L^{3}_{a=0}L^{12}_{c=0}[C^{f32,g}_{a}=C^{f32,g}_{a}+A^{f32,g}_{a,c};];
    L^{3}_{a=0}[D^{f32,g}_{a}=C^{f32,g}_{a};];
    L^{3}_{a=0}[E^{f32,g}_{a}=D^{f32,g}_{a}*2;];
    """
    made = applied(source, f"{STEP}shape=pair cut=6").program
    targets = [eq.target.tensor.name for nest in made.nests for eq in equations(nest)]
    assert targets == ["G", "F", "C", "D", "E"]
    same(program(source), made, exactly=False)


def test_the_parts_of_a_sum_can_become_lanes() -> None:
    made = applied(ROWS, f"{STEP}shape=axis factor=4").program
    assert refused(ROWS, "loop_parallelization 0 loop=1").code == "carried-dependence"
    assert text(applied(made, "loop_vectorization 0 loop=2")).startswith("L^{3}_{a=0}L^{3}_{d=0}V^{4}_{c=0}[C^{f32,g}_{a,c}=")


# ---------------------------------------------------------------------------------------------------------------------- refusals


def test_a_recurrence_is_no_reduction() -> None:
    doubling = """
    # A f32[3,4] input
    # X f32[3] output
    L^{3}_{a=0}L^{4}_{c=0}[X^{f32,g}_{a}=if_then_else(a<1,0,X^{f32,g}_{a-1})*2+A^{f32,g}_{a,c};];
    """
    outcomes = list(enumerate_steps(program(doubling), strategies=["reduction_factorization"], refusals=True))
    assert [o.refusal.code for o in outcomes if isinstance(o, Refused)] == ["no-accumulation"] * 3
    twice = ROWS.replace("+A^{f32,g}_{a,c}", "+A^{f32,g}_{a,c}*S^{f32,g}_{a}")
    assert refused(twice, f"{STEP}shape=axis factor=2").code == "no-accumulation"


def test_a_reduction_in_company_is_refused() -> None:
    body = "S^{f32,g}_{a}=S^{f32,g}_{a}+A^{f32,g}_{a,c};"
    assert refused(ROWS.replace(body, body + "D^{f32,g}_{a,c}=1;"), f"{STEP}shape=pair cut=1").code == "several-items"


def test_a_bound_reduction_is_refused_for_what_it_is() -> None:
    source = ROWS.replace("L^{12}_{c=0}", "B^{12}_{tx=0}").replace("a,c", "a,tx")
    refusal = refused(source, f"{STEP}shape=axis factor=4")
    assert refusal.code == "reduction-bound"
    assert refusal.witness is not None


def test_every_outcome_is_a_step_or_a_reason() -> None:
    outcomes = list(enumerate_steps(program(ROWS), strategies=["reduction_factorization"]))
    assert len(outcomes) == 6
    for found in outcomes:
        assert isinstance(found, Found)
        assert [proof.condition for proof in found.proofs] == ["reduction", "parts", "init"]
