"""What the algebra sees of a scalar expression: numbers, operations, and numbered leaves.

The *shape* of an expression keeps its arithmetic (``+ - * /``, unary minus, powers with a positive literal exponent) and its
literals. Every other maximal subexpression (an access, a call, ``//``, ``%``, a power with another exponent, index arithmetic) is
an opaque value, written ``Index(k)`` for the k-th different one in the order of the text. Two expressions that differ only in what
these values are have one shape, and what is worked out for a shape holds for both. Scalar paths in a shape are those of the
expression.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isinf

from leir.ir import Binary, Expr, Index, Int, Real, Unary, children, is_index_arithmetic, with_children


@dataclass(frozen=True, slots=True)
class Shape:
    """``expr`` over ``Index(0), Index(1), ...``, which stand for ``leaves``."""

    expr: Expr
    leaves: tuple[Expr, ...]


def shape_of(expr: Expr) -> Shape:
    leaves: dict[Expr, Index] = {}

    def visit(node: Expr) -> Expr:
        if is_number(node):
            return node
        if is_arithmetic(node):
            return with_children(node, tuple(visit(child) for child in children(node)))
        return leaves.setdefault(node, Index(len(leaves)))

    return Shape(visit(expr), tuple(leaves))


def restored(shape: Expr, leaves: Sequence[Expr]) -> Expr:
    """An expression over numbered leaves, with the leaves themselves in their places."""
    if isinstance(shape, Index):
        return leaves[shape.axis]
    return with_children(shape, tuple(restored(child, leaves) for child in children(shape)))


def renumbered(shape: Expr, numbers: dict[Expr, Index]) -> Expr:
    """A part of a shape with its leaves numbered by first appearance; ``numbers`` collects old to new."""
    if isinstance(shape, Index):
        return numbers.setdefault(shape, Index(len(numbers)))
    return with_children(shape, tuple(renumbered(child, numbers) for child in children(shape)))


def is_number(expr: Expr) -> bool:
    """A literal, or a literal under one unary minus (the text has no negative literals)."""
    return isinstance(expr, Int | Real) or (isinstance(expr, Unary) and expr.op == "-" and isinstance(expr.operand, Int | Real))


def is_arithmetic(expr: Expr) -> bool:
    """An operation that the algebra looks into.

    Index arithmetic is none: it is exact in i64 and converted once, so its operations are not those of the expression's dtype.
    """
    match expr:
        case Unary(op="-", operand=Real()):
            return False
        case Binary(op="**", right=Int(value=exponent)):
            return exponent > 0
        case Unary(op="-") | Binary(op="+" | "-" | "*" | "/"):
            return not is_index_arithmetic(expr)
        case _:
            return False


def size(expr: Expr) -> int:
    """The number of nodes."""
    return 1 + sum(size(child) for child in children(expr))


def degree(expr: Expr) -> int:
    """An upper bound for the degree of numerator and denominator, every leaf and literal counting 1."""
    match expr:
        case Binary(op="**", right=Int(value=exponent)):
            return degree(expr.left) * exponent
        case Binary(op="*" | "/"):
            return degree(expr.left) + degree(expr.right)
        case _:
            return max(map(degree, children(expr)), default=1)


def has_infinity(expr: Expr) -> bool:
    if isinstance(expr, Real):
        return isinf(expr.value)
    return any(has_infinity(child) for child in children(expr))


def at(expr: Expr, path: tuple[int, ...]) -> Expr | None:
    """The subexpression at a scalar path, None where there is none."""
    for step in path:
        below = children(expr)
        if not 0 <= step < len(below):
            return None
        expr = below[step]
    return expr


def paths_in(expr: Expr, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Expr]]:
    """Every subexpression with its scalar path, preorder."""
    yield path, expr
    for position, child in enumerate(children(expr)):
        yield from paths_in(child, (*path, position))


def replace(expr: Expr, path: tuple[int, ...], new: Expr) -> Expr:
    """``expr`` with the subexpression at ``path`` replaced."""
    if not path:
        return new
    below = list(children(expr))
    below[path[0]] = replace(below[path[0]], path[1:], new)
    return with_children(expr, tuple(below))
