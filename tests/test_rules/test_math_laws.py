"""factorization on random scalar expressions: values over the rationals, definedness, determinism, the laws of the bridge."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from fractions import Fraction
from functools import reduce
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leir.ir import Binary, Expr, Index, Int, Real, Unary, accesses, children, subexpressions, with_children
from leir.printer import print_expr
from rewrite.enumerate import enumerate_steps
from rules.mathematics import expansion, factorization, field, powers, scalar_sites
from rules.mathematics.factorization import parameters, propose
from rules.mathematics.shape import paths_in
from rules.strategy import Proposal, Refusal, ScalarUnit
from rules.sympy_bridge import difference_expands_to_zero, factor_list, from_sympy, to_sympy
from tests.test_rules.equations import equation
from tests.test_rules.softmaxes import random_softmax

ROOT = Path(__file__).resolve().parents[2]
LEAVES = 4
NAMES = [f"s{k}" for k in range(LEAVES)]
CODES = {"needs-finite", "needs-nonzero", "term-too-large", "constant-range"}

numbers = st.sampled_from([Int(0), Int(1), Int(2), Int(3), Int(6), Real(0.5), Real(2.0), Real(1e-05), Unary("-", Int(1))])
leaves = st.builds(Index, st.integers(0, LEAVES - 1))


def _combined(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.builds(Binary, st.sampled_from("+-"), inner, inner),
        st.builds(Binary, st.just("*"), inner, inner),
        st.builds(Binary, st.just("/"), inner, st.one_of(leaves, numbers)),
        st.builds(Binary, st.just("**"), inner, st.sampled_from([Int(2), Int(3)])),
        st.builds(Unary, st.just("-"), inner),
    )


def _sum_of_products(parts: list[list[Expr]]) -> Expr:
    return reduce(lambda a, b: Binary("+", a, b), (reduce(lambda a, b: Binary("*", a, b), factors) for factors in parts))


anything = st.recursive(st.one_of(leaves, leaves, numbers), _combined, max_leaves=12)
products = st.lists(st.one_of(leaves, numbers), min_size=1, max_size=3)
sums = st.lists(products, min_size=2, max_size=5).map(_sum_of_products)
shapes = st.one_of(anything, sums)


def value(shape: Expr, point: tuple[Fraction, ...]) -> Fraction | None:
    """The value over the rationals, None where something divides by zero."""
    match shape:
        case Index():
            return point[shape.axis]
        case Int() | Real():
            return Fraction(shape.value)
        case Unary():
            inner = value(shape.operand, point)
            return None if inner is None else -inner
    assert isinstance(shape, Binary)
    left, right = value(shape.left, point), value(shape.right, point)
    if left is None or right is None or (shape.op == "/" and right == 0):
        return None
    match shape.op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right
    assert isinstance(shape.right, Int)
    return left**shape.right.value


TENSORS = tuple(equation(name).value for name in "ACDE")


def as_accesses(shape: Expr) -> Expr:
    """Leaf k as an element of the k-th of four tensors, so that it is no index arithmetic."""
    return _replace(shape, {Index(k): tensor for k, tensor in enumerate(TENSORS)})


def as_shape(expr: Expr) -> Expr:
    """The inverse of `as_accesses`."""
    return _replace(expr, {tensor: Index(k) for k, tensor in enumerate(TENSORS)})


def _replace(expr: Expr, new: dict[Expr, Expr]) -> Expr:
    return new[expr] if expr in new else with_children(expr, tuple(_replace(child, new) for child in children(expr)))


def outcomes(expr: Expr, dtype: str = "f64") -> list[Proposal | Refusal]:
    unit = ScalarUnit(expr, dtype)
    return [propose(unit, arguments) for arguments in parameters(unit)]


@settings(max_examples=250)
@given(shapes, st.lists(st.tuples(*[st.fractions(-9, 9, max_denominator=8)] * LEAVES), min_size=6, max_size=6))
def test_every_result_has_the_values_of_its_source(shape: Expr, points: list[tuple[Fraction, ...]]) -> None:
    """Also where a divisor is zero: neither side is defined where the other is not."""
    source = as_accesses(shape)
    for outcome in outcomes(source):
        if isinstance(outcome, Refusal):
            assert outcome.code in CODES
            continue
        after = as_shape(outcome.result)
        assert after is not shape
        assert set(accesses(outcome.result)) == set(accesses(source))
        assert all(value(shape, point) == value(after, point) for point in points), print_expr(after, NAMES)


@settings(max_examples=300)
@given(st.lists(st.lists(leaves, min_size=1, max_size=3), min_size=2, max_size=4), leaves)
def test_a_shared_factor_is_always_found(parts: list[list[Expr]], shared: Expr) -> None:
    """Unless two terms are alike, which is not this strategy's business."""
    monomials = [tuple(sorted(leaf.axis for leaf in factors if isinstance(leaf, Index))) for factors in parts]
    if len(set(monomials)) == len(monomials):
        source = as_accesses(_sum_of_products([[*factors, shared] for factors in parts]))
        assert any(isinstance(outcome, Proposal) for outcome in outcomes(source))


