"""Syntactic answers about which elements an access reaches: the fast path before isl is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from leir.ir import Access, Binary, Expr, Index, Int, Unary
from leir.shapes import Interval, ShapeError, interval


@lru_cache(maxsize=50_000)
def reach(expr: Expr, extents: tuple[int, ...]) -> Interval | None:
    """Bounds on index arithmetic, or None where it holds an access or may divide by zero."""
    try:
        return interval(expr, extents)
    except ShapeError:
        return None


@lru_cache(maxsize=50_000)
def linear(expr: Expr) -> tuple[int, Mapping[int, int]] | None:
    """The constant and the nonzero coefficients of the axes, or None where ``expr`` is not linear."""
    match expr:
        case Int():
            return expr.value, {}
        case Index():
            return 0, {expr.axis: 1}
        case Unary(op="-"):
            inner = linear(expr.operand)
            return None if inner is None else _scaled(inner, -1)
        case Binary(op="+" | "-"):
            left, right = linear(expr.left), linear(expr.right)
            if left is None or right is None:
                return None
            right = right if expr.op == "+" else _scaled(right, -1)
            total = dict(left[1])
            for axis, weight in right[1].items():
                total[axis] = total.get(axis, 0) + weight
            return left[0] + right[0], {axis: weight for axis, weight in total.items() if weight}
        case Binary(op="*"):
            left, right = linear(expr.left), linear(expr.right)
            if left is None or right is None:
                return None
            if not left[1]:
                return _scaled(right, left[0])
            return _scaled(left, right[0]) if not right[1] else None
        case _:
            return None


def _scaled(form: tuple[int, Mapping[int, int]], factor: int) -> tuple[int, Mapping[int, int]]:
    return form[0] * factor, {axis: weight * factor for axis, weight in form[1].items() if factor}


@lru_cache(maxsize=50_000)
def ranges(access: Access, extents: tuple[int, ...]) -> tuple[Interval, ...] | None:
    """Bounds on every subscript, or None where one has none."""
    found = tuple(reach(s, extents) for s in access.subscripts)
    return None if any(r is None for r in found) else found  # type: ignore[return-value]


@lru_cache(maxsize=50_000)
def filled_box(subscripts: tuple[Expr, ...], extents: tuple[int, ...]) -> tuple[Interval, ...] | None:
    """The box of which the subscripts take every point and no other: each is a sum that leaves no gap, over axes of its own.
    None where they do not."""
    seen: set[int] = set()
    box: list[Interval] = []
    for subscript in subscripts:
        form = linear(subscript)
        if form is None or not seen.isdisjoint(form[1]):
            return None
        seen.update(form[1])
        low = high = form[0]
        for weight, size in sorted(((weight, extents[axis]) for axis, weight in form[1].items()), key=lambda term: abs(term[0])):
            if size > 1 and abs(weight) > high - low + 1:
                return None
            low += min(weight, 0) * (size - 1)
            high += max(weight, 0) * (size - 1)
        box.append((low, high))
    return tuple(box)


def within(inner: Sequence[Interval], outer: Sequence[Interval]) -> bool:
    """Whether a box lies inside another of the same rank."""
    return all(low <= a and b <= high for (a, b), (low, high) in zip(inner, outer, strict=True))


def clipped(box: Sequence[Interval], shape: Sequence[int]) -> tuple[Interval, ...] | None:
    """The part of a box inside a shape, None if there is none."""
    cut = tuple((max(low, 0), min(high, size - 1)) for (low, high), size in zip(box, shape, strict=True))
    return None if any(low > high for low, high in cut) else cut


def axes_of(expr: Expr) -> frozenset[int]:
    """The axes that occur in index arithmetic; see `linear` for their weights."""
    match expr:
        case Index():
            return frozenset((expr.axis,))
        case Unary():
            return axes_of(expr.operand)
        case Binary():
            return axes_of(expr.left) | axes_of(expr.right)
        case Access():
            return frozenset[int]().union(*map(axes_of, expr.subscripts))
        case _:
            return frozenset()
