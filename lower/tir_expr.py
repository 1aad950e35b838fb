"""Scalar expressions: from `leir.elaborate`'s typed trees to TIR.

Values are computed in the dtype of each operation and rounded in it, bit for bit as `leir.scalars` does, with three exceptions, all
among what leir calls transcendental (exp, log, sin, cos, tanh, erf, sigmoid, ``**``): f16 and bf16 compute them in f32 and round,
f32 and f64 take TVM's and the C library's code in their own dtype, and ``x**2``, ``x**3``, ``x**4`` are products. Products are
faster than pow and keep a sign that a GPU's fast pow loses. A square rounds once, as the interpreter's does below f64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tvm import tirx as tir

from leir.elaborate import Apply, Const, IndexValue, Load, Typed
from leir.ir import FLOAT_DTYPES, INT_DTYPES, Access, Binary, Expr, Index, Int, Unary
from lower.plan import LoweringRefused
from lower.tir_arithmetic import (
    COMPUTE,
    Bind,
    Prim,
    dtype_of,
    f32_rounded_to_odd,
    floor_division,
    int64,
    literal,
    load_bf16,
    negation,
    negative,
    round_bf16,
    wrapping,
)

_COMPARE: Mapping[str, Callable[[Prim, Prim], Prim]] = {
    "<": tir.LT,
    "<=": tir.LE,
    ">": tir.GT,
    ">=": tir.GE,
    "==": tir.EQ,
    "!=": lambda x, y: negation(tir.EQ(x, y)),  # TVM's NE is false on a NaN
}
_FLOAT: Mapping[str, Callable[[Prim, Prim], Prim]] = {
    "+": tir.Add,
    "-": tir.Sub,
    # TVM makes Add(Mul(x,y),z) an llvm.fmuladd, which LLVM rounds once where it folds constants; a bit cast in between prevents it
    "*": lambda x, y: tir.call_intrin(dtype_of(x), "tirx.reinterpret", tir.Mul(x, y)),
    "/": tir.Div,
}
_TRANSCENDENTAL: Mapping[str, Callable[[Prim], Prim]] = {
    "exp": tir.exp,
    "log": tir.log,
    "sin": tir.sin,
    "cos": tir.cos,
    "erf": tir.erf,
    "sigmoid": tir.sigmoid,
    # TVM's own tanh loses 8 bits near zero (measured: 300 ulp)
    "tanh": lambda x: tir.call_llvm_pure_intrin(dtype_of(x), "llvm.tanh", x),
}
_EXACT: Mapping[str, Callable[[Prim], Prim]] = {"abs": tir.abs, "floor": tir.floor, "ceil": tir.ceil}


class Scalars:
    """Lowers expressions at one point of the loops. ``buffers`` by tensor name; ``axes[k]`` is the TIR value of axis k.

    ``statements`` collects what must run before the expression that was returned: values that are used more than once, and the
    branches that hold such values. Where it stays empty, everything is in the expression.
    """

    def __init__(self, buffers: Mapping[str, Prim], axes: Sequence[Prim]) -> None:
        self.buffers = buffers
        self.axes = axes
        self.statements: list[Prim] = []

    def bind(self, value: Prim) -> Prim:
        name = tir.Var("v", dtype_of(value))
        self.statements.append(tir.Bind(name, value))
        return name

    def subscripts(self, access: Access) -> list[Prim]:
        return [self.index(s) for s in access.subscripts]

    def index(self, expr: Expr) -> Prim:
        """An integer expression in int64."""
        match expr:
            case Int():
                return int64(expr.value)
            case Index():
                return self.axes[expr.axis]
            case Access():
                return tir.Cast("int64", tir.BufferLoad(self.buffers[expr.tensor.name], self.subscripts(expr)))
            case Unary(op="-"):
                return tir.Sub(int64(0), self.index(expr.operand))
            case Binary():
                left, right = self.index(expr.left), self.index(expr.right)
                match expr.op:
                    case "+":
                        return tir.Add(left, right)
                    case "-":
                        return tir.Sub(left, right)
                    case "*":
                        return tir.Mul(left, right)
                    case "//":
                        return tir.floordiv(left, right)
                    case "%":
                        return tir.floormod(left, right)
        raise LoweringRefused("subscript", type(expr).__name__, "a subscript holds more than integers under + - * // %")

    def value(self, typed: Typed) -> Prim:
        match typed:
            case Const():
                return literal(typed.value, typed.dtype)
            case IndexValue():
                return convert(self.index(typed.expr), "i64", typed.dtype, self.bind)
            case Load():
                stored = tir.BufferLoad(self.buffers[typed.access.tensor.name], self.subscripts(typed.access))
                return load_bf16(stored) if typed.dtype == "bf16" else stored
            case Apply(op="if_then_else"):
                return self.choice(typed)
            case Apply(op="cast"):
                return convert(self.value(typed.args[0]), typed.args[0].dtype, typed.dtype, self.bind)
            case Apply(op="**"):
                return self.power(typed)
            case Apply():
                return operation(typed.op, tuple(self.value(a) for a in typed.args), typed.args[0].dtype, self.bind)

    def choice(self, typed: Apply) -> Prim:
        """``if_then_else``, lazy: what stands in a branch is evaluated only where it is chosen."""
        guard = self.value(typed.args[0])
        (then, first), (other, second) = self.branch(typed.args[1]), self.branch(typed.args[2])
        if not first and not second:
            return tir.if_then_else(guard, then, other)
        cell = tir.decl_buffer([int64(1)], COMPUTE[typed.dtype], "chosen", scope="local", layout=None)
        first.append(tir.BufferStore(cell, then, [int64(0)]))
        second.append(tir.BufferStore(cell, other, [int64(0)]))
        self.statements += [tir.AllocBuffer(cell), tir.IfThenElse(guard, sequence(first), sequence(second))]
        return self.bind(tir.BufferLoad(cell, [int64(0)]))

    def branch(self, typed: Typed) -> tuple[Prim, list[Prim]]:
        """A value, and the statements that it needs."""
        outer, self.statements = self.statements, []
        value = self.value(typed)
        inner, self.statements = self.statements, outer
        return value, inner

    def power(self, typed: Apply) -> Prim:
        base, exponent = typed.args
        times = exponent.value if isinstance(exponent, Const) else None
        dtype = typed.dtype
        if dtype in INT_DTYPES:
            if times is None or times != int(times) or not 0 <= times <= 64:
                raise LoweringRefused("integer-power", "**", "an integer power needs a literal exponent from 0 to 64")
            if times == 0:
                return literal(1, dtype)
            return self.product(base, int(times), dtype)
        if times in (2, 3, 4):
            return self.product(base, int(times), dtype)
        return through_f32(tir.pow, (self.value(base), self.value(exponent)), dtype, self.bind)

    def product(self, base: Typed, times: int, dtype: str) -> Prim:
        x = self.value(base)
        if not isinstance(base, Load):
            x = self.bind(x)
        result = x
        for _ in range(times - 1):
            result = operation("*", (result, x), dtype, self.bind)
        return result


def sequence(statements: list[Prim]) -> Prim:
    """One statement that runs ``statements`` in order."""
    return statements[0] if len(statements) == 1 else tir.SeqStmt(statements)


def operation(op: str, args: tuple[Prim, ...], dtype: str, bind: Bind) -> Prim:
    """One operation on operands of LEIR dtype ``dtype``, rounded in it."""
    if op in _COMPARE:
        if dtype == "bool":
            args = tuple(tir.Cast("int8", a) for a in args)
        return _COMPARE[op](*args)
    match op:
        case "not":
            return negation(args[0])
        case "&":
            return tir.bitwise_and(*args)
        case "|":
            return tir.bitwise_or(*args)
        case "max" | "min":
            return extremum(op, args[0], args[1], dtype)
    if dtype in INT_DTYPES:
        return _integer(op, args, bind)
    if op == "neg":
        return tir.Mul(args[0], tir.FloatImm(COMPUTE[dtype], -1.0))
    if op in _EXACT:
        return _EXACT[op](args[0])
    if op == "sqrt":
        return through_f32(tir.sqrt, args, dtype, bind)
    if op in _FLOAT:
        result = _FLOAT[op](*args)
        return round_bf16(result, bind) if dtype == "bf16" else result
    return through_f32(_TRANSCENDENTAL[op], args, dtype, bind)


def _integer(op: str, args: tuple[Prim, ...], bind: Bind) -> Prim:
    match op:
        case "+" | "-" | "*":
            return wrapping(op, *args)
        case "//" | "%":
            return floor_division(op, args[0], args[1], bind)
        case "neg":
            return negative(args[0])
        case "abs":
            x = bind(args[0])
            return tir.Select(tir.LT(x, tir.IntImm(dtype_of(x), 0)), negative(x), x)
    raise AssertionError(op)


def extremum(op: str, left: Prim, right: Prim, dtype: str) -> Prim:
    """IEEE 754-2019 maximum and minimum on floats: a NaN propagates, -0 < +0. LLVM knows them as reductions, too."""
    if dtype not in FLOAT_DTYPES:
        return tir.Max(left, right) if op == "max" else tir.Min(left, right)
    return tir.call_llvm_pure_intrin(COMPUTE[dtype], "llvm.maximum" if op == "max" else "llvm.minimum", left, right)


def through_f32(function: Callable[..., Prim], args: tuple[Prim, ...], dtype: str, bind: Bind) -> Prim:
    """``function`` in f32 for f16 and bf16, rounded once; in their own dtype for f32 and f64."""
    if dtype == "f16":
        return tir.Cast("float16", function(*(tir.Cast("float32", a) for a in args)))
    result = function(*args)
    return round_bf16(result, bind) if dtype == "bf16" else result


def convert(value: Prim, source: str, dtype: str, bind: Bind) -> Prim:
    """A cast: floats truncate and saturate toward integers, NaN becomes 0; integers wrap; bool is ``!=0`` (`leir.scalars`)."""
    if source == dtype:
        return value
    if dtype == "bool":
        return _COMPARE["!="](value, literal(0, source))
    if dtype == "bf16":
        if source in ("f64", "i32", "i64"):
            return round_bf16(f32_rounded_to_odd(tir.Cast("float64", value), bind), bind)
        return value if source == "bf16" else round_bf16(tir.Cast("float32", value), bind)
    if source in FLOAT_DTYPES and dtype in INT_DTYPES:
        wide = tir.Cast("float32", value) if source == "f16" else value
        return tir.call_llvm_pure_intrin(COMPUTE[dtype], "llvm.fptosi.sat", wide)
    return tir.Cast(COMPUTE[dtype], value)
