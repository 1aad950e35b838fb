"""Which loops of a nest the vectorised walk may take all at once: a syntactic test, exact where it says yes.

A set S of a nest's loops is *independent* when two points that differ in S never touch the same element of a tensor that the nest
writes. The test asks each written tensor for subscripts that give S away: positions at which every access to the tensor, in all
items of the nest, has the same expression, over axes of S and axes that are fixed meanwhile, such that together they determine S.
Then the iterations over S share nothing, and running the body for all of them in lockstep is the sequential meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from leir.interpreter.state import PreparedEquation, PreparedNest
from leir.ir import Binary, Expr, Index, Int, Unary, is_index_arithmetic, subexpressions

_LARGEST_TABLE = 1 << 23
"""Points up to which an index map is tabulated to see whether it is injective."""


@lru_cache(maxsize=1 << 16)
def axes_of(expr: Expr) -> frozenset[int]:
    """The axes that occur in ``expr``."""
    return frozenset(e.axis for e in subexpressions(expr) if isinstance(e, Index))


def equations_below(nest: PreparedNest) -> Iterator[PreparedEquation]:
    """The equations of ``nest`` in program order."""
    for item in nest.body:
        if isinstance(item, PreparedNest):
            yield from equations_below(item)
        else:
            yield item


def independent_axes(nest: PreparedNest, extents: Sequence[int]) -> tuple[int, ...]:
    """Axes of ``nest`` whose iterations share no written element, while axes of outer nests and own axes before the first of
    them are fixed. ``extents`` are those of all axes on the path to the body, own ones included."""
    own = range(nest.first, nest.first + len(nest.extents))
    common = _common_subscripts(nest)
    chosen = [axis for axis in own if extents[axis] > 1]
    while chosen:
        fixed = frozenset(range(chosen[0])) | {axis for axis in own if extents[axis] == 1}
        doubtful = _undetermined(common, chosen, fixed, extents)
        if not doubtful:
            break
        chosen = [axis for axis in chosen if axis not in doubtful]
    return tuple(chosen)


def _common_subscripts(nest: PreparedNest) -> list[tuple[Expr, ...]]:
    """For each tensor written in ``nest``, the subscripts that all its accesses there agree on."""
    written = {equation.target.tensor.name for equation in equations_below(nest)}
    agreed: dict[str, list[Expr | None]] = {}
    for equation in equations_below(nest):
        for access in (equation.target, *equation.reads):
            name = access.tensor.name
            if name in written:
                seen = agreed.setdefault(name, list(access.subscripts))
                agreed[name] = [a if a is b else None for a, b in zip(seen, access.subscripts, strict=True)]
    return [tuple(s for s in agreed[name] if s is not None and is_index_arithmetic(s)) for name in sorted(agreed)]


def _undetermined(
    common: list[tuple[Expr, ...]], chosen: list[int], fixed: frozenset[int], extents: Sequence[int]
) -> frozenset[int]:
    """Some of ``chosen`` that a written tensor's common subscripts do not determine; empty when they determine all."""
    allowed = fixed.union(chosen)
    for subscripts in common:
        usable = [s for s in subscripts if axes_of(s) <= allowed]
        shown = frozenset().union(*map(axes_of, usable))
        if missing := frozenset(chosen) - shown:
            return missing
        for group in _groups(usable, frozenset(chosen)):
            axes = sorted(frozenset().union(*map(axes_of, group)).intersection(chosen))
            if not _determines(tuple(group), tuple(axes), tuple(extents)):
                return frozenset(axes[-1:])
    return frozenset()


def _groups(subscripts: Iterable[Expr], chosen: frozenset[int]) -> list[list[Expr]]:
    """``subscripts`` by the chosen axes that they share, directly or through others; those without any are left out."""
    groups: list[tuple[frozenset[int], list[Expr]]] = []
    for subscript in subscripts:
        axes = axes_of(subscript) & chosen
        if not axes:
            continue
        touching = [g for g in groups if g[0] & axes]
        groups = [g for g in groups if not g[0] & axes]
        groups.append((axes.union(*(g[0] for g in touching)), [*(s for g in touching for s in g[1]), subscript]))
    return [members for _, members in groups]


@lru_cache(maxsize=4096)
def _determines(subscripts: tuple[Expr, ...], axes: tuple[int, ...], extents: tuple[int, ...]) -> bool:
    """Whether ``subscripts`` take different values at any two points that differ in ``axes`` and agree elsewhere."""
    if any(set(axes) <= axes_of(s) and _is_mixed_radix(s, axes, extents) for s in subscripts):
        return True
    size = prod(extents[axis] for axis in axes)
    if size > _LARGEST_TABLE or any(not axes_of(s).issubset(axes) for s in subscripts):
        return False
    grid = np.indices(tuple(extents[axis] for axis in axes)).reshape(len(axes), -1)
    values = dict(zip(axes, grid, strict=True))
    key: Any = 0
    span = 1
    for subscript in subscripts:
        column = np.broadcast_to(_tabulated(subscript, values), size)
        low, width = int(column.min()), int(column.max()) - int(column.min()) + 1
        span *= width
        if span >= 1 << 62:
            return False
        key = key * width + (column - low)
    if span > 8 * size:
        return np.unique(key).size == size
    hit = np.zeros(span, np.bool_)
    hit[key] = True
    return int(np.count_nonzero(hit)) == size


def _tabulated(expr: Expr, values: dict[int, Any]) -> Any:
    match expr:
        case Int():
            return expr.value
        case Index():
            return values[expr.axis]
        case Unary():
            return -_tabulated(expr.operand, values)
        case Binary():
            left, right = _tabulated(expr.left, values), _tabulated(expr.right, values)
            return _INDEX_OPERATIONS[expr.op](left, right)
    raise AssertionError(expr)


_INDEX_OPERATIONS: dict[str, Any] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "//": np.floor_divide,
    "%": np.remainder,
}


def _is_mixed_radix(expr: Expr, axes: Collection[int], extents: Sequence[int]) -> bool:
    """Whether ``expr`` is a sum over ``axes`` in which every coefficient exceeds the reach of the smaller ones together."""
    coefficients = _linear(expr, frozenset(axes))
    if coefficients is None:
        return False
    reach = 0
    for weight, extent in sorted((abs(coefficients.get(axis, 0)), extents[axis]) for axis in axes):
        if weight <= reach:
            return False
        reach += weight * (extent - 1)
    return True


def _linear(expr: Expr, axes: frozenset[int]) -> dict[int, int] | None:
    """The coefficients of ``axes`` in ``expr``, or None where it is not linear in them. Other axes may occur anyhow."""
    if not axes_of(expr) & axes:
        return {}
    match expr:
        case Index():
            return {expr.axis: 1}
        case Unary():
            return _scaled(_linear(expr.operand, axes), -1)
        case Binary(op="+" | "-"):
            left, right = _linear(expr.left, axes), _scaled(_linear(expr.right, axes), 1 if expr.op == "+" else -1)
            if left is None or right is None:
                return None
            return {axis: left.get(axis, 0) + right.get(axis, 0) for axis in left.keys() | right.keys()}
        case Binary(op="*", left=Int(value=factor)):
            return _scaled(_linear(expr.right, axes), factor)
        case Binary(op="*", right=Int(value=factor)):
            return _scaled(_linear(expr.left, axes), factor)
        case _:
            return None


def _scaled(coefficients: dict[int, int] | None, factor: int) -> dict[int, int] | None:
    return None if coefficients is None else {axis: factor * c for axis, c in coefficients.items()}