@settings(max_examples=200)
@given(
    st.lists(st.lists(st.one_of(leaves, st.sampled_from([Int(2), Int(3), Int(7)])), min_size=1, max_size=3), min_size=2, max_size=5)
)
def test_integer_steps_are_exact_modulo_a_power_of_two(parts: list[list[Expr]]) -> None:
    source = as_accesses(_sum_of_products(parts))
    rng = Random(7)
    for outcome in outcomes(source, "i8"):
        if isinstance(outcome, Proposal):
            assert outcome.rounding == "bitwise"
            assert all(e.op in "+-*" for e in subexpressions(outcome.result) if isinstance(e, Binary))
            point = tuple(Fraction(rng.randrange(-128, 128)) for _ in range(LEAVES))
            before, after = value(as_shape(source), point), value(as_shape(outcome.result), point)
            assert before is not None
            assert after is not None
            assert (before - after) % 256 == 0


@settings(max_examples=300)
@given(shapes)
def test_what_a_step_does_not_touch_stays(shape: Expr) -> None:
    """Outside the sum or division that the step names, the result is the source."""
    source = as_accesses(shape)
    unit = ScalarUnit(source, "f64")
    for arguments in parameters(unit):
        outcome = propose(unit, arguments)
        if isinstance(outcome, Proposal):
            at = dict(arguments)["at"]
            assert isinstance(at, tuple)
            apart = {path: e for path, e in paths_in(source) if path[: len(at)] != at and at[: len(path)] != path}
            assert apart.items() <= dict(paths_in(outcome.result)).items()


@settings(max_examples=400)
@given(st.one_of(shapes, st.builds(Binary, st.just("*"), shapes, st.sampled_from([Real(float("inf")), Real(5e-324), Real(1.0)]))))
def test_the_round_trip_through_sympy_is_the_identity(shape: Expr) -> None:
    assert from_sympy(to_sympy(shape)) is shape


def test_what_has_no_sympy_meaning_is_an_error() -> None:
    with pytest.raises(ValueError, match="no sympy meaning"):
        to_sympy(Binary("//", Index(0), Int(2)))
    with pytest.raises(ValueError, match="no sympy meaning"):
        difference_expands_to_zero(Binary("//", Index(0), Int(2)), Int(1))
    with pytest.raises(ValueError, match="was not made by to_sympy"):
        from_sympy(to_sympy(Index(0)) ** to_sympy(Index(1)))


def test_the_bridge_factors_over_the_rationals() -> None:
    half = Fraction(1, 2)
    assert factor_list({(1, 0): half, (0, 1): half}, 2) == (half, [({(1, 0): 1, (0, 1): 1}, 1)])


@settings(max_examples=200)
@given(sums, sums, leaves)
def test_the_two_proofs_agree(left: Expr, right: Expr, common: Expr) -> None:
    """sympy's expand and the evaluation in the field accept the same pairs."""
    assert difference_expands_to_zero(left, right) == field.agree(left, right, LEAVES)
    gathered = Binary("*", common, Binary("+", left, right))
    apart = Binary("+", Binary("*", common, left), Binary("*", common, right))
    assert difference_expands_to_zero(gathered, apart)
    assert field.agree(gathered, apart, LEAVES)


def test_the_field_tells_different_expressions_apart() -> None:
    x, y, z = Index(0), Index(1), Index(2)
    source = Binary("+", Binary("*", x, z), Binary("*", y, z))
    assert field.agree(source, Binary("*", z, Binary("+", x, y)), 3)
    assert not field.agree(source, Binary("*", z, Binary("-", x, y)), 3)
    assert not field.agree(Binary("/", x, z), Binary("*", x, z), 3)
    with pytest.raises(ZeroDivisionError):
        field.agree(Binary("/", x, Int(0)), x, 3)
    with pytest.raises(ValueError, match="not arithmetic"):
        field.value(Binary("//", x, Int(2)), [1])


def digest() -> str:
    """What enumeration says about 80 random sums and 20 random softmaxes, as one hash."""
    rng = Random(5)
    lines: list[str] = []
    for _ in range(80):
        terms = []
        for _ in range(rng.randint(2, 5)):
            factors = [rng.choice((*"ACDE", "2", "0.5", "(A-C)", "exp(D)")) for _ in range(rng.randint(1, 3))]
            terms.append(rng.choice("*/").join(factors))
        source = equation("max(" + rng.choice("+-").join(terms) + f",(A+{rng.randint(1, 9)})/6)")
        sites = [(strategy, *site) for strategy in (factorization, expansion, powers) for site in scalar_sites(source)]
        for strategy, path, unit in sites:
            for arguments in strategy.parameters(unit):
                outcome = strategy.propose(unit, arguments)
                text = outcome.code if isinstance(outcome, Refusal) else print_expr(outcome.result, ["a"])
                lines.append(f"{path}{arguments}{text}")
    assert len(lines) > 150
    for seed in range(20):
        lines += [
            f"{found.step}{found.key}" for found in enumerate_steps(random_softmax(Random(seed)), strategies=["online_softmax"])
        ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def test_the_same_for_any_hash_seed() -> None:
    code = "from tests.test_rules.test_math_laws import digest; print(digest())"
    digests = set()
    for seed in ("0", "77"):
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, env={"PYTHONHASHSEED": seed}
        )
        digests.add(run.stdout.strip())
    assert digests == {digest()}
