"""Scalar expressions: from `leir.elaborate`'s typed trees to TIR.

Values are computed in the dtype of each operation and rounded in it, bit for bit as `leir.scalars` does, with three exceptions, all
among what leir calls transcendental (exp, log, sin, cos, tanh, erf, sigmoid, ``**``): f16 and bf16 compute them in f32 and round,
f32 and f64 take TVM's and the C library's code in their own dtype, and ``x**2``, ``x**3``, ``x**4`` are products. Products are
faster than pow, and keep a sign that a GPU's fast pow loses; only the square rounds as the interpreter does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tvm import tirx as T

from leir.elaborate import Apply, Const, IndexValue, Load, Typed
from leir.ir import FLOAT_DTYPES, INT_DTYPES, Access, Binary, Expr, Index, Int, Unary
from lower.plan import LoweringRefused
from lower.tir_arithmetic import (
    COMPUTE,
    Prim,
    bind,
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
    "<": T.LT,
    "<=": T.LE,
    ">": T.GT,
    ">=": T.GE,
    "==": T.EQ,
    "!=": T.NE,
}
_FLOAT: Mapping[str, Callable[[Prim, Prim], Prim]] = {"+": T.Add, "-": T.Sub, "*": T.Mul, "/": T.Div}
_TRANSCENDENTAL: Mapping[str, Callable[[Prim], Prim]] = {
    "exp": T.exp,
    "log": T.log,
    "sin": T.sin,
    "cos": T.cos,
    "erf": T.erf,
    "sigmoid": T.sigmoid,
    # TVM's own tanh loses 8 bits near zero (measured: 300 ulp)
    "tanh": lambda x: T.call_llvm_pure_intrin(str(x.ty.dtype), "llvm.tanh", x),
}
_EXACT: Mapping[str, Callable[[Prim], Prim]] = {"abs": T.abs, "floor": T.floor, "ceil": T.ceil}


class Scalars:
    """Lowers expressions at one point of the loops. ``buffers`` by tensor name; ``axes[k]`` is the TIR value of axis k."""

    def __init__(self, buffers: Mapping[str, Prim], axes: Sequence[Prim]) -> None:
        self.buffers = buffers
        self.axes = axes

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
                return T.Cast("int64", T.BufferLoad(self.buffers[expr.tensor.name], self.subscripts(expr)))
            case Unary(op="-"):
                return T.Sub(int64(0), self.index(expr.operand))
            case Binary():
                left, right = self.index(expr.left), self.index(expr.right)
                match expr.op:
                    case "+":
                        return T.Add(left, right)
                    case "-":
                        return T.Sub(left, right)
                    case "*":
                        return T.Mul(left, right)
                    case "//":
                        return T.floordiv(left, right)
                    case "%":
                        return T.floormod(left, right)
        raise LoweringRefused("subscript", type(expr).__name__, "a subscript holds more than integers under + - * // %")

    def value(self, typed: Typed) -> Prim:
        match typed:
            case Const():
                return literal(typed.value, typed.dtype)
            case IndexValue():
                return convert(self.index(typed.expr), "i64", typed.dtype)
            case Load():
                stored = T.BufferLoad(self.buffers[typed.access.tensor.name], self.subscripts(typed.access))
                return load_bf16(stored) if typed.dtype == "bf16" else stored
            case Apply(op="if_then_else"):
                # the intrinsic is lazy: what stands in a branch is evaluated only where it is chosen
                guard, then, other = (self.value(a) for a in typed.args)
                return T.if_then_else(guard, then, other)
            case Apply(op="cast"):
                return convert(self.value(typed.args[0]), typed.args[0].dtype, typed.dtype)
            case Apply(op="**"):
                return self.power(typed)
            case Apply():
                return operation(typed.op, tuple(self.value(a) for a in typed.args), typed.args[0].dtype)

    def power(self, typed: Apply) -> Prim:
        base, exponent = typed.args
        times = exponent.value if isinstance(exponent, Const) else None
        dtype = typed.dtype
        if dtype in INT_DTYPES:
            if times is None or times != int(times) or not 0 <= times <= 64:
                raise LoweringRefused("integer-power", "**", "an integer power needs a literal exponent from 0 to 64")
            if times == 0:
                return literal(1, dtype)
            return bind(self.value(base), lambda x: _product(x, int(times), dtype))
        if times in (2, 3, 4):
            return bind(self.value(base), lambda x: _product(x, int(times), dtype))
        return through_f32(T.pow, (self.value(base), self.value(exponent)), dtype)


def _product(x: Prim, times: int, dtype: str) -> Prim:
    result = x
    for _ in range(times - 1):
        result = operation("*", (result, x), dtype)
    return result


def operation(op: str, args: tuple[Prim, ...], dtype: str) -> Prim:
    """One operation on operands of LEIR dtype ``dtype``, rounded in it."""
    if op in _COMPARE:
        if dtype == "bool":
            args = tuple(T.Cast("int8", a) for a in args)
        return _COMPARE[op](*args)
    match op:
        case "not":
            return negation(args[0])
        case "&":
            return T.bitwise_and(*args)
        case "|":
            return T.bitwise_or(*args)
        case "max" | "min":
            return extremum(op, args[0], args[1], dtype)
    if dtype in INT_DTYPES:
        return _integer(op, args)
    if op == "neg":
        return T.Mul(args[0], T.FloatImm(COMPUTE[dtype], -1.0))
    if op in _EXACT:
        return _EXACT[op](args[0])
    if op == "sqrt":
        return through_f32(T.sqrt, args, dtype)
    if op in _FLOAT:
        result = _FLOAT[op](*args)
        return round_bf16(result) if dtype == "bf16" else result
    return through_f32(_TRANSCENDENTAL[op], args, dtype)


def _integer(op: str, args: tuple[Prim, ...]) -> Prim:
    match op:
        case "+" | "-" | "*":
            return wrapping(op, *args)
        case "//" | "%":
            return floor_division(op, *args)
        case "neg":
            return negative(args[0])
        case "abs":
            return bind(args[0], lambda x: T.Select(T.LT(x, T.IntImm(str(x.ty.dtype), 0)), negative(x), x))
    raise AssertionError(op)


def extremum(op: str, left: Prim, right: Prim, dtype: str) -> Prim:
    """IEEE 754-2019 maximum and minimum on floats: a NaN propagates, -0 < +0. LLVM knows them as reductions, too."""
    if dtype not in FLOAT_DTYPES:
        return T.Max(left, right) if op == "max" else T.Min(left, right)
    return T.call_llvm_pure_intrin(COMPUTE[dtype], "llvm.maximum" if op == "max" else "llvm.minimum", left, right)


def through_f32(function: Callable[..., Prim], args: tuple[Prim, ...], dtype: str) -> Prim:
    """``function`` in f32 for f16 and bf16, rounded once; in their own dtype for f32 and f64."""
    if dtype == "f16":
        return T.Cast("float16", function(*(T.Cast("float32", a) for a in args)))
    result = function(*args)
    return round_bf16(result) if dtype == "bf16" else result


def convert(value: Prim, source: str, dtype: str) -> Prim:
    """A cast: floats truncate and saturate toward integers, NaN becomes 0; integers wrap; bool is ``!=0`` (`leir.scalars`)."""
    if source == dtype:
        return value
    if dtype == "bool":
        return T.NE(value, literal(0, source))
    if dtype == "bf16":
        if source in ("f64", "i32", "i64"):
            return round_bf16(f32_rounded_to_odd(T.Cast("float64", value)))
        return value if source == "bf16" else round_bf16(T.Cast("float32", value))
    if source in FLOAT_DTYPES and dtype in INT_DTYPES:
        wide = T.Cast("float32", value) if source == "f16" else value
        return T.call_llvm_pure_intrin(COMPUTE[dtype], "llvm.fptosi.sat", wide)
    return T.Cast(COMPUTE[dtype], value)
