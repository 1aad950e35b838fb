"""Bounds on the values of an expression that follow from its operations alone, whatever the tensors hold.

NaN is no concern of a bound: an operation that has it as an operand gives it, on both sides of a rewrite.
"""

from __future__ import annotations

from math import exp, inf, isnan
from typing import TypeAlias

from leir.ir import FLOAT_DTYPES, Binary, Call, Expr, Index, Int, Real, Unary
from rules.mathematics.sites import dtype_of

Range: TypeAlias = tuple[float, float]

EVERYTHING: Range = (-inf, inf)
BOUNDED: dict[str, Range] = {"sigmoid": (0, 1), "tanh": (-1, 1), "erf": (-1, 1), "sin": (-1, 1), "cos": (-1, 1)}
SAFE_EXPONENT = {"f16": 9.0, "bf16": 87.0, "f32": 87.0, "f64": 708.0}
"""Up to this magnitude of ``x``, ``exp(x)`` is a normal finite number."""


def range_of(expr: Expr) -> Range:
    """The least and the greatest value that ``expr`` can have."""
    match expr:
        case Int() | Real():
            return expr.value, expr.value
        case Index():
            return 0, inf
        case Unary(op="-"):
            low, high = range_of(expr.operand)
            return -high, -low
        case Binary(op="+" | "-" | "*"):
            return _combined(expr.op, range_of(expr.left), range_of(expr.right))
        case Call():
            return _call(expr)
    return EVERYTHING


def _combined(op: str, left: Range, right: Range) -> Range:
    if op == "*":
        corners = [a * b for a in left for b in right]
        return EVERYTHING if any(map(isnan, corners)) else (min(corners), max(corners))
    low, high = (right[0], right[1]) if op == "+" else (-right[1], -right[0])
    ends = left[0] + low, left[1] + high
    return EVERYTHING if any(map(isnan, ends)) else ends


def _call(expr: Call) -> Range:
    if expr.fn in BOUNDED:
        return BOUNDED[expr.fn]
    if expr.fn == "if_then_else":
        (a, b), (c, d) = range_of(expr.args[1]), range_of(expr.args[2])
        return min(a, c), max(b, d)
    ranges = [range_of(arg) for arg in expr.args]
    match expr.fn, ranges:
        case ("max" | "min") as fn, [(a, b), (c, d)]:
            return (max(a, c), max(b, d)) if fn == "max" else (min(a, c), min(b, d))
        case "abs", [(a, b)]:
            return max(0, a, -b), max(-a, b)
        case "exp", [(a, b)]:
            return (exp(a) if a < 700 else inf), (exp(b) if b < 700 else inf)
        case cast, [(a, b)] if cast.removeprefix("cast_") in FLOAT_DTYPES and dtype_of(expr.args[0]) in FLOAT_DTYPES:
            return a, b  # from integers it would not hold, they wrap
    return EVERYTHING
