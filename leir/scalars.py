"""What one operation does in each dtype, on NumPy scalars and arrays alike (leir.md, Arithmetic).

Every function takes and returns values in *storage* form: f16, f32, f64, i8, i32, i64 and bool are NumPy's own; bf16 is a float32
that bf16 can represent. Each operation is rounded once, to nearest even, in its dtype. Where leir.md leaves a choice:

* a transcendental call, ``sigmoid`` and ``**`` are computed in f64 and rounded once to the dtype, so that in f16, bf16 and f32 the
  result is the correctly rounded one but for the rarest ties; ``sigmoid(x)`` is ``1/(1+exp(-x))``, all of it in f64;
* a cast from float to integer truncates toward zero and saturates, and a NaN becomes 0; a cast between integers wraps;
  a cast to bool is ``x!=0``, so a NaN is true;
* an integer literal wraps into its dtype as a cast would;
* ``//`` or ``%`` by zero and an integer raised to a negative power have no value: they raise `UndefinedOperation`.

NumPy warns about overflow and NaN; callers hold ``np.errstate(all="ignore")``, since both are ordinary values here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leir.ir import FLOAT_DTYPES, INT_DTYPES

Value: TypeAlias = Any
"""A NumPy scalar or array in storage form. (NumPy's own types say nothing more of a value whose dtype is known at run time.)"""

STORAGE: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(np.float32),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i8": np.dtype(np.int8),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "bool": np.dtype(np.bool_),
}


class UndefinedOperation(ArithmeticError):
    """An operation without a value. ``where`` is true at the offending elements of the broadcast operands."""

    def __init__(self, message: str, where: NDArray[np.bool_]) -> None:
        super().__init__(message)
        self.where = where


# ------------------------------------------------------------------------------------------------------------------ conversion


def constant(value: int | float, dtype: str) -> Value:
    """The literal ``value`` in ``dtype``: rounded for floats, wrapped for integers."""
    if dtype in INT_DTYPES:
        half = 1 << (STORAGE[dtype].itemsize * 8 - 1)
        return STORAGE[dtype].type((int(value) + half) % (2 * half) - half)
    if dtype == "bool":
        return np.bool_(value != 0)
    try:
        exact = float(value)
    except OverflowError:
        exact = math.inf
    return rounded(np.float64(exact), dtype)


def cast(x: Value, source: str, dtype: str) -> Value:
    """``x`` of dtype ``source`` converted to ``dtype``, with one rounding."""
    if source == dtype:
        return x
    if dtype == "bool":
        return x != 0
    if dtype in FLOAT_DTYPES:
        if dtype == "bf16" and source in ("i32", "i64"):
            x = np.asarray(x, np.float64)  # f32 would round before bf16 does
        return rounded(x, dtype)
    if source in FLOAT_DTYPES:
        return _truncated(x, dtype)
    return np.asarray(x).astype(STORAGE[dtype])


def rounded(x: Value, dtype: str) -> Value:
    """A number of any storage dtype as the nearest ``dtype``, a float dtype; ties go to even."""
    if dtype != "bf16":
        return np.asarray(x).astype(STORAGE[dtype])
    x = np.asarray(x)
    return _bf16_of_f32(_f32_rounded_to_odd(x) if x.dtype == np.float64 else x.astype(np.float32))


