"""The strategy ``expand_factorization``: products and integer powers of sums are multiplied out.

Everything here works on shapes (`rules.mathematics.shape`), so a result is worked out once for all terms that differ only in names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from leir.ir import INT_DTYPES, Binary, Expr, Index, Int, Real, subexpressions
from rules.mathematics.identity import MAX_TERMS, Identity, is_path, pinned, unwieldy, verified
from rules.mathematics.polynomials import monomials, signed_product
from rules.mathematics.shape import at, has_infinity, renumbered, replace, restored, shape_of
from rules.mathematics.sums import Product, Term, is_sum, powers_in, product_of, products_in, sum_of, sums_in, terms_of
from rules.strategy import Arguments, Proposal, Refusal, ScalarUnit


def parameters(unit: ScalarUnit) -> Iterator[Arguments]:
    """Every product with sums among its factors, and every sum with such products among its terms; different results only.

    Yields ``rule`` and ``at``, the scalar path of the product or sum within the site. ``expand`` multiplies out everything below;
    ``multiply`` only the sum that is factor number ``factor``.
    """
    shape = shape_of(unit.expr).expr
    if unwieldy(shape) is not None:
        yield (("rule", "expand"), ("at", ()))
        return
    seen = {shape}
    for path, factor in _candidates(unit, shape):
        outcome = _changed(unit, shape, path, factor)
        if outcome is None or (not isinstance(outcome, Refusal) and outcome[0] in seen):
            continue
        if not isinstance(outcome, Refusal):
            seen.add(outcome[0])
        rule = "expand" if factor is None else "multiply"
        chosen: Arguments = () if factor is None else (("factor", factor),)
        yield (("rule", rule), ("at", path), *chosen)


def propose(unit: ScalarUnit, arguments: Arguments) -> Proposal | Refusal:
    """A product of sums as a sum of products; equal over the reals, and for integers modulo 2**n.

    before::

        # A f32[4,8] input
        # C f32[4] input
        # E f32[4,8] output
        L^{4}_{a=0}L^{8}_{c=0}[E^{f32,g}_{a,c}=(A^{f32,g}_{a,c}-C^{f32,g}_{a})**2;];

    step::

        expand_factorization 0.0: rule=expand at=,

    after::

        # A f32[4,8] input
        # C f32[4] input
        # E f32[4,8] output
        L^{4}_{a=0}L^{8}_{c=0}[E^{f32,g}_{a,c}=A^{f32,g}_{a,c}**2-2*A^{f32,g}_{a,c}*C^{f32,g}_{a}+C^{f32,g}_{a}**2;];

    Legal when the result reads every value that the site read, no two terms of the source cancel (they would have to be finite),
    and constants are shown exactly. A divisor is an opaque reciprocal: no division appears or disappears. Calls are opaque:
    ``exp(x-m)`` is never split.

    From Table 10 of the paper.
    """
    given = dict(arguments)
    rule, path, factor = given.get("rule"), given.get("at"), given.get("factor")
    well_formed = (rule == "expand" and factor is None) or (rule == "multiply" and isinstance(factor, int))
    if not well_formed or not is_path(path):
        return Refusal("no-such-form", f"{arguments!r} does not say which product or sum of the site is meant")
    shape = shape_of(unit.expr)
    if (reason := unwieldy(shape.expr)) is not None:
        return Refusal("term-too-large", reason)
    if (path, factor) not in list(_candidates(unit, shape.expr)):
        return Refusal("no-such-form", f"there is nothing to {rule} at {path}")
    assert factor is None or isinstance(factor, int)
    outcome = _changed(unit, shape.expr, path, factor)
    if outcome is None:
        return Refusal("no-such-form", f"there is nothing to {rule} at {path}")
    if isinstance(outcome, Refusal):
        return outcome
    result, identity = outcome
    if (literal := identity.too_large_for(unit.dtype)) is not None:
        return Refusal("constant-range", f"the new constant {literal} does not fit {unit.dtype}")
    integers = unit.dtype in INT_DTYPES
    return Proposal(restored(result, shape.leaves), "bitwise" if integers else "real", identity.proofs(integers))


# ---------------------------------------------------------------------------------------------------------------------- places


def _candidates(unit: ScalarUnit, shape: Expr) -> Iterator[tuple[tuple[int, ...], int | None]]:
    """Places within the site, with the number of the factor to multiply out, None for everything."""
    for path, product in _products(unit, shape):
        sums = _sums(product)
        if sums:
            yield path, None
        if len(sums) > 1 or any(_sums(term.expr) for k in sums for term in terms_of(product_of(product).factors[k].base)):
            yield from ((path, k) for k in sums)
    for path, chain in sums_in(shape):
        if any(_sums(term.expr) and not is_sum(term.expr) for term in terms_of(chain)[pinned(unit, path) :]):
            yield path, None


def _products(unit: ScalarUnit, shape: Expr) -> Iterator[tuple[tuple[int, ...], Expr]]:
    """The maximal products; of what an accumulation multiplies its target with, each operand is one of its own."""
    if unit.accumulator is None or not (isinstance(shape, Binary) and shape.op == "*"):
        yield from products_in(shape)
        return
    path: tuple[int, ...] = ()
    while isinstance(shape, Binary) and shape.op == "*":
        yield from products_in(shape.right, (*path, 1))
        path, shape = (*path, 0), shape.left


def _sums(product: Expr) -> list[int]:
    """The factors that are sums, by position."""
    return [k for k, f in enumerate(product_of(product).factors) if f.power > 0 and is_sum(f.base)]


def _changed(unit: ScalarUnit, shape: Expr, path: tuple[int, ...], factor: int | None) -> tuple[Expr, Identity] | Refusal | None:
    """The shape with the product or sum at ``path`` multiplied out, and why."""
    found = at(shape, path)
    assert found is not None
    kept = terms_of(found)[:1] if is_sum(found) and pinned(unit, path) else ()
    numbers: dict[Expr, Index] = {}
    source = tuple(Term(t.negative, renumbered(t.expr, numbers)) for t in terms_of(found)[len(kept) :])
    expansion = multiplied_out(source, factor, unit.dtype in INT_DTYPES)
    if expansion is None or isinstance(expansion, Refusal):
        return expansion
    terms = [*kept, *(Term(t.negative, restored(t.expr, tuple(numbers))) for t in expansion.terms)]
    return _spliced(shape, path, terms), expansion.identity


def _spliced(shape: Expr, path: tuple[int, ...], terms: Sequence[Term]) -> Expr:
    """The shape with a sum in place of what is at ``path``; as a term of a sum it needs no parentheses."""
    parent = at(shape, path[:-1]) if path else None
    if isinstance(parent, Binary) and is_sum(parent) and path[-1] == 1:
        flipped = [Term(t.negative != (parent.op == "-"), t.expr) for t in terms]
        return replace(shape, path[:-1], sum_of([*terms_of(parent.left), *flipped]))
    return replace(shape, path, sum_of(terms))


# ------------------------------------------------------------------------------------------------------------- multiplying out


@dataclass(frozen=True, slots=True)
class Expansion:
    terms: tuple[Term, ...]
    identity: Identity


@lru_cache(maxsize=4096)
def multiplied_out(source: tuple[Term, ...], factor: int | None, integers: bool) -> Expansion | Refusal | None:
    """The sum of ``source`` with its products of sums multiplied out, like terms gathered; with ``factor``, ``source`` is one
    product, and only that factor is opened. None where nothing changes.

    Refused as ``needs-finite`` (terms cancel, or one is infinite), ``needs-nonzero`` (a literal zero divides), ``term-too-large``.
    """
    if any(has_infinity(term.expr) for term in source):
        return Refusal("needs-finite", "the expression has an infinite constant")
    if monomials(source) > MAX_TERMS:
        return Refusal("term-too-large", f"the expression has more than {MAX_TERMS} terms when multiplied out")
    if not any(_sums(term.expr) for term in source):
        return None
    before = sum_of(source)
    products = [list(_opened(term, factor)) for term in source]
    pointed = any(isinstance(e, Real) for e in subexpressions(before))
    powers = set(_powers(before))
    for fold in (True, False) if pointed else (False,):
        try:
            gathered = _gathered(products, fold)
        except ZeroDivisionError:
            return Refusal("needs-nonzero", "the expression divides by the constant 0")
        if isinstance(gathered, Refusal):
            return gathered
        written = [_written(like, integers, powers, pointed and fold) for like in gathered]
        terms = tuple(term for term in written if term is not None)
        if len(terms) == len(written):
            identity = verified(before, Term(False, sum_of(terms)))
            return identity if isinstance(identity, Refusal) else Expansion(terms, identity)
    raise AssertionError("literals that stay as they are can always be written")


def _opened(term: Term, factor: int | None) -> Iterator[Product]:
    """The products of one summand from each opened factor, in the order of the text."""
    product = product_of(term.expr)
    found = [Product(product.negative != term.negative, ())]
    for position, own in enumerate(product.factors):
        choices = [Product(False, (own,))]
        power = 1
        if own.power > 0 and is_sum(own.base) and factor in (None, position):
            power = own.power
            choices = [part for t in terms_of(own.base) for part in _summand(t, deep=factor is None)]
        for _ in range(power):
            found = [Product(a.negative != b.negative, a.factors + b.factors) for a in found for b in choices]
    yield from found


def _summand(term: Term, deep: bool) -> Iterator[Product]:
    if deep:
        yield from _opened(term, None)
    else:
        product = product_of(term.expr)
        yield Product(product.negative != term.negative, product.factors)


@dataclass(slots=True)
class _Like:
    """Products with the same factors: what they add up to, and the factors, with their powers, in the order of the first."""

    coefficient: Fraction
    factors: dict[tuple[Expr, bool], int]


def _gathered(products: Sequence[Sequence[Product]], fold: bool) -> list[_Like] | Refusal:
    """Like terms added up, in order of first appearance."""
    total: dict[frozenset[tuple[tuple[Expr, bool], int]], _Like] = {}
    signs: dict[frozenset[tuple[tuple[Expr, bool], int]], bool] = {}
    for group in products:
        own: dict[frozenset[tuple[tuple[Expr, bool], int]], Fraction] = {}
        for product in group:
            like = _like(product, fold)
            key = frozenset(like.factors.items())
            own[key] = own.get(key, Fraction(0)) + like.coefficient
            total.setdefault(key, _Like(Fraction(0), like.factors)).coefficient += like.coefficient
        for key, coefficient in own.items():
            if coefficient and signs.setdefault(key, coefficient > 0) != (coefficient > 0) and key:
                return Refusal("needs-finite", "terms of the sum cancel, which holds only where they are finite")
    kept = [like for like in total.values() if like.coefficient]
    read = {factor for like in total.values() for factor in like.factors}
    if not kept or read != {factor for like in kept for factor in like.factors}:
        return Refusal("needs-finite", "a value disappears from the sum, which holds only where it is finite")
    return kept


def _like(product: Product, fold: bool) -> _Like:
    coefficient = Fraction(-1 if product.negative else 1)
    factors: dict[tuple[Expr, bool], int] = {}
    for factor in product.factors:
        if isinstance(factor.base, Int) or (fold and isinstance(factor.base, Real)):
            coefficient *= Fraction(factor.base.value) ** factor.power
        else:
            place = factor.base, factor.power < 0
            factors[place] = factors.get(place, 0) + abs(factor.power)
    return _Like(coefficient, factors)


def _powers(expr: Expr) -> Iterator[Expr]:
    """What has an explicit power, or is multiplied in a sum that has: it may stand to a power afterwards."""
    for base in powers_in(expr):
        yield base
        if is_sum(base):
            yield from (f.base for t in terms_of(base) for f in product_of(t.expr).factors)


def _written(like: _Like, integers: bool, powers: set[Expr], pointed: bool) -> Term | None:
    """Number first, then the factors, then the divisors; None for a number that no literal shows exactly."""
    numerator: list[Expr] = []
    divisors: list[Expr] = []
    for (base, reciprocal), power in like.factors.items():
        explicit = power > 1 and (base in powers or (is_sum(base) and not integers))
        (divisors if reciprocal else numerator).extend([Binary("**", base, Int(power))] if explicit else [base] * power)
    return signed_product(like.coefficient, numerator, divisors, pointed)
