"""Scalar expressions that are written as arithmetic, so that a table of formulas reads like algebra."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from leir.ir import Binary, Call, Compare, Expr, Int, Real, Unary, children, is_index_arithmetic

Number: TypeAlias = int | float
Operand: TypeAlias = "Term | Number"


@dataclass(frozen=True, slots=True)
class Term:
    expr: Expr

    def __add__(self, other: Operand) -> Term:
        if _negative(other):
            return self._binary("-", -other)
        return self._binary("+", other)

    def __radd__(self, other: Number) -> Term:
        return Term(literal(other))._binary("+", self)

    def __sub__(self, other: Operand) -> Term:
        if _negative(other):
            return self._binary("+", -other)
        return self._binary("-", other)

    def __rsub__(self, other: Number) -> Term:
        return Term(literal(other))._binary("-", self)

    def __mul__(self, other: Operand) -> Term:
        return self._binary("*", other)

    def __rmul__(self, other: Number) -> Term:
        return Term(literal(other))._binary("*", self)

    def __truediv__(self, other: Operand) -> Term:
        return self._binary("/", other)

    def __rtruediv__(self, other: Number) -> Term:
        return Term(literal(other))._binary("/", self)

    def __pow__(self, other: Operand) -> Term:
        return self._binary("**", other)

    def __rpow__(self, other: Number) -> Term:
        return Term(literal(other))._binary("**", self)

    def __and__(self, other: Term) -> Term:
        return self._binary("&", other)

    def __or__(self, other: Term) -> Term:
        return self._binary("|", other)

    def __invert__(self) -> Term:
        return Term(Unary("!", self.expr))

    def __neg__(self) -> Term:
        return Term(Unary("-", self.expr))

    def _binary(self, op: str, other: Operand) -> Term:
        return Term(Binary(op, self.expr, expression(other)))


def literal(number: Number) -> Expr:
    """A Python number as LEIR writes it. Raises ValueError for a NaN, which has no literal."""
    if math.isnan(number):
        raise ValueError("NaN has no literal")
    if math.copysign(1.0, number) < 0:
        return Unary("-", literal(-number))
    return Int(int(number)) if isinstance(number, int) else Real(number)


def expression(operand: Operand) -> Expr:
    return operand.expr if isinstance(operand, Term) else literal(operand)


def _negative(operand: Operand) -> bool:
    return not isinstance(operand, Term) and operand < 0


def call(fn: str, *args: Operand) -> Term:
    return Term(Call(fn, tuple(expression(arg) for arg in args)))


def exp(x: Operand) -> Term:
    return call("exp", x)


def log(x: Operand) -> Term:
    return call("log", x)


def sqrt(x: Operand) -> Term:
    return call("sqrt", x)


def erf(x: Operand) -> Term:
    return call("erf", x)


def tanh(x: Operand) -> Term:
    return call("tanh", x)


def sigmoid(x: Operand) -> Term:
    return call("sigmoid", x)


def absolute(x: Operand) -> Term:
    return call("abs", x)


def maximum(x: Operand, y: Operand) -> Term:
    return call("max", x, y)


def minimum(x: Operand, y: Operand) -> Term:
    return call("min", x, y)


def where(condition: Term, then: Operand, other: Operand) -> Term:
    return call("if_then_else", condition, then, other)


def compare(op: str, x: Operand, y: Operand) -> Term:
    return Term(Compare((expression(x), expression(y)), (op,)))


# ------------------------------------------------------------------------------------------------------------------- rounding


EXACT_CALLS = ("abs", "max", "min", "if_then_else", "floor", "ceil")


def rounds_once(expr: Expr, dtype: str) -> bool:
    """Whether computing ``expr`` in the low-precision ``dtype`` rounds at most once, at its last inexact operation.

    PyTorch computes a whole f16 or bf16 operator in f32 and rounds the result; a formula with two roundings, or with a constant
    that ``dtype`` cannot hold, must do the same.
    """
    return _roundings(expr) <= 1 and all(_holds(number, dtype) for number in _arithmetic_literals(expr))


def _roundings(expr: Expr) -> int:
    below = sum(_roundings(part) for part in children(expr))
    match expr:
        case Binary(op="+" | "-" | "*" | "/" | "**") if not is_index_arithmetic(expr):
            return below + 1
        case Call() if expr.fn not in EXACT_CALLS and not expr.fn.startswith("cast_"):
            return below + 1
    return below


def _arithmetic_literals(expr: Expr) -> list[Number]:
    """The literals of sums, products and comparisons; PyTorch rounds those of max, min and selections to the dtype itself."""
    match expr:
        case Binary() | Compare():
            own = [part.value for part in children(expr) if isinstance(part, Int | Real)]
        case _:
            own = []
    return own + [number for part in children(expr) for number in _arithmetic_literals(part)]


def _holds(number: Number, dtype: str) -> bool:
    if math.isinf(number):
        return True
    if dtype == "f16":
        with np.errstate(over="ignore"):
            return float(np.float16(number)) == number
    mantissa, _ = math.frexp(float(number))
    return (mantissa * 256).is_integer()  # bf16: 8 bits of mantissa, and the exponents of f32
