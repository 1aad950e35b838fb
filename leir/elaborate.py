"""Typing: from a scalar expression as written to one in which every operation has a dtype (leir.md, Arithmetic).

Operands of one operation share a dtype. A literal has none of its own: it takes its sibling's, else the target's. A maximal
subexpression of loop indices and integers is an exact i64 that is converted once, to that same dtype. The interpreter and the
TIR lowering both work on what this module returns, so the two cannot read a constant differently.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from leir.ir import (
    FLOAT_DTYPES,
    INT_DTYPES,
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Int,
    Real,
    Unary,
    is_index_arithmetic,
)


@dataclass(frozen=True, slots=True)
class TypeProblem:
    """Why an expression has no type. ``path`` leads from the equation's value to the offending subexpression."""

    code: str
    path: tuple[int, ...]
    message: str
    help: str


class TypingError(Exception):
    """Raised by `elaborate` on an ill-typed equation; the checker reports it as a diagnostic instead."""

    def __init__(self, problem: TypeProblem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Const:
    """A literal in ``dtype``."""

    value: int | float
    dtype: str


@dataclass(frozen=True, slots=True)
class IndexValue:
    """An exact i64 index expression, converted once to ``dtype``."""

    expr: Expr
    dtype: str


@dataclass(frozen=True, slots=True)
class Load:
    """An element of a tensor; its subscripts stay integer expressions (`Expr`)."""

    access: Access
    dtype: str


@dataclass(frozen=True, slots=True)
class Apply:
    """One operation.

    ``op`` is one of ``neg not + - * / // % ** & | < <= > >= == != if_then_else cast``, a unary call, ``max`` or ``min``.
    ``dtype`` is the dtype of the result; operands of arithmetic have it too, operands of a comparison share one of their own.
    A chained comparison is already a conjunction of single ones.
    """

    op: str
    args: tuple[Typed, ...]
    dtype: str


Typed: TypeAlias = Const | IndexValue | Load | Apply

_FLOAT_ONLY = ("exp", "log", "sqrt", "erf", "tanh", "sin", "cos", "sigmoid", "floor", "ceil")


def elaborate(equation: Equation) -> Typed:
    """The typed right-hand side of ``equation``, in the target's dtype.

    Raises TypingError where operands do not share a dtype, a call is used outside its domain, or a literal does not fit.
    """
    return _Elaborator(equation.target.tensor.dtype).run(equation.value)


def elaborate_value(expr: Expr, dtype: str) -> Typed:
    """As `elaborate`, for an expression whose value is wanted in ``dtype``."""
    return _Elaborator(dtype).run(expr)


class _Elaborator:
    def __init__(self, target: str) -> None:
        self.target = target

    def run(self, expr: Expr) -> Typed:
        own = self.dtype_of(expr, ())
        if own is not None and own != self.target:
            raise _mismatch((), own, self.target)
        return self.build(expr, self.target, ())

    def dtype_of(self, expr: Expr, path: tuple[int, ...]) -> str | None:
        """The dtype that the expression brings along, or None for what takes its dtype from outside."""
        if is_index_arithmetic(expr):
            return None
        match expr:
            case Real():
                return None
            case Access():
                return expr.tensor.dtype
            case Compare() | Unary(op="!") | Binary(op="&" | "|"):
                return "bool"
            case Unary():
                return self.dtype_of(expr.operand, (*path, 0))
            case Binary():
                return self.join((expr.left, expr.right), path)
            case Call(fn="if_then_else"):
                return self.join(expr.args[1:], path, first=1)
            case Call() if expr.fn.startswith("cast_"):
                return expr.fn.removeprefix("cast_")
            case Call():
                return self.join(expr.args, path)
        raise AssertionError(expr)

    def join(self, operands: tuple[Expr, ...], path: tuple[int, ...], first: int = 0) -> str | None:
        found: str | None = None
        for position, operand in enumerate(operands, first):
            dtype = self.dtype_of(operand, (*path, position))
            if dtype is None:
                continue
            if found is not None and dtype != found:
                raise _mismatch((*path, position), dtype, found)
            found = dtype
        return found

    def build(self, expr: Expr, want: str, path: tuple[int, ...]) -> Typed:
        """``expr`` in dtype ``want``, which `dtype_of` agrees with."""
        if isinstance(expr, Int):
            if want == "bool" and expr.value not in (0, 1):
                raise _problem("literal-range", path, f"{expr.value} is no bool", "write 0 or 1, or a comparison")
            return Const(expr.value, want)
        if isinstance(expr, Real):
            if want not in FLOAT_DTYPES:
                raise _problem(
                    "literal-range",
                    path,
                    f"the literal {expr.value!r} is used as {want}",
                    "write an integer, or cast the other operand",
                )
            return Const(expr.value, want)
        if is_index_arithmetic(expr):
            if want == "bool":
                raise _problem("dtype-mismatch", path, "an index value is used as bool", "compare it with a number")
            return IndexValue(expr, want)
        match expr:
            case Access():
                return Load(expr, want)
            case Compare():
                return self.comparison(expr, path)
            case Unary(op="!"):
                return Apply("not", (self.boolean(expr.operand, (*path, 0)),), "bool")
            case Binary(op="&" | "|"):
                return Apply(expr.op, (self.boolean(expr.left, (*path, 0)), self.boolean(expr.right, (*path, 1))), "bool")
            case Unary():
                self.arithmetic("-", want, path)
                return Apply("neg", (self.build(expr.operand, want, (*path, 0)),), want)
            case Binary():
                self.arithmetic(expr.op, want, path)
                return Apply(expr.op, (self.build(expr.left, want, (*path, 0)), self.build(expr.right, want, (*path, 1))), want)
            case Call(fn="if_then_else"):
                guard, then, other = expr.args
                return Apply(
                    "if_then_else",
                    (
                        self.boolean(guard, (*path, 0)),
                        self.build(then, want, (*path, 1)),
                        self.build(other, want, (*path, 2)),
                    ),
                    want,
                )
            case Call() if expr.fn.startswith("cast_"):
                inner = self.dtype_of(expr.args[0], (*path, 0))
                if inner is None:  # a literal or an index has no dtype to convert from: it is made in the new one
                    integral = is_index_arithmetic(expr.args[0])
                    inner = want if integral or want in FLOAT_DTYPES else "f64"
                    if integral and want == "bool":
                        inner = "i64"
                return Apply("cast", (self.build(expr.args[0], inner, (*path, 0)),), want)
            case Call():
                if expr.fn in _FLOAT_ONLY and want not in FLOAT_DTYPES:
                    raise _problem(
                        "dtype-domain", path, f"{expr.fn} of {want}", f"cast the argument first: cast_f32({expr.fn}'s argument)"
                    )
                self.arithmetic(expr.fn, want, path)
                return Apply(expr.fn, tuple(self.build(a, want, (*path, k)) for k, a in enumerate(expr.args)), want)
        raise AssertionError(expr)

    def boolean(self, expr: Expr, path: tuple[int, ...]) -> Typed:
        dtype = self.dtype_of(expr, path)
        if dtype not in ("bool", None):
            raise _problem("dtype-mismatch", path, f"{dtype} is used as a condition", "compare it with a number")
        return self.build(expr, "bool", path)

    def comparison(self, expr: Compare, path: tuple[int, ...]) -> Typed:
        dtype = self.join(expr.operands, path)
        if dtype is None:
            dtype = "i64" if all(is_index_arithmetic(e) for e in expr.operands) else "f64"
        terms = [self.build(e, dtype, (*path, k)) for k, e in enumerate(expr.operands)]
        result: Typed = Apply(expr.ops[0], (terms[0], terms[1]), "bool")
        for k, op in enumerate(expr.ops[1:], 1):
            result = Apply("&", (result, Apply(op, (terms[k], terms[k + 1]), "bool")), "bool")
        return result

    def arithmetic(self, op: str, want: str, path: tuple[int, ...]) -> None:
        if want == "bool":
            raise _problem("dtype-domain", path, f"{op} of bool", "use & | ! on conditions, or cast_i32 the operand")
        if op == "/" and want in INT_DTYPES:
            raise _problem("dtype-domain", path, f"/ of {want}", "use // for integers, or cast to a float dtype")
        if op in ("//", "%") and want in FLOAT_DTYPES:
            raise _problem("dtype-domain", path, f"{op} of {want}", "use floor(x/y) for floats, or cast to an integer dtype")


def _problem(code: str, path: tuple[int, ...], message: str, help: str) -> TypingError:
    return TypingError(TypeProblem(code, path, message, help))


def _mismatch(path: tuple[int, ...], found: str, expected: str) -> TypingError:
    return _problem("dtype-mismatch", path, f"{found} where {expected} is expected", f"write cast_{expected}(...) around it")


def subscript_is_integer(expr: Expr) -> bool:
    """Whether ``expr`` may stand as a subscript: indices, integers, and integer-typed accesses under ``+ - * // %``."""
    match expr:
        case Int() | Index():
            return True
        case Access():
            return expr.tensor.dtype in INT_DTYPES and all(subscript_is_integer(s) for s in expr.subscripts)
        case Unary(op="-"):
            return subscript_is_integer(expr.operand)
        case Binary(op="+" | "-" | "*" | "//" | "%"):
            return subscript_is_integer(expr.left) and subscript_is_integer(expr.right)
        case _:
            return False
