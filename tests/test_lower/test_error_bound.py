"""The running error analysis: what it says on programs whose error is known."""

from __future__ import annotations

import numpy as np
import pytest

from leir.interpret import interpret
from lower.draws import draw_inputs
from lower.error_bound import UNIT_ROUNDOFF, error_bounds
from tests.test_lower.programs import program

U = UNIT_ROUNDOFF["f32"]


def bound(tensors: str, text: str, inputs: dict[str, np.ndarray], dtype: str = "f32") -> np.ndarray:
    return error_bounds(program(tensors, text, dtype), inputs)["D"]


def test_a_copy_is_exact() -> None:
    assert not bound("A F[4]; D F[4] output", "L^{4}_{a=0}[D^F_{a}=-max(A^F_{a},0);];", {"A": np.ones(4, np.float32)}).any()


def test_one_operation_rounds_once() -> None:
    got = bound("A F[1]; D F[1] output", "[D^F_{0}=A^F_{0}*3;];", {"A": np.array([2], np.float32)})
    np.testing.assert_allclose(got, 6 * U)


def test_a_constant_that_the_dtype_lacks_counts() -> None:
    got = bound("D F[1] output", "[D^F_{0}=0.1;];", {})
    np.testing.assert_allclose(got, abs(float(np.float32(0.1)) - 0.1))


def test_a_sum_adds_one_rounding_per_partial_sum() -> None:
    a = np.array([1, 2, 4], np.float32)
    got = bound("A F[3]; D F output", "L^{3}_{a=0}[D^F=D^F+A^F_{a};];", {"A": a})
    np.testing.assert_allclose(got, (1 + 3 + 7) * U)


def test_cancellation_shows() -> None:
    inputs = {"A": np.array([1], np.float32)}
    got = bound("A F[1]; D F[1] output", "[E^F_{0}=A^F_{0}*3;D^F_{0}=E^F_{0}-A^F_{0}*3;];", inputs)
    np.testing.assert_allclose(got, 2 * 3 * U)


def test_a_product_accumulates_relative_errors() -> None:
    a = np.array([3, 5, 7], np.float32)
    got = bound("A F[3]; D F output", "L^{3}_{a=0}[D^F=D^F*A^F_{a};];", {"A": a})
    np.testing.assert_allclose(got, 105 * 3 * U, rtol=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "[E^F_{0}=A^F_{0}*(1/3);D^F_{0}=if_then_else(E^F_{0}>0.1,1,0);];",  # 0.3*(1/3) against 0.1
        "[E^F_{0}=A^F_{0}*10;D^F_{0}=floor(E^F_{0});];",  # just about 3
        "[E^F_{0}=A^F_{0}*3-A^F_{0}*3;D^F_{0}=1/E^F_{0};];",  # by something that may be zero
    ],
)
def test_where_rounding_decides_the_bound_is_infinite(text: str) -> None:
    assert np.isinf(bound("A F[1]; D F[1] output", text, {"A": np.array([0.3], np.float32)}))


def test_a_condition_that_rounding_cannot_flip_costs_nothing() -> None:
    text = "[E^F_{0}=A^F_{0}*3;D^F_{0}=if_then_else(E^F_{0}>0.1&A^F_{0}==A^F_{0},1,0);];"
    assert bound("A F[1]; D F[1] output", text, {"A": np.array([0.3], np.float32)}) == 0


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_the_bound_holds_and_is_not_wide(dtype: str) -> None:
    text = (
        "L^{8}_{a=0}[L^{16}_{c=0}[M^F_{a}=max(M^F_{a},A^F_{a,c});];"
        "L^{16}_{c=0}[E^F_{a,c}=exp(A^F_{a,c}-M^F_{a});S^F_{a}=S^F_{a}+E^F_{a,c};];L^{16}_{c=0}[D^F_{a,c}=E^F_{a,c}/S^F_{a};];];"
    )
    p = program("A F[8,16]; D F[8,16] output", text, dtype)
    inputs = draw_inputs(p.signature, 0, "normal")
    reference, got = interpret(p, inputs, mode="f64")["D"], interpret(p, inputs)["D"].astype(np.float64)
    limit = error_bounds(p, inputs)["D"]
    share = np.abs(got - reference) / limit
    assert share.max() <= 1
    assert dtype == "f64" or share.max() > 0.05  # f64 against itself: no error at all
    assert np.all(limit <= 64 * UNIT_ROUNDOFF[dtype] * reference)


def test_a_mask_of_minus_infinity_costs_nothing() -> None:
    text = "L^{2}_{a=0}[E^F_{a}=if_then_else(a<1,-inf,A^F_{a});M^F=max(M^F,A^F_{a});];L^{2}_{a=0}[D^F_{a}=exp(E^F_{a}-M^F);];"
    got = bound("A F[2]; D F[2] output", text, {"A": np.array([1, 2], np.float32)})
    assert got[0] < 1e-40
    assert got[1] < 1e-6


def test_a_square_of_nearly_nothing_has_a_bound() -> None:
    got = bound("A F[1]; D F[1] output", "[E^F_{0}=A^F_{0}*3-A^F_{0}*3;D^F_{0}=E^F_{0}**2;];", {"A": np.array([0.1], np.float32)})
    assert got < 1e-14
