"""Arithmetic that TIR does not have as LEIR means it: rounding to bf16, integers that wrap, NaN-safe negation of a condition.

Every function takes TIR expressions and returns one. An operand that is used twice is computed once: ``bind`` is a function that
writes a statement for it and returns the variable. (TIR has a Let expression, which would not need one; nested Lets make TVM's code
generator fail on a conflict with its own simplifications.)
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeAlias

from tvm import tirx as tir

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

Bind: TypeAlias = Callable[[Prim], Prim]
"""Computes an expression once, here and now, and returns a name for its value."""

_WIDER = {"int8": "int32", "int32": "int64", "int64": "int128"}
"""Sums, differences and products of the narrow one are exact in the wide one. LLVM reduces the work to the narrow one again."""
_BITS = {"float16": ("<e", "<h", "int16"), "float32": ("<f", "<i", "int32"), "float64": ("<d", "<q", "int64")}


def dtype_of(value: Prim) -> str:
    return str(value.ty.dtype)


def int64(value: int) -> Prim:
    return tir.IntImm("int64", value)


def literal(value: int | float, dtype: str) -> Prim:
    """``value`` rounded or wrapped into the LEIR dtype ``dtype``, as an operand.

    A float zero is hidden from TVM, which folds ``x+0`` to ``x`` and ``x*0`` to ``0`` (wrong for -0, NaN and inf) and refuses a
    literal zero as a divisor.
    """
    computed = COMPUTE[dtype]
    if computed.startswith("float") and float(constant(value, dtype)) == 0.0:
        return tir.Mul(
            float_bits(-0.0, computed), tir.FloatImm(computed, -1.0)
        )  # TVM reads a reinterpreted integer 0 as a null pointer
    return plain_literal(value, dtype)


def plain_literal(value: int | float, dtype: str) -> Prim:
    """As `literal`, for a value that is only stored."""
    exact = constant(value, dtype)
    computed = COMPUTE[dtype]
    if dtype == "bool" or computed.startswith("int"):
        return tir.IntImm(computed, int(exact))
    return tir.FloatImm(computed, float(exact))


def float_bits(value: float, dtype: str) -> Prim:
    """``value``, not +0, in the TIR float dtype ``dtype``, as a constant that TVM does not look into."""
    pack, unpack, integer = _BITS[dtype]
    return tir.reinterpret(dtype, tir.IntImm(integer, struct.unpack(unpack, struct.pack(pack, value))[0]))


# -------------------------------------------------------------------------------------------------------------------- bfloat16


def load_bf16(stored: Prim) -> Prim:
    return tir.reinterpret("float32", tir.shift_left(tir.Cast("uint32", stored), tir.IntImm("uint32", 16)))


def store_bf16(value: Prim) -> Prim:
    return tir.Cast("uint16", tir.shift_right(tir.reinterpret("uint32", value), tir.IntImm("uint32", 16)))


def round_bf16(value: Prim, bind: Bind) -> Prim:
    """The f32 ``value`` rounded to nearest even among the values of bf16 (as `leir.scalars`, bit by bit)."""
    x = bind(value)
    bits = bind(as_bits(x))
    last = tir.bitwise_and(tir.shift_right(bits, _u32(16)), _u32(1))
    kept = tir.bitwise_and(tir.Add(tir.Add(bits, _u32(0x7FFF)), last), _u32(0xFFFF0000))
    return tir.Select(tir.isnan(x), float_bits(float("nan"), "float32"), tir.reinterpret("float32", kept))


def f32_rounded_to_odd(value: Prim, bind: Bind) -> Prim:
    """The f64 ``value`` in f32, its last bit set where that is inexact, so that rounding it again to bf16 rounds only once."""
    x = bind(value)
    near = bind(tir.Cast("float32", x))
    back = bind(tir.Cast("float64", near))
    past = tir.Select(tir.GT(tir.abs(back), tir.abs(x)), _u32(1), _u32(0))
    inexact = tir.Select(tir.NE(back, x), _u32(1), _u32(0))
    bits = tir.bitwise_or(tir.Sub(as_bits(near), past), inexact)
    return tir.Select(tir.isnan(x), near, tir.reinterpret("float32", bits))


def _u32(value: int) -> Prim:
    return tir.IntImm("uint32", value)


def as_bits(value: Prim) -> Prim:
    return tir.reinterpret("uint32", value)


# -------------------------------------------------------------------------------------------------------------------- integers


def wrapping(op: str, left: Prim, right: Prim) -> Prim:
    """``+``, ``-`` or ``*`` modulo 2^bits. TVM marks its own integer arithmetic as free of overflow, LLVM then relies on it."""
    dtype = dtype_of(left)
    wide = _WIDER[dtype]
    operation = {"+": tir.Add, "-": tir.Sub, "*": tir.Mul}[op]
    return tir.Cast(dtype, operation(tir.Cast(wide, left), tir.Cast(wide, right)))


def negative(value: Prim) -> Prim:
    return wrapping("-", tir.IntImm(dtype_of(value), 0), value)


def floor_division(op: str, left: Prim, right: Prim, bind: Bind) -> Prim:
    """``//`` or ``%``, rounding toward minus infinity. Division by zero has no value: the process may die or not return."""
    dtype = dtype_of(left)
    divide = tir.floordiv if op == "//" else tir.floormod
    if dtype != "int64":  # the quotient of the least integer by -1 wraps
        wide = _WIDER[dtype]
        return tir.Cast(dtype, divide(tir.Cast(wide, left), tir.Cast(wide, right)))
    left, right = bind(left), bind(right)
    by_minus_one = negative(left) if op == "//" else tir.IntImm(dtype, 0)
    return tir.if_then_else(tir.EQ(right, tir.IntImm(dtype, -1)), by_minus_one, divide(left, right))


def negation(condition: Prim) -> Prim:
    """``!condition``. TVM's Not would turn ``!(x<y)`` into ``y<=x``, which differs on a NaN."""
    return tir.EQ(tir.Cast("int8", condition), tir.IntImm("int8", 0))
