"""factorization, instance by instance: what it finds, in which order it writes it, and what it leaves alone."""

from __future__ import annotations

from time import process_time

import pytest

from leir.ir import Equation
from leir.parser import parse_nests
from leir.printer import print_equation
from rules.mathematics import put_back, scalar_sites
from rules.mathematics.factorization import gathered, parameters, propose
from rules.mathematics.identity import MAX_DEGREE, MAX_NODES
from rules.strategy import Proposal, Refusal, ScalarUnit
from tests.test_rules.equations import equation, factorizations, short


def test_the_papers_example() -> None:
    """Table 10: hard sigmoid."""
    text = "C^{f64,g}_{tx,a}=max(0,min(1,(A^{f64,g}_{tx,a}+3)/6))"
    (nest,) = parse_nests(f"B^{{166}}_{{tx=0}}L^{{13601}}_{{a=0}}[{text};];").nests
    source = nest.body[0]
    assert isinstance(source, Equation)
    ((path, unit),) = scalar_sites(source)
    ((*arguments,),) = parameters(unit)
    proposal = propose(unit, tuple(arguments))
    assert isinstance(proposal, Proposal)
    result = put_back(source, path, proposal.result)
    assert isinstance(result, Equation)
    assert print_equation(result, ["tx", "a"]) == "C^{f64,g}_{tx,a}=max(0,min(1,A^{f64,g}_{tx,a}/6+1/2))"
    assert proposal.rounding == "real"


def test_the_designs_example() -> None:
    assert factorizations("A*C+D*C") == ["C*(A+D)"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A*C+D*C+E", ["C*(A+D)+E"]),
        ("E-A*C-D*C", ["E-C*(A+D)"]),
        ("-A*C-D*C", ["-C*(A+D)"]),
        ("C-A*C", ["C*(1-A)"]),
        ("A*C*D+A*C*E+A*D*E", ["A*(C*D+C*E+D*E)", "A*C*(D+E)+A*D*E", "A*D*(C+E)+A*C*E", "A*C*D+A*E*(C+D)"]),
        ("A**2+2*A*C+C**2", ["(A+C)**2", "A*(A+2*C)+C**2", "A**2+C*(2*A+C)"]),
        ("A*A-C*C", ["(A-C)*(A+C)"]),
        ("C*E+C*F+A*E+A*F", ["(C+A)*(E+F)", "C*(E+F)+A*E+A*F", "E*(C+A)+C*F+A*F", "C*E+F*(C+A)+A*E", "C*E+C*F+A*(E+F)"]),
        ("(A-C)*D+(A-C)*E", ["(A-C)*(D+E)"]),
        ("A*(A+2*C)+C**2", ["(A+C)**2"]),
        ("A/6+1/2", ["(A+3)/6"]),
        ("A*4+C*6", ["2*(2*A+3*C)"]),
        ("2*(A*C+D*C)/E", ["2*(C*(A+D))/E"]),
    ],
)
def test_all_distinct_results_in_source_order(before: str, after: list[str]) -> None:
    assert factorizations(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(A+3)/6", ["A/6+1/2"]),
        ("(A+6)/6", ["A/6+1"]),
        ("(A-4)/6", ["A/6-2/3"]),
        ("(A*C+D)/6", ["A*C/6+D/6"]),
        ("(A+3.0)/6.0", ["A/6.0+0.5"]),
        ("(A+1.0)/3.0", ["A/3.0+1.0/3.0"]),
        ("(A+3)/6.0", ["A/6.0+0.5"]),
        ("(A+3)/-6", ["A/-6+3/-6"]),
        ("(A+C)/D", []),
        ("(A+1)/(1.0/2)", ["A/(1.0/2)+2.0"]),
    ],
)
def test_division_by_a_constant_is_distributed(before: str, after: list[str]) -> None:
    """Quotients of integers fold to quotients of integers, with a point only to what is exact."""
    assert factorizations(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A*0.5+C*0.5", ["0.5*(A+C)"]),
        ("A*1e-05+C*1e-05", ["1e-05*(A+C)"]),
        ("A*C*5e-324+D*C", ["C*(A*5e-324+D)"]),
        ("A*C*2.0+D*C*2", ["C*(A*2.0+2*D)"]),
        ("A**2+2.0*A*C+C**2", ["(A+C)**2", "A*(A+2.0*C)+C**2", "A**2+C*(2.0*A+C)"]),
        ("A*0.3+C*0.1", []),
        ("A*C*(1/3)+D*C", ["C*(A+3*D)/3"]),
    ],
)
def test_constants_survive(before: str, after: list[str]) -> None:
    """A literal with a point is opaque, unless factoring needs its value and can write the result exactly and in its magnitude."""
    assert factorizations(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A/C+D/C", ["(A+D)/C"]),
        ("A/C+C/A", []),
        ("A*C/C+D*C", ["C*(A/C+D)"]),
        ("1/C+A/C", ["(1+A)/C"]),
        ("A/(C-D)+E/(C-D)", ["(A+E)/(C-D)"]),
        ("A/(C/D)*E+A/(C/D)*F", ["A*(E+F)/(C/D)"]),
        ("A/(-C)+D/(-C)", ["-(A+D)/C"]),
        ("A/(C/2)+D/(C/2)", ["(A+D)/(C/2)"]),
        ("A/(1/(C*D))+A/E", ["A*(1/(1/(C*D))+1/E)"]),
        ("A/0+C/0", ["needs-nonzero"]),
        ("(A+C)/0", ["needs-nonzero"]),
        ("(A+C)/0.0", ["needs-nonzero"]),
        ("A/0.0*C+D*C", ["needs-nonzero"]),
        ("(A/0+C)/2", ["needs-nonzero", "needs-nonzero"]),
        ("A*C/(D-D)+E*C", ["needs-nonzero"]),
    ],
)
def test_no_division_appears_or_disappears(before: str, after: list[str]) -> None:
    assert factorizations(before) == after


