"""A second opinion on an algebraic identity, without sympy: both sides at random points of a large prime field.

Two different rational functions of degree d agree at a random point of a field with p elements with probability at most d/p; p is
2**61 - 1, so a few points leave no room for doubt. Literals are the exact rationals that they are.

``exp`` is a homomorphism from sums to products, and that is all that is used of it: its value is a power of a primitive root, the
exponent counts modulo ``PRIME - 1``. A leaf is an integer below ``PRIME*(PRIME-1)``, so its two remainders are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random

from leir.ir import Binary, Call, Expr, Index, Int, Real, Unary

PRIME = 2**61 - 1
POINTS = 3
ROOT = 37


def agree(before: Expr, after: Expr, leaves: int) -> bool:
    """Whether two shapes over ``leaves`` leaves have the same value at `POINTS` points, fixed once and for all.

    A point where a side divides by zero decides nothing and is replaced; raises ZeroDivisionError if that happens at ten points
    in a row, that is, if a divisor is identically zero.
    """
    rng = Random(61)
    agreed = 0
    undefined = 0
    while agreed < POINTS:
        point = [rng.randrange(PRIME * (PRIME - 1)) for _ in range(leaves)]
        try:
            if value(before, point) != value(after, point):
                return False
        except ZeroDivisionError:
            undefined += 1
            if undefined == 10:
                raise
        else:
            agreed += 1
    return True


def is_defined(shape: Expr, leaves: int) -> bool:
    """Whether no divisor is identically zero."""
    rng = Random(61)
    try:
        value(shape, [rng.randrange(PRIME * (PRIME - 1)) for _ in range(leaves)])
    except ZeroDivisionError:
        return False
    return True


def value(shape: Expr, point: Sequence[int]) -> int:
    """The value of a shape modulo `PRIME`; ``point[k]`` is the value of leaf k.

    Raises ZeroDivisionError for a division by zero, ValueError for a node that is not arithmetic.
    """
    match shape:
        case Index():
            return point[shape.axis] % PRIME
        case Int():
            return shape.value % PRIME
        case Real():
            exact = Fraction(shape.value)
            return exact.numerator * _inverse(exact.denominator) % PRIME
        case Unary(op="-"):
            return -value(shape.operand, point) % PRIME
        case Binary(op="+"):
            return (value(shape.left, point) + value(shape.right, point)) % PRIME
        case Binary(op="-"):
            return (value(shape.left, point) - value(shape.right, point)) % PRIME
        case Binary(op="*"):
            return value(shape.left, point) * value(shape.right, point) % PRIME
        case Binary(op="/"):
            return value(shape.left, point) * _inverse(value(shape.right, point)) % PRIME
        case Binary(op="**", right=Int(value=exponent)):
            return pow(value(shape.left, point), exponent, PRIME)
        case Binary(op="**", right=Unary(op="-", operand=Int(value=exponent))):
            return pow(_inverse(value(shape.left, point)), exponent, PRIME)
        case Call(fn="exp", args=(exponent,)):
            return pow(ROOT, _exponent(exponent, point), PRIME)
    raise ValueError(f"{shape!r} is not arithmetic")


def _exponent(shape: Expr, point: Sequence[int]) -> int:
    """The value of a sum of products of leaves and integers modulo ``PRIME - 1``."""
    match shape:
        case Index():
            return point[shape.axis] % (PRIME - 1)
        case Int():
            return shape.value
        case Unary(op="-"):
            return -_exponent(shape.operand, point) % (PRIME - 1)
        case Binary(op="+"):
            return (_exponent(shape.left, point) + _exponent(shape.right, point)) % (PRIME - 1)
        case Binary(op="-"):
            return (_exponent(shape.left, point) - _exponent(shape.right, point)) % (PRIME - 1)
        case Binary(op="*"):
            return _exponent(shape.left, point) * _exponent(shape.right, point) % (PRIME - 1)
    raise ValueError(f"{shape!r} is no exponent of integers and leaves")


def _inverse(number: int) -> int:
    if number % PRIME == 0:
        raise ZeroDivisionError
    return pow(number, -1, PRIME)
