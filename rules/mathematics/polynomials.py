"""Sums as polynomials with exact coefficients, and factored polynomials as expressions in the order of their source.

The symbols of a polynomial are expressions: leaves, literals with a point (opaque unless folded), sums in parentheses (opaque
unless opened), and the reciprocal of each divisor that is not a number. A reciprocal is a symbol of its own: nothing cancels
against it, so no division appears or disappears.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, inf
from typing import TypeAlias

from leir.ir import Binary, Expr, Int, Real, Unary
from rules.mathematics.sums import Product, Term, is_sum, powers_in, product_of, sum_of, terms_of

Symbol: TypeAlias = tuple[Expr, bool]  # an expression, and whether its reciprocal is meant
Exponents: TypeAlias = tuple[int, ...]
Polynomial: TypeAlias = Mapping[Exponents, Fraction]
Factors: TypeAlias = tuple[Fraction, list[tuple[dict[Exponents, Fraction], int]]]


@dataclass(frozen=True, slots=True)
class Reading:
    """How an expression is read: whether literals with a point are numbers, and whether sums in parentheses are multiplied out."""

    fold: bool = False
    open: bool = False


class Table:
    """The symbols of one group of terms, in order of first appearance."""

    def __init__(self, terms: Sequence[Term], reading: Reading) -> None:
        self.reading = reading
        self.symbols: list[Symbol] = []
        for term in terms:
            self._collect(term.expr)
        self._rank = {symbol: k for k, symbol in enumerate(self.symbols)}

    def _collect(self, expr: Expr) -> None:
        for factor in product_of(expr).factors:
            if self._is_open(factor.base, factor.power):
                for term in terms_of(factor.base):
                    self._collect(term.expr)
            elif self._number(factor.base) is None and (factor.base, factor.power < 0) not in self.symbols:
                self.symbols.append((factor.base, factor.power < 0))

    def _is_open(self, base: Expr, power: int) -> bool:
        return self.reading.open and power > 0 and is_sum(base)

    def _number(self, base: Expr) -> Fraction | None:
        if isinstance(base, Int):
            return Fraction(base.value)
        if isinstance(base, Real) and self.reading.fold and base.value != inf:
            return Fraction(base.value)
        return None

    def polynomial(self, term: Term) -> dict[Exponents, Fraction]:
        """``term``, its sign included. Raises ZeroDivisionError if it divides by a literal zero."""
        product = product_of(term.expr)
        total = {(0,) * len(self.symbols): Fraction(-1 if product.negative != term.negative else 1)}
        for factor in product.factors:
            if (number := self._number(factor.base)) is not None:
                total = {e: c * number**factor.power for e, c in total.items()}
            elif self._is_open(factor.base, factor.power):
                opened = self.sum(terms_of(factor.base))
                for _ in range(factor.power):
                    total = _times(total, opened)
            else:
                place = self._rank[factor.base, factor.power < 0]
                total = {(*e[:place], e[place] + abs(factor.power), *e[place + 1 :]): c for e, c in total.items()}
        return total

    def sum(self, terms: Sequence[Term]) -> dict[Exponents, Fraction]:
        total: dict[Exponents, Fraction] = {}
        for term in terms:
            for exponents, coefficient in self.polynomial(term).items():
                total[exponents] = total.get(exponents, Fraction(0)) + coefficient
        return {e: c for e, c in total.items() if c}


def monomials(terms: Sequence[Term]) -> int:
    """An upper bound for the number of terms after multiplying out, without doing it."""
    return sum(_monomials(product_of(term.expr)) for term in terms)


def _monomials(product: Product) -> int:
    total = 1
    for factor in product.factors:
        if factor.power > 0 and is_sum(factor.base):
            total *= comb(monomials(terms_of(factor.base)) + min(factor.power, 64) - 1, min(factor.power, 64))
    return total


def _times(left: Polynomial, right: Polynomial) -> dict[Exponents, Fraction]:
    total: dict[Exponents, Fraction] = {}
    for e, c in left.items():
        for f, d in right.items():
            exponents = tuple(a + b for a, b in zip(e, f, strict=True))
            total[exponents] = total.get(exponents, Fraction(0)) + c * d
    return {e: c for e, c in total.items() if c}


def divides(small: Exponents, large: Exponents) -> bool:
    return all(a <= b for a, b in zip(small, large, strict=True))


def content(polynomial: Polynomial) -> Exponents:
    """The largest monomial that divides every term."""
    return tuple(min(column) for column in zip(*polynomial, strict=True))


def evidently_irreducible(polynomial: Polynomial) -> bool:
    """Whether a polynomial that no monomial divides is irreducible because some symbol occurs in one term only, to the first power.

    It is then linear in that symbol, and the symbol's coefficient, a monomial, has no divisor in common with the other terms.
    """
    return any(sorted(column)[-2:] in ([1], [0, 1]) for column in zip(*polynomial, strict=True))


class Writer:
    """From a factored polynomial to an expression in the order of the source.

    A number stands first, then symbols in order of first appearance, then sums. The terms of a sum stand in the order of the source
    terms that they come from. A power is written as a product unless the source has a power of that base, or, for floats, the
    base is a sum.
    """

    def __init__(self, table: Table, source: Sequence[Term], integers: bool) -> None:
        self.table = table
        self.integers = integers
        self.source = [exponents for term in source for exponents in table.polynomial(term)]
        self.powers = {base for term in source for base in powers_in(term.expr)}
        self.pointed = table.reading.fold and any(_has_point(term.expr) for term in source)

    def write(self, factors: Factors) -> Term | None:
        """The product as a signed term; None if a coefficient is no number that a literal can show exactly."""
        coefficient, polynomials = factors
        single = [0] * len(self.table.symbols)
        sums: list[tuple[list[tuple[int, list[int], Exponents]], Expr, int]] = []
        for polynomial, power in polynomials:
            if len(polynomial) == 1:
                ((exponents, value),) = polynomial.items()
                single = [a + power * b for a, b in zip(single, exponents, strict=True)]
                coefficient *= value**power
                continue
            cofactor = self._cofactor(polynomials, polynomial)
            places = sorted((self._rank(e, cofactor), [-k for k in e], e) for e in polynomial)
            ranked = [exponents for *_, exponents in places]
            if polynomial[ranked[0]] < 0:
                polynomial = {e: -c for e, c in polynomial.items()}
                coefficient *= (-1) ** power
            terms = [self._monomial(polynomial[e], e) for e in ranked]
            if None in terms:
                return None
            sums.append((places, sum_of([t for t in terms if t]), power))
        sums.sort(key=lambda entry: entry[0])
        return self._product(coefficient, tuple(single), [(expr, power) for _, expr, power in sums])

    def _cofactor(self, polynomials: list[tuple[dict[Exponents, Fraction], int]], chosen: Polynomial) -> Polynomial:
        """The monomials of everything but one copy of ``chosen``."""
        total: Polynomial = {(0,) * len(self.table.symbols): Fraction(1)}
        for polynomial, power in polynomials:
            for _ in range(power - (polynomial is chosen)):
                total = _times(total, polynomial)
        return total

    def _rank(self, exponents: Exponents, cofactor: Polynomial) -> int:
        """The first source term that is ``exponents`` times a term of the cofactor."""
        for position, whole in enumerate(self.source):
            if divides(exponents, whole) and tuple(a - b for a, b in zip(whole, exponents, strict=True)) in cofactor:
                return position
        return len(self.source)

    def _monomial(self, coefficient: Fraction, exponents: Exponents) -> Term | None:
        return self._product(coefficient, exponents, [])

    def _product(self, coefficient: Fraction, exponents: Exponents, sums: list[tuple[Expr, int]]) -> Term | None:
        numerator: list[Expr] = []
        divisors: list[Expr] = []
        for (base, reciprocal), power in zip(self.table.symbols, exponents, strict=True):
            (divisors if reciprocal else numerator).extend(self._power(base, power))
        for base, power in sums:
            numerator.extend(self._power(base, power))
        return signed_product(coefficient, numerator, divisors, self.pointed)

    def _power(self, base: Expr, power: int) -> list[Expr]:
        written = base in self.powers or (is_sum(base) and not self.integers)
        return [Binary("**", base, Int(power))] if power > 1 and written else [base] * power


def signed_product(coefficient: Fraction, numerator: Sequence[Expr], divisors: Sequence[Expr], pointed: bool) -> Term | None:
    """``coefficient*numerator/divisors``, the number first. With ``pointed`` it is written with a point, and the result is None if
    no literal shows it exactly."""
    over, under = list(numerator), list(divisors)
    size = abs(coefficient)
    if pointed:
        if (number := exact_literal(size)) is None:
            return None
        if size != 1 or not over:
            over.insert(0, number)
    else:
        if size.numerator != 1 or not over:
            over.insert(0, Int(size.numerator))
        if size.denominator != 1:
            under.insert(0, Int(size.denominator))
    result = over[0]
    for factor in over[1:]:
        result = Binary("*", result, factor)
    for divisor in under:
        result = Binary("/", result, divisor)
    return Term(coefficient < 0, result)


def exact_literal(value: Fraction) -> Real | None:
    """The literal with a point that is exactly ``value >= 0``, the shortest that reads the same; None if there is none."""
    try:
        nearest = float(value)
    except OverflowError:
        return None
    return Real(nearest) if Fraction(nearest) == value else None


def literal_value(expr: Expr) -> Fraction | None:
    """The exact value of a literal, of its negative, or of a quotient of two.

    None for anything else, for ``inf``, and for a division by zero.
    """
    match expr:
        case Int(value=value):
            return Fraction(value)
        case Real(value=value) if value != inf:
            return Fraction(value)
        case Unary(op="-"):
            inner = literal_value(expr.operand)
            return None if inner is None else -inner
        case Binary(op="/"):
            over, under = literal_value(expr.left), literal_value(expr.right)
            return over / under if over is not None and under else None
    return None


def _has_point(expr: Expr) -> bool:
    """Whether a literal with a point is among the factors or, further in, the terms of ``expr``."""
    return any(
        isinstance(f.base, Real) or (is_sum(f.base) and any(_has_point(t.expr) for t in terms_of(f.base)))
        for f in product_of(expr).factors
    )
