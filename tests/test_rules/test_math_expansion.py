"""expand_factorization, instance by instance, and on random scalar expressions: values over the rationals, definedness."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leir.ir import Binary, Expr, Int, Unary, accesses
from leir.printer import print_expr
from rules.mathematics import expansion, factorization, scalar_sites
from rules.mathematics.expansion import multiplied_out, parameters, propose
from rules.strategy import Proposal, Refusal, ScalarUnit
from tests.test_rules.equations import equation, outcomes
from tests.test_rules.test_math_laws import LEAVES, NAMES, anything, as_accesses, as_shape, leaves, numbers, value

CODES = {"needs-finite", "needs-nonzero", "term-too-large", "constant-range"}


def expansions(right: str, dtype: str = "f32") -> list[str]:
    return [text for text, _ in outcomes(expansion, right, dtype)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(A-C)**2", ["A**2-2*A*C+C**2"]),  # the example of the paper's Table 10
        ("(A-C)*(A-C)", ["A*A-2*A*C+C*C", "A*(A-C)-C*(A-C)", "(A-C)*A-(A-C)*C"]),
        ("C*(A+D)", ["C*A+C*D"]),
        ("(A+D)*C", ["A*C+D*C"]),
        ("E-C*(A+D)", ["E-C*A-C*D"]),
        ("-(A+C)*D", ["-A*D-C*D"]),
        ("-(A-C)", ["-A+C"]),
        ("(A+C)*(D+E)", ["A*D+A*E+C*D+C*E", "A*(D+E)+C*(D+E)", "(A+C)*D+(A+C)*E"]),
        ("(A+C*(D+E))*F", ["A*F+C*D*F+C*E*F", "A*F+C*(D+E)*F", "(A+C*D+C*E)*F"]),
        ("(A+C)**3", ["A**3+3*A**2*C+3*A*C**2+C**3"]),
        ("A*(C+D)+A*C", ["A*C+A*D+A*C", "2*A*C+A*D"]),
        ("A+(C+D)", []),
        ("A*C+D", []),
    ],
)
def test_all_distinct_results_in_source_order(before: str, after: list[str]) -> None:
    assert expansions(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(A+0.5)**2", ["A**2+A+0.25"]),
        ("0.1*(A+0.2)", ["0.1*A+0.1*0.2"]),
        ("(A+1e-05)*C", ["A*C+1e-05*C"]),
        ("2*(A+3)", ["2*A+6"]),
        ("(A+1/2)*2", ["2*A+1"]),
        ("(A+3)/6", ["A/6+1/2"]),
        ("exp(A-C)*(D+1)", ["exp(A-C)*D+exp(A-C)"]),
    ],
)
def test_constants_are_folded_where_that_is_exact(before: str, after: list[str]) -> None:
    assert expansions(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(A+C)/D", ["A/D+C/D"]),
        ("A/(C*(D+E))", ["A/(C*D+C*E)"]),
        ("A/(C/(D+E))", []),
        ("A/(C+D)", []),
        ("(A+C)/0", ["needs-nonzero"]),
        ("C*(A+C)/C", ["C*A/C+C*C/C"]),
    ],
)
def test_no_division_appears_or_disappears(before: str, after: list[str]) -> None:
    """A factor that may be zero is not cancelled."""
    assert expansions(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(A-C)*(A+C)", ["A*A-C*C", "A*(A+C)-C*(A+C)", "(A-C)*A+(A-C)*C"]),
        ("(A-A)*C", ["needs-finite"]),
        ("(A+C-A)*D", ["needs-finite"]),
        ("(A+C)*0", ["needs-finite"]),
        ("(A+inf)*C", ["needs-finite"]),
        ("A*(C+D)-A*C", ["A*C+A*D-A*C", "needs-finite"]),
        ("(A+C)**2-A**2", ["A**2+2*A*C+C**2-A**2", "needs-finite"]),
    ],
)
def test_what_cancels_would_have_to_be_finite(before: str, after: list[str]) -> None:
    """Within one product the mixed terms go, because both sides read the same values; a term of the source stays."""
    assert expansions(before) == after


@pytest.mark.parametrize(
    "before", ["exp(A-C)", "exp(A)*exp(C)", "log(A*C)", "sqrt(A**2)", "A/A", "A+C-C", "(A*C)**0.5", "exp(A)/(exp(A)+1)"]
)
def test_known_false_rewrites_are_not_offered(before: str) -> None:
    """exp(x-m) split, a log of unknown signs, sqrt(x**2) to x, x/x to 1, x+v-v to x."""
    assert expansions(before) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("R+C*(A+D)", ["R+C*A+C*D"]),
        ("R*((A+C)*D)", ["R*(A*D+C*D)"]),
        ("R*(A+C)", []),
        ("max(R,C*(A+D))", ["max(R,C*A+C*D)"]),
        ("(A+C)*R", ["A*R+C*R"]),
    ],
)
def test_the_accumulator_stays_at_top_level(before: str, after: list[str]) -> None:
    assert expansions(before) == after


def test_integers_are_exact_modulo_a_power_of_two() -> None:
    assert outcomes(expansion, "(A-C)*D", "i8") == [("A*D-C*D", "bitwise")]
    assert expansions("(A+C)*(A+C)*3", "i32")[0] == "3*A*A+6*A*C+3*C*C"
    assert expansions("(A+100)*2", "i8") == ["constant-range"]
    assert expansions("(A+300)*300", "f16") == ["constant-range"]


def test_what_could_stall_is_refused() -> None:
    assert set(expansions("(A+C)**9*(D+E)**9")) == {"term-too-large"}
    assert expansions("(A+C)**300") == ["term-too-large"]
    assert expansions("*".join(["(A+C)"] * 110)) == ["term-too-large"]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (("rule", "expand"),),
        (("rule", "expand"), ("at", (5,))),
        (("rule", "expand"), ("at", ()), ("factor", 0)),
        (("rule", "multiply"), ("at", ())),
        (("rule", "multiply"), ("at", ()), ("factor", 1)),
        (("rule", "factor"), ("at", ())),
    ],
)
def test_a_step_that_names_nothing_is_refused(arguments: tuple[tuple[str, str | int | tuple[int, ...]], ...]) -> None:
    ((_, unit),) = scalar_sites(equation("(A+C)*D"))
    refusal = propose(unit, arguments)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "no-such-form"


def test_terms_that_differ_in_names_share_one_computation() -> None:
    multiplied_out.cache_clear()
    misses = []
    for x, y, z in ("ACD", "EFG", "ZXY"):
        assert expansions(f"{z}+({x}-{y})**2") == [f"{z}+{x}**2-2*{x}*{y}+{y}**2"]
        misses.append(multiplied_out.cache_info().misses)
    assert misses == [misses[0]] * 3


def _products(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    total = st.builds(Binary, st.sampled_from("+-"), inner, inner)
    return st.one_of(
        st.builds(Binary, st.just("*"), total, inner),
        st.builds(Binary, st.just("*"), inner, total),
        st.builds(Binary, st.just("/"), total, leaves),
        st.builds(Binary, st.just("**"), total, st.sampled_from([Int(2), Int(3)])),
        st.builds(Unary, st.just("-"), total),
        total,
    )


shapes = st.one_of(anything, st.recursive(st.one_of(leaves, leaves, numbers), _products, max_leaves=8))
points = st.lists(st.tuples(*[st.fractions(-9, 9, max_denominator=8)] * LEAVES), min_size=6, max_size=6)


@settings(max_examples=150)
@given(shapes, points)
def test_every_result_has_the_values_of_its_source(shape: Expr, points: list[tuple[Fraction, ...]]) -> None:
    """Also where a divisor is zero: neither side is defined where the other is not."""
    source = as_accesses(shape)
    unit = ScalarUnit(source, "f64")
    for arguments in parameters(unit):
        outcome = propose(unit, arguments)
        if isinstance(outcome, Refusal):
            assert outcome.code in CODES
            continue
        after = as_shape(outcome.result)
        assert after is not shape
        assert set(accesses(outcome.result)) == set(accesses(source))
        assert all(value(shape, point) == value(after, point) for point in points), print_expr(after, NAMES)


@settings(max_examples=150)
@given(st.lists(leaves, min_size=2, max_size=4, unique=True), leaves)
def test_factorization_takes_an_expanded_product_back(terms: list[Expr], factor: Expr) -> None:
    total = terms[0]
    for term in terms[1:]:
        total = Binary("+", total, term)
    source = as_accesses(Binary("*", factor, total))
    unit = ScalarUnit(source, "f64")
    (first, *_) = [propose(unit, arguments) for arguments in parameters(unit)]
    assert isinstance(first, Proposal)
    back = ScalarUnit(first.result, "f64")
    results = [factorization.propose(back, arguments) for arguments in factorization.parameters(back)]
    assert any(isinstance(r, Proposal) and value(as_shape(r.result), (Fraction(3),) * LEAVES) is not None for r in results)
