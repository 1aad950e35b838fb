"""One operation in each dtype: rounding, wrapping, signed zeros, NaN, conversion."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ml_dtypes import bfloat16

from leir.ir import FLOAT_DTYPES
from leir.scalars import STORAGE, UndefinedOperation, apply, cast, constant, identity, rounded

CALLS = ("exp", "log", "sin", "cos", "tanh", "erf", "sigmoid")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def same(x: Any, y: Any) -> bool:
    """Equal to the bit, all NaNs alike."""
    x, y = np.asarray(x), np.asarray(y)
    return x.dtype == y.dtype and bool(np.all(((x == y) & (np.signbit(x) == np.signbit(y))) | ((x != x) & (y != y))))


@given(st.sampled_from("+-*/"), st.floats(width=16), st.floats(width=16))
def test_f16_operations_round_once(op: str, x: float, y: float) -> None:
    exact = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[op](np.float64(x), np.float64(y))
    assert same(apply(op, (np.float16(x), np.float16(y)), "f16"), np.float16(exact))


@given(st.sampled_from("+-*/"), st.floats(width=32), st.floats(width=32))
def test_bf16_operations_agree_with_ml_dtypes(op: str, x: float, y: float) -> None:
    narrow = np.array([x, y], np.float32).astype(bfloat16)
    expected = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[op](narrow[0], narrow[1])
    a, b = rounded(np.array([x, y], np.float32), "bf16")
    assert same(apply(op, (a, b), "bf16"), np.float32(expected))


@given(st.floats(width=32))
def test_f32_to_bf16_agrees_with_ml_dtypes(x: float) -> None:
    assert same(rounded(np.float32(x), "bf16"), np.float32(np.float32(x).astype(bfloat16)))


def test_f64_to_bf16_rounds_once() -> None:
    just_above_the_tie = 1 + 2.0**-8 + 2.0**-40  # f32 would make it the tie itself, and the tie goes to 1
    assert rounded(np.float64(just_above_the_tie), "bf16") == 1 + 2.0**-7
    assert rounded(np.float64(-just_above_the_tie), "bf16") == -1 - 2.0**-7
    assert rounded(np.float64(1 + 2.0**-8), "bf16") == 1
    assert np.isnan(rounded(np.float64(np.nan), "bf16"))
    assert rounded(np.float64([1e300, -1e300, 1e-300]), "bf16").tolist() == [np.inf, -np.inf, 0.0]


@pytest.mark.parametrize("dtype", FLOAT_DTYPES)
def test_maximum_and_minimum_are_ieee_2019(dtype: str) -> None:
    plus, minus, nan = constant(0.0, dtype), -constant(0.0, dtype), constant(math.nan, dtype)
    for x, y in ((plus, minus), (minus, plus)):
        assert not np.signbit(apply("max", (x, y), dtype))
        assert np.signbit(apply("min", (x, y), dtype))
    assert np.signbit(apply("max", (minus, minus), dtype))
    assert not np.signbit(apply("min", (plus, plus), dtype))
    for op in ("max", "min"):
        assert np.isnan(apply(op, (nan, plus), dtype))
        assert np.isnan(apply(op, (plus, nan), dtype))
        assert np.isnan(apply(op, (nan, identity(op, dtype)), dtype))
    several = apply("max", (np.array([0, -1, 3], STORAGE[dtype]), np.array([-0.0, 2, -3], STORAGE[dtype])), dtype)
    assert several.tolist() == [0, 2, 3]
    assert not np.signbit(several[0])


@pytest.mark.parametrize(
    ("op", "x", "y", "result"),
    [
        ("+", 127, 1, -128),
        ("-", -128, 1, 127),
        ("*", 100, 3, 44),
        ("//", -7, 2, -4),
        ("//", 7, -2, -4),
        ("//", -128, -1, -128),
        ("%", -7, 3, 2),
        ("%", 7, -3, -2),
        ("**", 3, 5, -13),
        ("max", -3, 2, 2),
        ("min", -3, 2, -3),
    ],
)
def test_integers_wrap_and_floor(op: str, x: int, y: int, result: int) -> None:
    assert same(apply(op, (np.int8(x), np.int8(y)), "i8"), np.int8(result))
    assert same(apply(op, (np.array([x, 1], np.int8), np.array([y, 1], np.int8)), "i8")[0], np.int8(result))


def test_unary_minus_and_abs_wrap() -> None:
    assert apply("neg", (np.int8(-128),), "i8") == -128
    assert apply("abs", (np.int8(-128),), "i8") == -128


@pytest.mark.parametrize("op", ["//", "%"])
def test_division_by_zero_has_no_value(op: str) -> None:
    with pytest.raises(UndefinedOperation) as caught:
        apply(op, (np.array([[1], [2]], np.int32), np.array([1, 0], np.int32)), "i32")
    assert caught.value.where.tolist() == [[False, True], [False, True]]


def test_negative_integer_power_has_no_value() -> None:
    with pytest.raises(UndefinedOperation):
        apply("**", (np.int32(2), np.int32(-1)), "i32")


@pytest.mark.parametrize(
    ("x", "source", "dtype", "result"),
    [
        (2.9, "f32", "i32", 2),
        (-2.9, "f32", "i32", -2),
        (1e9, "f32", "i8", 127),
        (-math.inf, "f16", "i8", -128),
        (math.inf, "f64", "i64", 2**63 - 1),
        (-(2.0**63), "f64", "i64", -(2**63)),
        (math.nan, "f32", "i32", 0),
        (300, "i32", "i8", 44),
        (-1, "i8", "i64", -1),
        (math.nan, "f32", "bool", True),
        (-0.0, "f32", "bool", False),
        (2, "i32", "bool", True),
        (True, "bool", "f16", 1.0),
        (2049, "i32", "f16", 2048.0),
        (2**24 + 1, "i64", "f32", 2.0**24),
        (2**24 + 2**16 + 1, "i64", "bf16", 2.0**24 + 2.0**17),
        (70000.0, "f32", "f16", math.inf),
    ],
)
def test_casts(x: float, source: str, dtype: str, result: float) -> None:
    value = STORAGE[source].type(x)
    assert same(cast(value, source, dtype), STORAGE[dtype].type(result))
    assert same(cast(np.array([value, value]), source, dtype)[1], STORAGE[dtype].type(result))


def test_literals_take_their_dtype() -> None:
    assert same(constant(0.1, "f16"), np.float16(0.1))
    assert same(constant(300, "i8"), np.int8(44))
    assert same(constant(10**400, "f32"), np.float32(np.inf))
    assert same(constant(0.1, "bf16"), np.float32(0.10009765625))


@pytest.mark.parametrize("dtype", FLOAT_DTYPES)
@pytest.mark.parametrize("op", [*CALLS, "**"])
def test_a_call_does_not_depend_on_its_array(op: str, dtype: str) -> None:
    rng = np.random.default_rng(7)
    x = np.asarray(rounded(np.abs(rng.standard_normal(67)) * 3, dtype))
    other = () if op != "**" else (constant(2.0, dtype),)
    together = apply(op, (x, *other), dtype)
    assert all(same(together[k], apply(op, (x[k], *other), dtype)) for k in range(x.size))
    assert same(apply(op, (x[::-3], *other), dtype), together[::-3])
    assert same(apply(op, (x[:66].reshape(6, 11).T, *other), dtype), together[:66].reshape(6, 11).T)


@pytest.mark.parametrize("op", CALLS)
def test_calls_are_accurate(op: str) -> None:
    exact = {name: getattr(math, name) for name in CALLS if name != "sigmoid"} | {"sigmoid": lambda v: 1 / (1 + math.exp(-v))}
    x = np.abs(np.random.default_rng(3).standard_normal(500)) * 4
    reference = np.array([exact[op](v) for v in x.tolist()])
    assert np.all(np.abs(apply(op, (x,), "f64") - reference) <= 4 * np.spacing(np.abs(reference)))
    single = x.astype(np.float32)
    near = np.array([exact[op](v) for v in single.tolist()])
    assert np.all(np.abs(apply(op, (single,), "f32") - near) <= 0.5001 * np.spacing(np.abs(near).astype(np.float32)))


def test_sigmoid_saturates() -> None:
    assert apply("sigmoid", (np.float32([-1000, 1000]),), "f32").tolist() == [0, 1]
