"""Sums and products as lists, so that terms can be picked and put back without touching their neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce

from leir.ir import Binary, Expr, Int, Unary, children


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a sum; ``negative`` where a minus sign precedes it."""

    negative: bool
    expr: Expr


def is_sum(expr: Expr) -> bool:
    return isinstance(expr, Binary) and expr.op in ("+", "-")


def terms_of(expr: Expr) -> tuple[Term, ...]:
    """The terms of a left-associated chain of ``+`` and ``-``; a parenthesised sum on the right of a sign is one term."""
    if isinstance(expr, Binary) and expr.op in ("+", "-"):
        return (*terms_of(expr.left), Term(expr.op == "-", expr.right))
    return (Term(False, expr),)


def sum_of(terms: Iterable[Term]) -> Expr:
    """The chain of at least one term. A minus sign in front of the first becomes a unary minus on its first factor."""
    first, *rest = terms
    start = negated(first.expr) if first.negative else first.expr
    return reduce(lambda total, term: Binary("-" if term.negative else "+", total, term.expr), rest, start)


def negated(expr: Expr) -> Expr:
    """``-expr`` as one writes it: the sign stands on the first factor of a product."""
    if isinstance(expr, Binary) and expr.op in ("*", "/"):
        return Binary(expr.op, negated(expr.left), expr.right)
    return Unary("-", expr)


@dataclass(frozen=True, slots=True)
class Factor:
    """``base**power``; a divisor has a negative power."""

    base: Expr
    power: int


@dataclass(frozen=True, slots=True)
class Product:
    negative: bool
    factors: tuple[Factor, ...]


def product_of(expr: Expr) -> Product:
    """The factors of nested ``* /``, literal powers and unary minus, in the order of the text. A sum is one factor, and so is a
    quotient in a divisor: no division disappears."""
    negative = False

    def visit(node: Expr, power: int) -> Iterator[Factor]:
        nonlocal negative
        match node:
            case Unary(op="-"):
                negative ^= power % 2 == 1
                yield from visit(node.operand, power)
            case Binary(op="*"):
                yield from visit(node.left, power)
                yield from visit(node.right, power)
            case Binary(op="/") if power > 0:
                yield from visit(node.left, power)
                yield from visit(node.right, -power)
            case Binary(op="**", right=Int(value=exponent)):
                yield from visit(node.left, power * exponent)
            case _:
                yield Factor(node, power)

    factors = tuple(visit(expr, 1))
    return Product(negative, factors)


def products_in(expr: Expr, path: tuple[int, ...] = (), continued: bool = False) -> Iterator[tuple[tuple[int, ...], Expr]]:
    """Every maximal product (of ``* /``, literal powers and unary minus) with its scalar path, in the order of the text, outer
    before inner. A divisor is a product of its own."""
    product = (isinstance(expr, Binary) and expr.op in ("*", "/", "**")) or (isinstance(expr, Unary) and expr.op == "-")
    if product and not continued:
        yield path, expr
    for position, child in enumerate(children(expr)):
        divisor = isinstance(expr, Binary) and expr.op == "/" and position == 1
        yield from products_in(child, (*path, position), continued=product and not divisor)


def sums_in(expr: Expr, path: tuple[int, ...] = (), continued: bool = False) -> Iterator[tuple[tuple[int, ...], Expr]]:
    """Every maximal chain of ``+`` and ``-`` with its scalar path, in the order of the text, outer before inner."""
    if is_sum(expr) and not continued:
        yield path, expr
    for position, child in enumerate(children(expr)):
        yield from sums_in(child, (*path, position), continued=is_sum(expr) and position == 0)


def powers_in(expr: Expr) -> Iterator[Expr]:
    """The base of every explicit power."""
    if isinstance(expr, Binary) and expr.op == "**":
        yield expr.left
    for child in children(expr):
        yield from powers_in(child)
