"""The strategy ``factorization``: sums become products, and a division by a constant is distributed over a sum.

Everything here works on shapes (`rules.mathematics.shape`), so a result is worked out once for all terms that differ only in names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm

from leir.ir import INT_DTYPES, Binary, Expr, Index, Int, Real, subexpressions
from rules.mathematics.identity import MAX_TERMS, Identity, is_path, literals, pinned, unwieldy, verified
from rules.mathematics.polynomials import (
    Exponents,
    Factors,
    Polynomial,
    Reading,
    Table,
    Writer,
    content,
    evidently_irreducible,
    exact_literal,
    literal_value,
    monomials,
)
from rules.mathematics.shape import at, has_infinity, paths_in, renumbered, replace, restored, shape_of
from rules.mathematics.sums import Term, is_sum, product_of, sum_of, sums_in, terms_of
from rules.strategy import Arguments, Proposal, Refusal, ScalarUnit

# With these limits the slowest of 3,000 random polynomials took sympy 0.1 s on one core; ten symbols and sixteen terms already took
# 2.7 s.
MAX_HARD_TERMS, MAX_HARD_SYMBOLS, MAX_HARD_POWER = 12, 8, 4  # for a polynomial that is not evidently irreducible

OPAQUE = Reading()
READINGS = (OPAQUE, Reading(fold=True), Reading(open=True))


def parameters(unit: ScalarUnit) -> Iterator[Arguments]:
    """Every sum of the site with the groups of its terms that can become a product, then every division of a sum by a constant.

    Yields ``rule`` (``factor`` or ``distribute``), ``at`` (the scalar path of the sum or the division within the site) and, for
    ``factor``, ``terms`` (positions in the sum). The groups are all terms, and for each factor that several terms share those
    terms. A group that sympy's `factor` leaves as it is yields nothing; one that it changes but that may not be changed is
    yielded, and refused by `propose`.
    """
    shape = shape_of(unit.expr)
    if unwieldy(shape.expr):
        yield (("rule", "factor"), ("at", ()), ("terms", ()))
        return
    integers = unit.dtype in INT_DTYPES
    for path, chain in sums_in(shape.expr):
        for group in _groups(_terms(chain, pinned(unit, path))):
            if factored(chain, group, integers) is not None:
                yield (("rule", "factor"), ("at", path), ("terms", group))
    if not integers:
        for path, division in _divisions(shape.expr):
            if distributed(division) is not None:
                yield (("rule", "distribute"), ("at", path))


def propose(unit: ScalarUnit, arguments: Arguments) -> Proposal | Refusal:
    """A sum as a product, or a quotient of a sum as a sum of quotients; equal over the reals, and for integers modulo 2**n.

    before::

        # A f32[4,8] input
        # C f32[4] input
        # D f32[4,8] input
        # E f32[4,8] output
        L^{4}_{a=0}L^{8}_{c=0}[E^{f32,g}_{a,c}=A^{f32,g}_{a,c}*C^{f32,g}_{a}+D^{f32,g}_{a,c}*C^{f32,g}_{a};];

    step::

        factorization 0.0: rule=factor at=, terms=0,1

    after::

        # A f32[4,8] input
        # C f32[4] input
        # D f32[4,8] input
        # E f32[4,8] output
        L^{4}_{a=0}L^{8}_{c=0}[E^{f32,g}_{a,c}=C^{f32,g}_{a}*(A^{f32,g}_{a,c}+D^{f32,g}_{a,c});];

    Legal when the result reads every value that the site read (what cancels would have to be finite), has no new division (a
    divisor is an opaque reciprocal, so nothing cancels against it), and shows its constants exactly. Calls are opaque:
    ``exp(x-m)`` is never split.

    From Table 10 of the paper.
    """
    given = dict(arguments)
    rule, path, group = given.get("rule"), given.get("at"), given.get("terms", ())
    if rule not in ("factor", "distribute") or not is_path(path) or not is_path(group):
        return Refusal("no-such-form", f"{arguments!r} does not say which sum or division of the site is meant")
    shape = shape_of(unit.expr)
    if (reason := unwieldy(shape.expr)) is not None:
        return Refusal("term-too-large", reason)
    found = at(shape.expr, path)
    integers = unit.dtype in INT_DTYPES
    if found is None or (integers and rule == "distribute"):
        return Refusal("no-such-form", f"there is nothing to {rule} at {path}")
    if rule == "factor" and 0 in group and pinned(unit, path):
        return Refusal("moves-accumulator", "the accumulator stays the first term at top level")
    outcome = factored(found, group, integers) if rule == "factor" else distributed(found)
    if outcome is None:
        return Refusal("no-such-form", f"there is nothing to {rule} at {path}" + (f" in the terms {group}" if group else ""))
    if isinstance(outcome, Refusal):
        return outcome
    part, identity = outcome
    if (literal := identity.too_large_for(unit.dtype)) is not None:
        return Refusal("constant-range", f"the new constant {literal} does not fit {unit.dtype}")
    result = restored(replace(shape.expr, path, part), shape.leaves)
    return Proposal(result, "bitwise" if integers else "real", identity.proofs(integers))


# ------------------------------------------------------------------------------------------------------------------ factoring


def factored(chain: Expr, group: tuple[int, ...], integers: bool) -> tuple[Expr, Identity] | Refusal | None:
    """The sum ``chain`` with the terms ``group`` replaced by their product, where the first of them stood, and why.

    None where there is no such group, or it is irreducible. Refused as `gathered` is.
    """
    terms = terms_of(chain)
    if not is_sum(chain) or len(group) < 2 or list(group) != sorted(set(group)) or group[-1] >= len(terms):
        return None
    numbers: dict[Expr, Index] = {}
    chosen = tuple(Term(terms[k].negative, renumbered(terms[k].expr, numbers)) for k in group)
    identity = gathered(chosen, integers)
    if identity is None or isinstance(identity, Refusal):
        return identity
    product = Term(identity.after.negative, restored(identity.after.expr, tuple(numbers)))
    kept = [product if k == group[0] else term for k, term in enumerate(terms) if k == group[0] or k not in group]
    return sum_of(kept), identity


@lru_cache(maxsize=4096)
def gathered(terms: tuple[Term, ...], integers: bool) -> Identity | Refusal | None:
    """The sum of ``terms`` as a product; None where it is irreducible.

    Refused as ``needs-finite`` (terms cancel, or a factor is infinite), ``needs-nonzero`` (a literal zero divides), or
    ``term-too-large``.
    """
    if any(has_infinity(term.expr) for term in terms):
        return Refusal("needs-finite", "the sum has an infinite constant")
    for reading in READINGS:
        product = _product(terms, reading, integers)
        if isinstance(product, Refusal):
            return product
        if product is not None:
            return verified(sum_of(terms), product)
    return None


def _product(terms: Sequence[Term], reading: Reading, integers: bool) -> Term | Refusal | None:
    if reading.fold and not any(isinstance(e, Real) for term in terms for e in subexpressions(term.expr)):
        return None
    if reading.open and not any(f.power > 0 and is_sum(f.base) for term in terms for f in product_of(term.expr).factors):
        return None
    if len(terms) > MAX_TERMS or (reading.open and monomials(terms) > MAX_TERMS):
        return Refusal("term-too-large", f"the sum has more than {MAX_TERMS} terms when multiplied out")
    table = Table(terms, reading)
    try:
        single = [table.polynomial(term) for term in terms]
        whole = table.sum(terms)
    except ZeroDivisionError:
        return Refusal("needs-nonzero", "the sum divides by the constant 0")
    if len(whole) < 2:
        return None
    vanished = [k for k in range(len(table.symbols)) if not any(e[k] for e in whole)]
    if vanished or (not reading.open and _cancels(single)):
        return None if reading.open else Refusal("needs-finite", "terms of the sum cancel, which holds only where they are finite")
    factors = _factors(whole)
    if isinstance(factors, Refusal):
        return factors
    if not _is_proper(factors):
        return None
    product = Writer(table, terms, integers).write(factors)
    if product is None or (reading.fold and not _keeps_magnitude(terms, product)):
        return None
    return product


def _cancels(terms: list[dict[Exponents, Fraction]]) -> bool:
    """Whether two monomials are alike but for opposite signs, or one has the coefficient 0."""
    signs: dict[Exponents, bool] = {}
    for exponents, coefficient in (item for term in terms for item in term.items() if item[1] or any(item[0])):
        if not coefficient or signs.setdefault(exponents, coefficient > 0) != (coefficient > 0):
            return True
    return False


def _factors(polynomial: Polynomial) -> Factors | Refusal:
    """`factor_list` of sympy. The common monomial is taken out first, and what is then evidently irreducible never gets there."""
    common = content(polynomial)
    rest = {tuple(a - b for a, b in zip(e, common, strict=True)): c for e, c in polynomial.items()}
    shared: list[tuple[dict[Exponents, Fraction], int]] = [({common: Fraction(1)}, 1)] if any(common) else []
    if evidently_irreducible(rest):
        number = _common_divisor(rest.values())
        return number, [*shared, ({e: c / number for e, c in rest.items()}, 1)]
    used = sum(any(column) for column in zip(*rest, strict=True))
    highest = max(max(e) for e in rest)
    if len(rest) > MAX_HARD_TERMS or used > MAX_HARD_SYMBOLS or highest > MAX_HARD_POWER:
        return Refusal(
            "term-too-large", f"a polynomial with {len(rest)} terms in {used} symbols to the power {highest} may take too long"
        )
    from rules.sympy_bridge import factor_list

    coefficient, factors = factor_list(rest, len(common))
    return coefficient, [*shared, *factors]


def _common_divisor(values: Iterable[Fraction]) -> Fraction:
    """The largest positive rational whose integer multiples they all are."""
    numbers = list(values)
    return Fraction(gcd(*(v.numerator for v in numbers)), lcm(*(v.denominator for v in numbers)))


def _is_proper(factors: Factors) -> bool:
    """Whether the product has something beside one sum to the first power."""
    coefficient, polynomials = factors
    return abs(coefficient) != 1 or len(polynomials) > 1 or polynomials[0][1] > 1


def _keeps_magnitude(before: Sequence[Term], after: Term) -> bool:
    """Whether folded constants stay within the range of the constants they were made of, and 1: factoring 0.3*x+0.1*y must not give
    2**-55*(10808639105689190.0*x+...), which is exact and useless."""
    old = [1, *(value for term in before for value in literals(term.expr) if value)]
    return all(value == 0 or min(old) <= value <= max(old) for value in literals(after.expr))


# --------------------------------------------------------------------------------------------------------------- distributing


def distributed(division: Expr) -> tuple[Expr, Identity] | Refusal | None:
    """``(x+y)/c`` as ``x/c+y/c``, and why; None where ``division`` is no such thing. Refused as `spread` is."""
    numbers: dict[Expr, Index] = {}
    identity = spread(renumbered(division, numbers))
    if identity is None or isinstance(identity, Refusal):
        return identity
    return restored(identity.after.expr, tuple(numbers)), identity


@lru_cache(maxsize=4096)
def spread(division: Expr) -> Identity | Refusal | None:
    """The sum of quotients, constants folded where the result is a literal or a quotient of integers.

    Refused as ``needs-nonzero`` for a division by a literal zero, ``needs-finite`` for an infinite constant.
    """
    if not (isinstance(division, Binary) and division.op == "/" and is_sum(division.left)):
        return None
    constant = literal_value(division.right)
    if constant is None:
        return None
    if constant == 0:
        return Refusal("needs-nonzero", "the sum is divided by the constant 0")
    if has_infinity(division.left):
        return Refusal("needs-finite", "the sum has an infinite constant")
    quotients = [Term(term.negative, _quotient(term.expr, division.right)) for term in terms_of(division.left)]
    return verified(division, Term(False, sum_of(quotients)))


def _quotient(term: Expr, constant: Expr) -> Expr:
    over, under = literal_value(term), literal_value(constant)
    plain = Binary("/", term, constant)
    if over is None or not under or over / under < 0:
        return plain
    value = over / under
    if any(isinstance(e, Real) for e in subexpressions(plain)):
        return exact_literal(value) or plain
    return Int(value.numerator) if value.denominator == 1 else Binary("/", Int(value.numerator), Int(value.denominator))


# ------------------------------------------------------------------------------------------------------------------ the details


def _groups(terms: dict[int, Term]) -> list[tuple[int, ...]]:
    """All terms, then for each factor that several of them share those terms, in order of the factors' first appearance."""
    sharing: dict[tuple[Expr, bool], list[int]] = {}
    for position, term in terms.items():
        for key in dict.fromkeys((f.base, f.power < 0) for f in product_of(term.expr).factors):
            if key != (Int(1), False):
                sharing.setdefault(key, []).append(position)
    groups = dict.fromkeys([tuple(terms), *map(tuple, sharing.values())])
    return [group for group in groups if len(group) > 1]


def _terms(chain: Expr, pinned: bool) -> dict[int, Term]:
    """The terms that may be regrouped, by position."""
    return {k: term for k, term in enumerate(terms_of(chain)) if k or not pinned}


def _divisions(expr: Expr) -> Iterator[tuple[tuple[int, ...], Expr]]:
    for path, node in paths_in(expr):
        if isinstance(node, Binary) and node.op == "/" and is_sum(node.left):
            yield path, node