@pytest.mark.parametrize("before", ["A*C-C*A+A*D+C*D", "A*0+C*D+C*E", "A*C*0+A*D+C*D"])
def test_what_cancels_would_have_to_be_finite(before: str) -> None:
    assert "needs-finite" in factorizations(before)


def test_an_infinite_constant_is_not_factored_out() -> None:
    assert factorizations("A*inf+C*inf") == ["needs-finite"]
    assert factorizations("(A+inf)/2") == ["needs-finite", "needs-finite"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("exp(A-C)", []),
        ("exp(A-C)*D+exp(A-C)*E", ["exp(A-C)*(D+E)"]),
        ("exp(A*C-D*C)/(1+exp(-A))", ["exp(C*(A-D))/(1+exp(-A))"]),
        ("max(A*C+D*C,0)", ["max(C*(A+D),0)"]),
        ("if_then_else(A*C+D*C<0,A*C+D*C,0.0)", ["if_then_else(A*C+D*C<0,C*(A+D),0.0)"]),
        ("floor(A*C+D*C)", []),
        ("(A*C+D*C)**0.5", ["(C*(A+D))**0.5"]),
        ("cast_f32(A^{f16,g}_{a}*C^{f16,g}_{a}+D^{f16,g}_{a}*C^{f16,g}_{a})", ["cast_f32(C*(A+D))"]),
    ],
)
def test_calls_are_opaque_and_their_arguments_are_sites(before: str, after: list[str]) -> None:
    assert factorizations(before) == after


def test_a_cast_to_an_integer_is_no_place_for_another_rounding() -> None:
    half = "A^{f32,g}_{a}*C^{f32,g}_{a}+D^{f32,g}_{a}*C^{f32,g}_{a}"
    assert factorizations(f"cast_i32({half})", "i32") == []
    whole = half.replace("f32", "i64")
    assert factorizations(f"cast_i32({whole})", "i32") == ["cast_i32(C*(A+D))"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("R+A*C+D*C", ["R+C*(A+D)"]),
        ("R-A*C-D*C", ["R-C*(A+D)"]),
        ("R+(A*C+D*C)", ["R+C*(A+D)"]),
        ("R*(A*C+D*C)", ["R*(C*(A+D))"]),
        ("max(R,A*C+D*C)", ["max(R,C*(A+D))"]),
        ("A*R+C*R", ["init-changes"]),
        ("A*R*C+C*R*D", ["init-changes"]),
        ("A*C-R*C", ["C*(A-R)"]),
    ],
)
def test_the_accumulator_stays_at_top_level(before: str, after: list[str]) -> None:
    assert factorizations(before) == after


