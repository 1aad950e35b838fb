"""Composition of access maps: subscripts as sums of scaled terms, kept in least form by what is known of the extents.

A view of a view of a tensor reads it through one map. Composing two maps substitutes the outer one's subscripts into the inner
one's, and the laws of mixed-radix numbers remove what cancels: with ``0<=c<6``, ``(a*6+c)//12`` is ``a//2`` and ``(a*6+c)%12`` is
``a%2*6+c``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from leir.ir import Binary, Expr, Index, Int, Unary, children, is_index_arithmetic, with_children
from leir.shapes import Interval, interval


def compose(expr: Expr, env: Sequence[Expr], extents: Sequence[int]) -> Expr:
    """``expr`` with axis ``k`` replaced by ``env[k]``, and its index arithmetic in least form.

    ``env`` is written in axes of its own, where axis ``k`` ranges over ``[0, extents[k])``.
    """
    if is_index_arithmetic(expr):
        return _written(_sum_of(expr, env, extents))
    parts = children(expr)
    return with_children(expr, tuple(compose(part, env, extents) for part in parts)) if parts else expr


@dataclass(frozen=True, slots=True)
class _Sum:
    """``constant`` plus terms of a factor each; the terms are indices, quotients and remainders, in the order of the text."""

    terms: dict[Expr, int]
    constant: int = 0

    def __add__(self, other: _Sum) -> _Sum:
        terms = dict(self.terms)
        for term, factor in other.terms.items():
            terms[term] = terms.get(term, 0) + factor
        return _Sum({term: factor for term, factor in terms.items() if factor}, self.constant + other.constant)

    def scaled(self, factor: int) -> _Sum:
        return _Sum({term: f * factor for term, f in self.terms.items()} if factor else {}, self.constant * factor)

    def divided(self, divisor: int) -> _Sum:
        """The quotient, where every factor and the constant are multiples of ``divisor``."""
        return _Sum({term: f // divisor for term, f in self.terms.items()}, self.constant // divisor)

    def split(self, divisor: int) -> tuple[_Sum, _Sum]:
        """The part that ``divisor`` divides, and the rest, whose constant is in ``[0, divisor)``."""
        whole = {term: f for term, f in self.terms.items() if f % divisor == 0}
        rest = {term: f for term, f in self.terms.items() if f % divisor}
        return _Sum(whole, self.constant - self.constant % divisor), _Sum(rest, self.constant % divisor)

    def bounds(self, extents: Sequence[int]) -> Interval:
        low = high = self.constant
        for term, factor in self.terms.items():
            ends = [factor * end for end in interval(term, extents)]
            low, high = low + min(ends), high + max(ends)
        return low, high


def _sum_of(expr: Expr, env: Sequence[Expr] | None, extents: Sequence[int]) -> _Sum:
    """``expr`` as a sum; without ``env`` its axes stand for themselves."""
    match expr:
        case Int():
            return _Sum({}, expr.value)
        case Index() if env is not None:
            return _sum_of(env[expr.axis], None, extents)
        case Index():
            return _Sum({expr: 1}) if extents[expr.axis] > 1 else _Sum({})
        case Unary():
            return _sum_of(expr.operand, env, extents).scaled(-1)
        case Binary(op="+"):
            return _joined(_sum_of(expr.left, env, extents) + _sum_of(expr.right, env, extents), extents)
        case Binary(op="-"):
            return _joined(_sum_of(expr.left, env, extents) + _sum_of(expr.right, env, extents).scaled(-1), extents)
        case Binary():
            left, right = _sum_of(expr.left, env, extents), _sum_of(expr.right, env, extents)
            if expr.op == "*" and not left.terms:
                left, right = right, left
            if not right.terms and expr.op == "*":
                return left.scaled(right.constant)
            if not right.terms and right.constant > 0:
                return (_quotient if expr.op == "//" else _remainder)(left, right.constant, extents)
            return _Sum({Binary(expr.op, _written(left), _written(right)): 1})
    raise AssertionError(expr)


def _joined(total: _Sum, extents: Sequence[int]) -> _Sum:
    """``total`` with neighbouring digits of one number put together: ``x//6*6+x%6`` is ``x``."""
    for upper, factor in total.terms.items():
        number, stride, radix = _digit(upper)
        for lower, scale in total.terms.items():
            same, low_stride, low_radix = _digit(lower)
            if same is number and low_radix and stride == low_stride * low_radix and factor == scale * low_radix:
                rest = _Sum({term: f for term, f in total.terms.items() if term not in (upper, lower)}, total.constant)
                digit = _quotient(_sum_of(number, None, extents), low_stride, extents)
                if radix:
                    digit = _remainder(digit, radix * low_radix, extents)
                return _joined(digit.scaled(scale) + rest, extents)
    return total


