"""Which instance of an equation wrote an element: write maps solved for the axes (compute_inline).

A target is solved where its subscripts together spell a mixed radix of its axes: each subscript is a sum of digits of axes with
weights that do not overlap, as in ``T_{i}``, ``T_{i*4+j}``, ``T_{i//4,i%4}``, ``T_{7-i}``, and every axis with more than one value
has all its digits. Then the map is injective by construction, and the solution is index arithmetic over the subscripts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from leir.ir import Access, Binary, Expr, Index, Int, Unary, children
from leir.lift import substitute
from leir.shapes import ShapeError, interval


@dataclass(frozen=True, slots=True, order=True)
class Digit:
    """``axis // stride % extent``."""

    axis: int
    stride: int
    extent: int


@lru_cache(maxsize=50_000)
def inverse(target: Access, extents: tuple[int, ...]) -> tuple[Expr, ...] | None:
    """Each axis as an expression in which ``Index(d)`` stands for subscript ``d`` of ``target``; None where that is not plain."""
    digits: dict[int, list[tuple[Digit, Expr]]] = {k: [] for k in range(len(extents))}
    for number, subscript in enumerate(target.subscripts):
        form = _linear(subscript, extents)
        solved = None if form is None else _digits_of(form, Index(number))
        if solved is None:
            return None
        for digit, value in solved:
            digits[digit.axis].append((digit, value))
    axes = [_assembled(extent, digits[k]) for k, extent in enumerate(extents)]
    return None if any(axis is None for axis in axes) else tuple(axis for axis in axes if axis is not None)


def instance(target: Access, extents: tuple[int, ...], read: Access, around: Sequence[int]) -> tuple[Expr, ...] | None:
    """The axes of the instance that wrote the element of ``read``, over the axes of the reader, whose extents are ``around``.

    A read that looks like the target gives its own terms: of ``T_{i*4+j}`` read as ``T_{h*4+a}``, ``h`` and ``a``.
    """
    solution = inverse(target, extents)
    if solution is None:
        return None
    matched: dict[int, Expr] = {}
    if all(_match(t, r, matched) for t, r in zip(target.subscripts, read.subscripts, strict=True)) and all(
        _stays_inside(matched.get(k), extent, around) for k, extent in enumerate(extents)
    ):
        return tuple(matched.get(k, Int(0)) for k in range(len(extents)))
    return tuple(substitute(axis, read.subscripts) for axis in solution)


def _match(target: Expr, read: Expr, bound: dict[int, Expr]) -> bool:
    """Whether ``read`` is ``target`` with expressions in place of its axes; notes which."""
    if isinstance(target, Index):
        return bound.setdefault(target.axis, read) is read
    ours, theirs = children(target), children(read)
    if not ours or not theirs:
        return target is read
    same = type(target) is type(read) and getattr(target, "op", None) == getattr(read, "op", None) and len(ours) == len(theirs)
    return same and all(_match(a, b, bound) for a, b in zip(ours, theirs, strict=True))


def _stays_inside(value: Expr | None, extent: int, around: Sequence[int]) -> bool:
    if value is None:
        return extent == 1
    try:
        low, high = interval(value, around)
    except ShapeError:
        return False
    return low >= 0 and high < extent


# ------------------------------------------------------------------------------------------------------------- linear forms


@dataclass(frozen=True, slots=True)
class _Form:
    """``constant`` plus weighted digits of axes."""

    constant: int
    terms: tuple[tuple[Digit, int], ...]


def _linear(expr: Expr, extents: tuple[int, ...]) -> _Form | None:
    digit = _digit(expr, extents)
    if digit is not None:
        return _Form(0, ((digit, 1),) if digit.extent > 1 else ())
    match expr:
        case Int():
            return _Form(expr.value, ())
        case Unary(op="-"):
            return _scaled(_linear(expr.operand, extents), -1)
        case Binary(op="+" | "-"):
            left, right = _linear(expr.left, extents), _linear(expr.right, extents)
            right = right if expr.op == "+" else _scaled(right, -1)
            return None if left is None or right is None else _Form(left.constant + right.constant, left.terms + right.terms)
        case Binary(op="*"):
            left, right = _linear(expr.left, extents), _linear(expr.right, extents)
            if left is not None and not left.terms:
                return _scaled(right, left.constant)
            return _scaled(left, right.constant) if right is not None and not right.terms else None
        case _:
            return None


def _scaled(form: _Form | None, factor: int) -> _Form | None:
    if form is None:
        return None
    return _Form(form.constant * factor, tuple((digit, weight * factor) for digit, weight in form.terms) if factor else ())


def _digit(expr: Expr, extents: tuple[int, ...]) -> Digit | None:
    """``i``, ``i//S``, ``i%E`` and ``i//S%E`` as a digit of axis ``i``."""
    match expr:
        case Index(axis=axis):
            return Digit(axis, 1, extents[axis])
        case Binary(op="//", left=Index(axis=axis), right=Int(value=stride)) if stride > 0 and extents[axis] % stride == 0:
            return Digit(axis, stride, extents[axis] // stride)
        case Binary(op="%", left=inner, right=Int(value=extent)) if extent > 0:
            whole = _digit(inner, extents) if not isinstance(inner, Binary) or inner.op == "//" else None
            return Digit(whole.axis, whole.stride, extent) if whole is not None and whole.extent % extent == 0 else None
        case _:
            return None


def _digits_of(form: _Form, subscript: Expr) -> list[tuple[Digit, Expr]] | None:
    """Every digit of a subscript, solved for: the greatest weight first, each weight more than all that is below it adds up to."""
    base = _minus(subscript, form.constant + sum(weight * (digit.extent - 1) for digit, weight in form.terms if weight < 0))
    terms = sorted(form.terms, key=lambda term: -abs(term[1]))
    rest, last = base, 0
    solved: list[tuple[Digit, Expr]] = []
    for position, (digit, weight) in enumerate(terms):
        size = abs(weight)
        if size <= sum(abs(w) * (d.extent - 1) for d, w in terms[position + 1 :]):
            return None
        value = _over(rest, size) if last % size else _over(base, size)
        if last and last % size == 0:
            value = Binary("%", value, Int(last // size))
        solved.append((digit, value if weight > 0 else Binary("-", Int(digit.extent - 1), value)))
        rest, last = Binary("%", rest, Int(size)), size
    return solved


def _over(expr: Expr, divisor: int) -> Expr:
    return expr if divisor == 1 else Binary("//", expr, Int(divisor))


def _minus(expr: Expr, constant: int) -> Expr:
    if constant == 0:
        return expr
    return Binary("-", expr, Int(constant)) if constant > 0 else Binary("+", expr, Int(-constant))


def _assembled(extent: int, digits: Sequence[tuple[Digit, Expr]]) -> Expr | None:
    """An axis as the sum of its digits, larger strides first; None unless they are its whole mixed radix."""
    if extent == 1:
        return Int(0)
    total: Expr | None = None
    above = extent
    for digit, value in sorted(dict(reversed(digits)).items(), key=lambda entry: -entry[0].stride):
        if digit.stride * digit.extent != above:
            return None
        above = digit.stride
        scaled = value if digit.stride == 1 else Binary("*", value, Int(digit.stride))
        total = scaled if total is None else Binary("+", total, scaled)
    return total if above == 1 else None
