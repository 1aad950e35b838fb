"""The digit algebra: how logical axes are cut into digits and digits are joined into loops (leir.md, section 4).

An axis of extent N is written in a mixed radix: digits whose extents multiply to N, each stride the product of the smaller extents.
A loop walks a list of digits, outermost first, like the wheels of a counter. Split, fusion and reorder of loops are operations on
these lists; none of them touches a body, so none can get an index wrong. Everything that knows this arithmetic is in this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from leir.ir import Binary, Digit, Expr, Int, Loop, Nest


def whole(axis: int, extent: int) -> tuple[Digit, ...]:
    """The digit list of a loop that walks all of an axis."""
    return (Digit(axis, extent, 1),)


def extent(digits: Iterable[Digit]) -> int:
    return prod(d.extent for d in digits)


def split(digits: tuple[Digit, ...], factor: int) -> tuple[tuple[Digit, ...], tuple[Digit, ...]] | None:
    """Cut a loop into an outer and an inner one, the inner of extent ``factor``; None if ``factor`` falls on no digit boundary.

    The inner part is a product of trailing digits times a divisor of the next one, so ``outer * factor + inner`` counts
    exactly as the loop did.
    """
    inner: tuple[Digit, ...] = ()
    rest = factor
    for position in range(len(digits) - 1, -1, -1):
        digit = digits[position]
        if rest == 1:
            return digits[: position + 1], inner
        if rest % digit.extent == 0:
            inner = (digit, *inner)
            rest //= digit.extent
        elif digit.extent % rest == 0:
            outer = Digit(digit.axis, digit.extent // rest, digit.stride * rest)
            return (*digits[:position], outer), (Digit(digit.axis, rest, digit.stride), *inner)
        else:
            return None
    return ((), inner) if rest == 1 else None


def fuse(outer: tuple[Digit, ...], inner: tuple[Digit, ...]) -> tuple[Digit, ...]:
    """Join two neighbouring loops. Neighbouring digits of one axis become one digit again: fusing what a split made
    gives the loop that was split."""
    joined: list[Digit] = []
    for digit in (*outer, *inner):
        last = joined[-1] if joined else None
        if last is not None and last.axis == digit.axis and last.stride == digit.stride * digit.extent:
            joined[-1] = Digit(digit.axis, last.extent * digit.extent, digit.stride)
        else:
            joined.append(digit)
    return tuple(joined)


def split_points(digits: tuple[Digit, ...]) -> tuple[int, ...]:
    """Every proper inner extent at which `split` cuts the loop, ascending."""
    points: set[int] = set()
    trailing = 1
    for digit in reversed(digits):
        points.update(trailing * d for d in divisors(digit.extent))
        trailing *= digit.extent
    return tuple(sorted(points - {1, trailing}))


def divisors(n: int) -> tuple[int, ...]:
    """All divisors of ``n``, ascending, 1 and ``n`` included."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return tuple(small + [n // d for d in reversed(small) if d * d != n])


def digits_of(axis: int, schedule: Sequence[Loop]) -> list[Digit]:
    """The digits of an axis, largest stride first; ties of extent-1 digits in the order of the loops."""
    found = [d for loop in schedule for d in loop.digits if d.axis == axis]
    return sorted(found, key=lambda d: (-d.stride, d.extent != 1))


def partitions(axes: Sequence[int], schedule: Sequence[Loop], first_axis: int) -> bool:
    """Whether the digits of the schedule are exactly a mixed radix of each axis (the invariant of `Nest`)."""
    for offset, size in enumerate(axes):
        stride = 1
        for digit in sorted(digits_of(first_axis + offset, schedule), key=lambda d: (d.stride, d.extent != 1)):
            if digit.stride != stride:
                return False
            stride *= digit.extent
        if stride != size:
            return False
    return all(first_axis <= d.axis < first_axis + len(axes) for loop in schedule for d in loop.digits)


# --------------------------------------------------------------------------------------------------------------- index values


def digit_value(loop: Expr, digits: Sequence[Digit], position: int) -> Expr:
    """The value of one digit of a loop, as an expression of the loop's index: ``k//S%E``, the outermost digit without ``%``."""
    size = extent(digits[position + 1 :])
    value = loop if size == 1 else Binary("//", loop, Int(size))
    return value if position == 0 else Binary("%", value, Int(digits[position].extent))


def axis_values(nest: Nest, loops: Sequence[Expr], first_axis: int) -> list[Expr]:
    """The value of each own axis of ``nest`` as the sum of its digits, larger strides first; ``loops`` are the loops' values."""
    terms: list[list[tuple[Digit, Expr]]] = [[] for _ in nest.axes]
    for loop, value in zip(nest.schedule, loops, strict=True):
        for position, digit in enumerate(loop.digits):
            terms[digit.axis - first_axis].append((digit, digit_value(value, loop.digits, position)))
    sums: list[Expr] = []
    for own in terms:
        own.sort(key=lambda term: (-term[0].stride, term[0].extent != 1))
        total: Expr | None = None
        for digit, value in own:
            scaled = value if digit.stride == 1 else Binary("*", value, Int(digit.stride))
            total = scaled if total is None else Binary("+", total, scaled)
        if total is None:
            raise ValueError("an axis without a digit")
        sums.append(total)
    return sums


def loop_point(loop: Loop, axis_point: Sequence[int]) -> int:
    """The value of a loop at a point of the logical axes (``axis_point[k]`` is the value of axis ``k``)."""
    value = 0
    for digit in loop.digits:
        value = value * digit.extent + axis_point[digit.axis] // digit.stride % digit.extent
    return value


def is_flat(nest: Nest, first_axis: int) -> bool:
    """Whether every loop is one whole axis, in axis order."""
    walked = [loop.digits for loop in nest.schedule]
    return walked == [whole(first_axis + k, size) for k, size in enumerate(nest.axes)]
