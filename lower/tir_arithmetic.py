"""Arithmetic that TIR does not have as LEIR means it: rounding to bf16, integers that wrap, NaN-safe negation of a condition.

Every function takes TIR expressions and returns one; an operand that is used twice is bound with ``Let``, so trees stay linear in
size. TVM and LLVM are told nothing that lets them reassociate, contract or assume the absence of NaN, infinities or overflow.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeAlias

from tvm import tirx as T

from leir.scalars import constant

Prim: TypeAlias = Any
"""A TIR expression. TVM has no type information."""

COMPUTE: dict[str, str] = {
    "f16": "float16",
    "bf16": "float32",  # the value is one that bf16 can represent
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i32": "int32",
    "i64": "int64",
    "bool": "bool",
}
"""The TIR dtype in which a value of a LEIR dtype is computed."""

STORE: dict[str, str] = COMPUTE | {"bf16": "uint16"}
"""The TIR dtype of a tensor's elements in memory. A bf16 is the upper half of the f32 with the same value."""

_WIDER = {"int8": "int32", "int32": "int64"}  # sums, differences and products of the narrow one are exact in the wide one
_BITS = {"float16": ("<e", "<h", "int16"), "float32": ("<f", "<i", "int32"), "float64": ("<d", "<q", "int64")}


def bind(value: Prim, body: Callable[[Prim], Prim]) -> Prim:
    """``body`` of ``value``, which is computed once."""
    name = T.Var("v", dtype_of(value))
    return T.Let(name, value, body(name))


def dtype_of(value: Prim) -> str:
    return str(value.ty.dtype)


def int64(value: int) -> Prim:
    return T.IntImm("int64", value)


def literal(value: int | float, dtype: str) -> Prim:
    """``value`` rounded or wrapped into the LEIR dtype ``dtype``, as an operand.

    A float zero is hidden from TVM, which folds ``x+0`` to ``x`` and ``x*0`` to ``0`` (wrong for -0, NaN and inf) and refuses a
    literal zero as a divisor.
    """
    tir = COMPUTE[dtype]
    if tir.startswith("float") and float(constant(value, dtype)) == 0.0:
        return T.Mul(float_bits(-0.0, tir), T.FloatImm(tir, -1.0))  # TVM reads a reinterpreted integer 0 as a null pointer
    return plain_literal(value, dtype)


def plain_literal(value: int | float, dtype: str) -> Prim:
    """As `literal`, for a value that is only stored."""
    exact = constant(value, dtype)
    tir = COMPUTE[dtype]
    if dtype == "bool" or tir.startswith("int"):
        return T.IntImm(tir, int(exact))
    return T.FloatImm(tir, float(exact))


def float_bits(value: float, tir: str) -> Prim:
    """``value``, not +0, in the TIR float dtype ``tir``, as a constant that TVM does not look into."""
    pack, unpack, integer = _BITS[tir]
    return T.reinterpret(tir, T.IntImm(integer, struct.unpack(unpack, struct.pack(pack, value))[0]))


# -------------------------------------------------------------------------------------------------------------------- bfloat16


def load_bf16(stored: Prim) -> Prim:
    return T.reinterpret("float32", T.shift_left(T.Cast("uint32", stored), T.IntImm("uint32", 16)))


def store_bf16(value: Prim) -> Prim:
    return T.Cast("uint16", T.shift_right(T.reinterpret("uint32", value), T.IntImm("uint32", 16)))


def round_bf16(value: Prim) -> Prim:
    """The f32 ``value`` rounded to nearest even among the values of bf16 (as `leir.scalars`, bit by bit)."""

    def rounded(x: Prim) -> Prim:
        def kept(bits: Prim) -> Prim:
            last = T.bitwise_and(T.shift_right(bits, T.IntImm("uint32", 16)), T.IntImm("uint32", 1))
            return T.bitwise_and(bits + T.IntImm("uint32", 0x7FFF) + last, T.IntImm("uint32", 0xFFFF0000))

        return T.Select(is_nan(x), float_bits(float("nan"), "float32"), T.reinterpret("float32", bind(as_bits(x), kept)))

    return bind(value, rounded)