def _digit(term: Expr) -> tuple[Expr, int, int | None]:
    """(x, S, E) for ``x//S%E``, where E is None for ``x//S``, and S is 1 for ``x%E`` and for any other x."""
    match term:
        case Binary(op="%", left=Binary(op="//", left=number, right=Int(value=stride)), right=Int(value=radix)):
            return number, stride, radix
        case Binary(op="%", left=number, right=Int(value=radix)):
            return number, 1, radix
        case Binary(op="//", left=number, right=Int(value=stride)):
            return number, stride, None
    return term, 1, None


def _quotient(total: _Sum, divisor: int, extents: Sequence[int]) -> _Sum:
    whole, rest = total.split(divisor)
    exact = whole.divided(divisor)
    low, high = rest.bounds(extents)
    if low // divisor == high // divisor:
        return exact + _Sum({}, low // divisor)
    scale, upper = _upper_digits(rest, divisor, extents)
    if scale > 1:
        return exact + _quotient(upper.divided(scale), divisor // scale, extents)
    match list(rest.terms.items()):
        case [(Binary(op="//", left=inner, right=Int(value=first)), 1)] if rest.constant == 0:
            return exact + _Sum({Binary("//", inner, Int(first * divisor)): 1})
        case [(Binary(op="%", left=inner, right=Int(value=radix)), 1)] if rest.constant == 0 and radix % divisor == 0:
            lower = _quotient(_sum_of(inner, None, extents), divisor, extents)
            return exact + _remainder(lower, radix // divisor, extents)
    return exact + _Sum({Binary("//", _written(rest), Int(divisor)): 1})


def _remainder(total: _Sum, divisor: int, extents: Sequence[int]) -> _Sum:
    _, rest = total.split(divisor)
    low, high = rest.bounds(extents)
    if low // divisor == high // divisor:
        return rest + _Sum({}, -(low // divisor) * divisor)
    scale, upper = _upper_digits(rest, divisor, extents)
    if scale > 1:
        return _remainder(upper.divided(scale), divisor // scale, extents).scaled(scale) + rest + upper.scaled(-1)
    match list(rest.terms.items()):
        case [(Binary(op="%", left=inner, right=Int(value=radix)), 1)] if rest.constant == 0 and radix % divisor == 0:
            return _remainder(_sum_of(inner, None, extents), divisor, extents)
    return _Sum({Binary("%", _written(rest), Int(divisor)): 1})


def _upper_digits(total: _Sum, divisor: int, extents: Sequence[int]) -> tuple[int, _Sum]:
    """The greatest common stride of ``divisor`` and some terms below which the others stay, and the sum of those terms."""
    for scale in sorted({gcd(factor, divisor) for factor in total.terms.values()}, reverse=True):
        upper, lower = total.split(scale)
        low, high = lower.bounds(extents)
        if low >= 0 and high < scale:
            return scale, upper
    return 1, total


def _written(total: _Sum) -> Expr:
    """The sum as an expression: terms in order, the constant last, no leading minus where a later term is positive."""
    parts = [(factor, term) for term, factor in total.terms.items()]
    positive = [part for part in parts if part[0] > 0]
    negative = [part for part in parts if part[0] < 0]
    written: Expr | None = None
    for factor, term in positive:
        scaled = _scaled(term, factor)
        written = scaled if written is None else Binary("+", written, scaled)
    if total.constant > 0 or (written is None and (total.constant == 0 or negative)):
        constant: Expr = Int(total.constant) if total.constant >= 0 else Unary("-", Int(-total.constant))
        written = constant if written is None else Binary("+", written, constant)
    elif total.constant < 0:
        constant = Int(-total.constant)
        written = Unary("-", constant) if written is None else Binary("-", written, constant)
    assert written is not None
    for factor, term in negative:
        written = Binary("-", written, _scaled(term, -factor))
    return written


def _scaled(term: Expr, factor: int) -> Expr:
    return term if factor == 1 else Binary("*", term, Int(factor))