def test_a_step_that_moves_the_accumulator_is_refused() -> None:
    ((_, unit),) = scalar_sites(equation("R+A*C+D*C"))
    refusal = propose(unit, (("rule", "factor"), ("at", ()), ("terms", (0, 1))))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "moves-accumulator"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A*C+D*C", ["C*(A+D)"]),
        ("A*A-C*C", ["(A-C)*(A+C)"]),
        ("A*(A+2*C)+C*C", ["(A+C)*(A+C)"]),
        ("A*4+C*2", ["2*(2*A+C)"]),
        ("A//2*C+D*C", ["C*(A//2+D)"]),
        ("(A*C+D*C)//2", []),
        ("(A*C+D*C)%4", []),
        ("a*2+a*4", []),
        ("A*(a*2+4)+C*(a*2+4)", ["(a*2+4)*(A+C)"]),
    ],
)
def test_integers_are_exact_and_floor_division_is_opaque(before: str, after: list[str]) -> None:
    """Index arithmetic is left alone: it is exact in i64 and converted once."""
    assert factorizations(before, "i32") == after


def test_integer_steps_are_bitwise_and_say_why() -> None:
    ((_, unit),) = scalar_sites(equation("A*C+D*C", "i8"))
    proposal = propose(unit, next(parameters(unit)))
    assert isinstance(proposal, Proposal)
    assert proposal.rounding == "bitwise"
    assert [proof.by for proof in proposal.proofs] == ["sympy", "field", "construction"]


def test_a_new_constant_must_fit_the_dtype() -> None:
    assert factorizations("A/300+C/400", "f16") == ["(4*A+3*C)/1200"]
    assert factorizations("A/997+C/991", "f16") == ["constant-range"]


def test_subscripts_and_conditions_are_no_sites() -> None:
    assert scalar_sites(equation("A^{f32,g}_{a*2+a*4}", "f32")) == []
    assert scalar_sites(equation("A*C+D*C<0&A<C", "bool")) == []


def test_the_proofs_can_be_followed() -> None:
    ((_, unit),) = scalar_sites(equation("A*C+D*C"))
    proposal = propose(unit, next(parameters(unit)))
    assert isinstance(proposal, Proposal)
    assert [(proof.by, proof.detail) for proof in proposal.proofs] == [
        ("sympy", "expand((s0*s1+s2*s1)-(s1*(s0+s2)))==0"),
        ("field", "s0*s1+s2*s1 and s1*(s0+s2) agree at 3 random points modulo 2**61-1"),
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (("rule", "factor"),),
        (("rule", "factor"), ("at", (7,)), ("terms", (0, 1))),
        (("rule", "factor"), ("at", ()), ("terms", (0, 5))),
        (("rule", "factor"), ("at", ()), ("terms", (0,))),
        (("rule", "factor"), ("at", ()), ("terms", (0, 2))),
        (("rule", "distribute"), ("at", ())),
        (("rule", "expand"), ("at", ())),
    ],
)
def test_a_step_that_names_nothing_is_refused(arguments: tuple[tuple[str, str | tuple[int, ...]], ...]) -> None:
    ((_, unit),) = scalar_sites(equation("A*C+D*C+E"))
    refusal = propose(unit, arguments)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "no-such-form"


@pytest.mark.parametrize(
    "right",
    [
        "+".join(["A*C"] * (MAX_NODES // 4 + 1)),
        f"A**{MAX_DEGREE}*C+C*D",
        "((2**99)**99)**99*A+C*A",
        "*".join(f"(A+{k})" for k in range(7)) + "+C",
        "+".join(f"{a}**{k}*{c}**{9 - k}" for k in range(2, 8) for a in "ACDE" for c in "FGHI"),
    ],
)
def test_a_term_that_could_stall_sympy_is_refused(right: str) -> None:
    started = process_time()
    assert "term-too-large" in factorizations(right)
    assert process_time() - started < 5


def test_a_result_that_could_not_be_read_back_is_refused() -> None:
    """The text allows 128 operations inside one another."""
    deep = "exp(" * 120 + "({})/2" + ")" * 120
    assert factorizations(deep.format("A+3"))[0].startswith("exp(")
    assert factorizations(deep.format("A*exp(exp(exp(C)))+D")) == ["term-too-large"]


def test_terms_that_differ_in_names_share_one_computation() -> None:
    gathered.cache_clear()
    misses = []
    for x, y, z in ("ACD", "EFG", "ZXY"):
        assert factorizations(f"{x}*{x}+{x}*{y}+{z}*{x}+{z}*{y}")[0] == f"({x}+{y})*({x}+{z})"
        misses.append(gathered.cache_info().misses)
    assert misses[0] > 0
    assert misses == [misses[0]] * 3


def test_a_unit_can_stand_alone() -> None:
    source = equation("A*C+D*C")
    proposal = propose(ScalarUnit(source.value, "f32"), (("rule", "factor"), ("at", ()), ("terms", (0, 1))))
    assert isinstance(proposal, Proposal)
    assert short(proposal.result) == "C*(A+D)"