def f32_rounded_to_odd(value: Prim) -> Prim:
    """The f64 ``value`` in f32, its last bit set where that is inexact, so that rounding it again to bf16 rounds only once."""

    def rounded(x: Prim) -> Prim:
        def odd(near: Prim) -> Prim:
            back = T.Cast("float64", near)
            one = T.IntImm("uint32", 1)
            past = T.Select(T.abs(back) > T.abs(x), one, T.IntImm("uint32", 0))
            inexact = T.Select(T.NE(back, x), one, T.IntImm("uint32", 0))
            bits = T.bitwise_or(as_bits(near) - past, inexact)
            return T.Select(is_nan(x), near, T.reinterpret("float32", bits))

        return bind(T.Cast("float32", x), odd)

    return bind(value, rounded)


def as_bits(value: Prim) -> Prim:
    return T.reinterpret("uint32", value)


def is_nan(value: Prim) -> Prim:
    return T.isnan(value)


# -------------------------------------------------------------------------------------------------------------------- integers


def wrapping(op: str, left: Prim, right: Prim) -> Prim:
    """``+``, ``-`` or ``*`` modulo 2^bits. TVM marks its own integer arithmetic as free of overflow, LLVM then relies on it."""
    dtype = dtype_of(left)
    wide = _WIDER.get(dtype)
    if wide:
        a, b = T.Cast(wide, left), T.Cast(wide, right)
        return T.Cast(dtype, T.Add(a, b) if op == "+" else T.Sub(a, b) if op == "-" else T.Mul(a, b))
    return bind(T.Cast("uint64", left), lambda a: bind(T.Cast("uint64", right), lambda b: T.Cast("int64", _HALVES[op](a, b))))


_LOW = 0xFFFFFFFF


def _u64(value: int) -> Prim:
    return T.IntImm("uint64", value)


def _low(x: Prim) -> Prim:
    return T.bitwise_and(x, _u64(_LOW))


def _high(x: Prim) -> Prim:
    return T.shift_right(x, _u64(32))


def _join(high: Prim, low: Prim) -> Prim:
    return T.bitwise_or(T.shift_left(high, _u64(32)), low)


def _add_halves(a: Prim, b: Prim) -> Prim:
    """a+b in uint64 from halves, no step of which overflows."""
    return bind(_low(a) + _low(b), lambda low: _join(_high(a) + _high(b) + _high(low), _low(low)))


def _subtract_halves(a: Prim, b: Prim) -> Prim:
    complement = T.bitwise_xor(b, T.bitwise_or(T.shift_left(_u64(_LOW), _u64(32)), _u64(_LOW)))
    return bind(_low(a) + _low(complement) + _u64(1), lambda low: _join(_high(a) + _high(complement) + _high(low), _low(low)))


def _multiply_halves(a: Prim, b: Prim) -> Prim:
    cross = _low(_low(a) * _high(b)) + _low(_high(a) * _low(b))
    return bind(_low(a) * _low(b), lambda low: _join(_low(cross + _high(low)), _low(low)))


_HALVES: dict[str, Callable[[Prim, Prim], Prim]] = {"+": _add_halves, "-": _subtract_halves, "*": _multiply_halves}


def negative(value: Prim) -> Prim:
    return wrapping("-", T.IntImm(dtype_of(value), 0), value)


def floor_division(op: str, left: Prim, right: Prim) -> Prim:
    """``//`` or ``%``, rounding toward minus infinity. Division by zero has no value: the process may die (SIGFPE)."""
    dtype = dtype_of(left)
    divide = T.floordiv if op == "//" else T.floormod
    wide = _WIDER.get(dtype)
    if wide:  # the quotient of the least integer by -1 wraps
        return T.Cast(dtype, divide(T.Cast(wide, left), T.Cast(wide, right)))
    minus_one = T.EQ(right, T.IntImm(dtype, -1))
    by_minus_one = negative(left) if op == "//" else T.IntImm(dtype, 0)
    return T.if_then_else(minus_one, by_minus_one, divide(left, right))


def negation(condition: Prim) -> Prim:
    """``!condition``. TVM's Not would turn ``!(x<y)`` into ``y<=x``, which differs on a NaN."""
    return T.EQ(T.Cast("int8", condition), T.IntImm("int8", 0))
