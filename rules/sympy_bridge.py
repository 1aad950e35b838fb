"""The one door to sympy: scalar expressions go in as trees or polynomials, and come back as what LEIR can print.

What passes through is a *shape* (`rules.mathematics.shape`): an expression whose leaves are numbers and ``Index(k)`` placeholders,
so that terms which differ only in names share one sympy call. Placeholder k is the sympy symbol ``s<k>``.

sympy evaluates, sorts and merges unless it is told not to. Terms therefore enter unevaluated, and the round trip is the identity:
``from_sympy(to_sympy(e)) is e``. A literal with a point enters as an opaque symbol that is called like its text, so ``1e-05``,
``inf``, and the difference between ``1`` and ``1.0`` survive. Where values count, it is the exact rational number that it is. What
is computed (`factor_list`) crosses as exponents and coefficients, whose order does not depend on sympy's sorting or on
PYTHONHASHSEED.

Importing this module loads sympy (about 0.3 s), so its callers import it inside a function.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import isinf
from typing import Any, TypeAlias

import sympy

from leir.ir import Binary, Call, Expr, Index, Int, Real, Unary, subexpressions

Exponents: TypeAlias = tuple[int, ...]
Polynomial: TypeAlias = Mapping[Exponents, Fraction]


def to_sympy(shape: Expr) -> Any:
    """``shape`` as an unevaluated sympy tree, one sympy node per operation.

    Raises ValueError for a node that has no sympy meaning: the caller abstracts those first.
    """
    match shape:
        case Index():
            return sympy.Symbol(f"s{shape.axis}")
        case Int():
            return sympy.Integer(shape.value)
        case Real():
            return sympy.Symbol(repr(shape.value))
        case Unary(op="-"):  # x*(-1); a subtraction is (-1)*x, so that the two come back as they were
            return sympy.Mul(to_sympy(shape.operand), sympy.S.NegativeOne, evaluate=False)
        case Binary(op="+"):
            return sympy.Add(to_sympy(shape.left), to_sympy(shape.right), evaluate=False)
        case Binary(op="-"):
            negated = sympy.Mul(sympy.S.NegativeOne, to_sympy(shape.right), evaluate=False)
            return sympy.Add(to_sympy(shape.left), negated, evaluate=False)
        case Binary(op="*"):
            return sympy.Mul(to_sympy(shape.left), to_sympy(shape.right), evaluate=False)
        case Binary(op="/"):
            inverse = sympy.Pow(to_sympy(shape.right), sympy.S.NegativeOne, evaluate=False)
            return sympy.Mul(to_sympy(shape.left), inverse, evaluate=False)
        case Binary(op="**", right=Int()):
            return sympy.Pow(to_sympy(shape.left), to_sympy(shape.right), evaluate=False)
    raise ValueError(f"{shape!r} has no sympy meaning")


def from_sympy(tree: Any) -> Expr:
    """The inverse of `to_sympy`. Raises ValueError for a tree of another form."""
    match tree:
        case sympy.Symbol(name=str(name)):
            return Index(int(name[1:])) if name.startswith("s") else Real(float(name))
        case sympy.Integer() if tree >= 0:
            return Int(int(tree))
        case sympy.Add(args=(left, sympy.Mul(args=(sympy.S.NegativeOne, right)))):
            return Binary("-", from_sympy(left), from_sympy(right))
        case sympy.Add(args=(left, right)):
            return Binary("+", from_sympy(left), from_sympy(right))
        case sympy.Mul(args=(operand, sympy.S.NegativeOne)):
            return Unary("-", from_sympy(operand))
        case sympy.Mul(args=(left, sympy.Pow(args=(right, sympy.S.NegativeOne)))):
            return Binary("/", from_sympy(left), from_sympy(right))
        case sympy.Mul(args=(left, right)):
            return Binary("*", from_sympy(left), from_sympy(right))
        case sympy.Pow(args=(base, sympy.Integer() as exponent)):
            return Binary("**", from_sympy(base), from_sympy(exponent))
    raise ValueError(f"{tree!r} was not made by to_sympy")


def factor_list(polynomial: Polynomial, symbols: int) -> tuple[Fraction, list[tuple[dict[Exponents, Fraction], int]]]:
    """``polynomial`` in ``symbols`` symbols as a number times irreducible polynomials with their multiplicities, over the
    rationals. Each irreducible polynomial has integer coefficients without a common divisor."""
    generators = sympy.symbols(f"s0:{symbols}")
    terms = {exponents: _rational(value) for exponents, value in polynomial.items()}
    coefficient, factors = sympy.Poly.from_dict(terms, *generators, domain="QQ").factor_list()
    read = [({e: _fraction(c) for e, c in factor.terms()}, multiplicity) for factor, multiplicity in factors]
    return _fraction(coefficient), read


def difference_expands_to_zero(before: Expr, after: Expr) -> bool:
    """Whether sympy's `expand` takes ``before - after`` to 0; it splits the exponential of a sum.

    Literals count as the exact rationals that they are. A division by what is not a number counts as a product with an opaque
    reciprocal, so the answer cannot rest on cancelling something that might be zero. No divisor may be identically zero.
    """
    encode = _Evaluated()
    return bool(sympy.expand(encode(before) - encode(after)) == 0)


class _Evaluated:
    """From shapes to evaluated sympy expressions; equal divisors share one reciprocal symbol."""

    def __init__(self) -> None:
        self.reciprocals: dict[Expr, Any] = {}

    def __call__(self, shape: Expr) -> Any:
        match shape:
            case Index():
                return sympy.Symbol(f"s{shape.axis}")
            case Int():
                return sympy.Integer(shape.value)
            case Real() if not isinf(shape.value):
                return _rational(Fraction(shape.value))
            case Unary(op="-"):
                return -self(shape.operand)
            case Binary(op="/"):
                return self(shape.left) * self.reciprocal(shape.right)
            case Binary(op="**", right=Int(value=exponent)):
                return self(shape.left) ** exponent
            case Binary(op="**", right=Unary(op="-", operand=Int(value=exponent))):
                return self.reciprocal(shape.left) ** exponent
            case Binary(op="+"):
                return self(shape.left) + self(shape.right)
            case Binary(op="-"):
                return self(shape.left) - self(shape.right)
            case Binary(op="*"):
                return self(shape.left) * self(shape.right)
            case Call(fn="exp", args=(exponent,)):
                return sympy.exp(self(exponent))
        raise ValueError(f"{shape!r} has no sympy meaning")

    def reciprocal(self, divisor: Expr) -> Any:
        if not any(isinstance(e, Index) for e in subexpressions(divisor)):
            return 1 / self(divisor)  # a number, and the caller knows that it is not zero
        match divisor:
            case Unary(op="-"):
                return -self.reciprocal(divisor.operand)
            case Binary(op="*"):
                return self.reciprocal(divisor.left) * self.reciprocal(divisor.right)
            case Binary(op="**", right=Int(value=exponent)):
                return self.reciprocal(divisor.left) ** exponent
            case Call(fn="exp"):  # never zero
                return 1 / self(divisor)
        return self.reciprocals.setdefault(divisor, sympy.Symbol(f"r{len(self.reciprocals)}"))


def _rational(value: Fraction) -> Any:
    return sympy.Rational(value.numerator, value.denominator)


def _fraction(value: Any) -> Fraction:
    return Fraction(int(value.p), int(value.q))