def _bf16_of_f32(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """The upper 16 bits of ``x``, rounded to nearest even."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    kept = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(x), np.float32(np.nan), kept.view(np.float32))


def _f32_rounded_to_odd(x: NDArray[np.float64]) -> NDArray[np.float32]:
    """``x`` in f32 with the last bit set where it is inexact: a second, narrower rounding is then as good as a direct one."""
    near = np.asarray(x.astype(np.float32))
    back = near.astype(np.float64)
    bits = near.view(np.uint32)
    toward_zero = bits - (np.abs(back) > np.abs(x)).astype(np.uint32)
    odd = toward_zero | (back != x).astype(np.uint32)
    return np.where(np.isnan(x), near, odd.view(np.float32))


def _truncated(x: Value, dtype: str) -> Value:
    whole = np.trunc(np.asarray(x, np.float64))
    least, greatest = integer_bounds(dtype)
    beyond = -float(least)  # one more than the greatest, and exact in f64
    inside = (whole >= least) & (whole < beyond)  # false for a NaN
    result = np.where(inside, whole, 0.0).astype(np.int64)
    result = np.where(whole >= beyond, np.int64(greatest), np.where(whole < least, np.int64(least), result))
    return result.astype(STORAGE[dtype])


def integer_bounds(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype."""
    half = 1 << (STORAGE[dtype].itemsize * 8 - 1)
    return -half, half - 1


def identity(op: str, dtype: str) -> Value:
    """Where an accumulation by ``op`` (``+ * max min``) starts: 0, 1, -inf, +inf, or the least or greatest integer."""
    if op in ("+", "*"):
        return constant(0 if op == "+" else 1, dtype)
    if dtype in INT_DTYPES:
        return constant(integer_bounds(dtype)[0 if op == "max" else 1], dtype)
    return constant(-math.inf if op == "max" else math.inf, dtype)


# ------------------------------------------------------------------------------------------------------------------ operations


def apply(op: str, args: tuple[Value, ...], dtype: str) -> Value:
    """The operation ``op`` of `leir.elaborate.Apply` on operands of dtype ``dtype`` (a comparison's operands, not its result).

    Raises UndefinedOperation. ``cast`` and ``if_then_else`` are not operations on one dtype, and not handled here.
    """
    if op in _EXACT:
        return _EXACT[op](*args)
    if op in _ROUNDED:
        result = _ROUNDED[op](*args)
        return _bf16_of_f32(result) if dtype == "bf16" else result
    if op in ("max", "min"):
        return _extremum(op, args[0], args[1], dtype)
    if op in ("//", "%"):
        return _floor_division(op, args[0], args[1])
    if op == "**" and dtype in INT_DTYPES:
        return _integer_power(args[0], args[1])
    return _through_f64(_TRANSCENDENTAL[op], args, dtype)


def _extremum(op: str, x: Value, y: Value, dtype: str) -> Value:
    """IEEE 754-2019 maximum or minimum: a NaN propagates, and -0 < +0 (NumPy returns either zero)."""
    result = (np.maximum if op == "max" else np.minimum)(x, y)
    if dtype in INT_DTYPES:
        return result
    zeros = (x == 0) & (y == 0)
    if not np.any(zeros):
        return result
    signed = x + y if op == "max" else -((-x) + (-y))  # a sum of zeros is -0 only where both are
    return np.where(zeros, signed, result)


def _floor_division(op: str, x: Value, y: Value) -> Value:
    _refuse(f"{op} by zero", y == 0, x, y)
    return (np.floor_divide if op == "//" else np.remainder)(x, y)


def _integer_power(x: Value, y: Value) -> Value:
    _refuse("an integer to a negative power", y < 0, x, y)
    return np.power(x, y)


def _refuse(message: str, bad: Value, *operands: Value) -> None:
    if np.any(bad):
        raise UndefinedOperation(message, np.broadcast_to(bad, np.broadcast_shapes(*(np.shape(x) for x in operands))))


def _through_f64(function: Callable[..., Any], args: tuple[Value, ...], dtype: str) -> Value:
    """``function`` of f64, rounded to ``dtype``.

    NumPy picks other code, with other last bits, for a single element and for strided operands. So the operands are made
    contiguous and at least two long: an element's value then does not depend on the array it is in.
    """
    wide = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in args))
    shape, size = wide[0].shape, wide[0].size
    flat = [np.ascontiguousarray(x).reshape(-1) for x in wide]
    if size == 1:
        flat = [np.repeat(x, 2) for x in flat]
    return rounded(function(*flat)[:size].reshape(shape), dtype)


def _sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1.0 / (1.0 + np.exp(-x))


def _erf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.fromiter(map(math.erf, x.tolist()), np.float64, x.size)


_EXACT: dict[str, Callable[..., Any]] = {
    "neg": np.negative,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "not": np.logical_not,
    "&": np.logical_and,
    "|": np.logical_or,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
_ROUNDED: dict[str, Callable[..., Any]] = {
    # NumPy computes f16 in f32 and rounds; f32 holds more than twice the digits of f16 and of bf16, so the two roundings act as one
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "sqrt": np.sqrt,
}
_TRANSCENDENTAL: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": _erf,
    "sigmoid": _sigmoid,
    "**": np.power,
}
