"""Shapes of temporaries, and the interval arithmetic of subscripts behind them (leir.md, section 2).

A temporary's text gives its dtype only; its shape is what the subscripts that write it can reach. Everything here works on the
flat form, where an axis is a loop and ``Index(k)`` ranges over ``[0, extent)`` of the k-th loop along the path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from leir.ir import Access, Binary, Equation, Expr, Index, Int, Nest, Signature, Unary

Interval: TypeAlias = tuple[int, int]
"""The least and the greatest value, both included."""


class ShapeError(ValueError):
    """A target has no shape: an access inside its subscript, a divisor that may be zero, or two ranks for one tensor."""


def interval(expr: Expr, extents: Sequence[int]) -> Interval:
    """Bounds on ``expr`` where axis k ranges over ``[0, extents[k])``. Exact where no axis occurs twice.

    Raises ShapeError where ``expr`` is no arithmetic of indices and integers, or divides by a range that holds zero.
    """
    match expr:
        case Int():
            return expr.value, expr.value
        case Index():
            return 0, extents[expr.axis] - 1
        case Unary(op="-"):
            low, high = interval(expr.operand, extents)
            return -high, -low
        case Binary(op="+" | "-" | "*" | "//" | "%"):
            return _combine(expr.op, interval(expr.left, extents), interval(expr.right, extents))
        case _:
            raise ShapeError("a target's subscript holds more than loop indices and integers")


def _combine(op: str, left: Interval, right: Interval) -> Interval:
    if op == "+":
        return left[0] + right[0], left[1] + right[1]
    if op == "-":
        return left[0] - right[1], left[1] - right[0]
    if op == "*":
        products = [x * y for x in left for y in right]
        return min(products), max(products)
    if right[0] <= 0 <= right[1]:
        raise ShapeError(f"the divisor of {op} may be zero")
    quotients = [x // y for x in left for y in right]
    if op == "//":
        return min(quotients), max(quotients)
    if right[0] == right[1] and min(quotients) == max(quotients):  # one multiple of a constant divisor: no wrap inside
        return left[0] % right[0], left[1] % right[0]
    if right[0] > 0:
        return 0, min(left[1], right[1] - 1) if left[0] >= 0 else right[1] - 1
    return right[0] + 1, 0


def walk_equations(
    nests: Sequence[Nest], path: tuple[int, ...] = (), extents: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], Equation]]:
    """Every equation in program order, as (path of item positions, extents of the axes that it sees, equation)."""
    for position, nest in enumerate(nests):
        yield from _equations_of(nest, (*path, position), extents)


def _equations_of(
    nest: Nest, path: tuple[int, ...], outer: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], Equation]]:
    extents = outer + nest.axes
    for position, item in enumerate(nest.body):
        if isinstance(item, Equation):
            yield (*path, position), extents, item
        else:
            yield from _equations_of(item, (*path, position), extents)


def temporary_shapes(signature: Signature, flat_nests: Sequence[Nest]) -> dict[str, tuple[int, ...]]:
    """The shape of every temporary that is written, by name, in order of first write.

    Dimension d of a tensor is one more than the greatest value that subscript d takes where the tensor is written. A subscript
    that can be negative does not show here: bounds are a matter of their own.
    Raises ShapeError, naming the tensor, where a written subscript has no interval or two writes differ in rank.
    """
    known = {tensor.name for tensor in signature.tensors}
    shapes: dict[str, tuple[int, ...]] = {}
    for _, extents, equation in walk_equations(flat_nests):
        target: Access = equation.target
        name = target.tensor.name
        if name in known:
            continue
        try:
            reach = tuple(max(interval(s, extents)[1] + 1, 0) for s in target.subscripts)
        except ShapeError as problem:
            raise ShapeError(f"{name}: {problem}") from None
        seen = shapes.get(name, reach)
        if len(seen) != len(reach):
            raise ShapeError(f"{name}: written with {len(seen)} subscripts and with {len(reach)}")
        shapes[name] = tuple(map(max, seen, reach))
    return shapes
