"""Verdicts: equal, different, undecided."""

from __future__ import annotations

import json

import pytest

from leir.ir import Program
from lower.outcome import Outcome, Timing
from lower.verify import Verdict, Verifier, measure, verify
from lower.workers import WorkerPool
from tests.test_lower.programs import program

ROWS = "A F[8,16]; D F[8,16] output"
MAXIMUM = "L^{8}_{a=0}[L^{16}_{c=0}[M^F_{a}=max(M^F_{a},A^F_{a,c});];"
SOFTMAX = (
    MAXIMUM
    + "L^{16}_{c=0}[E^F_{a,c}=exp(A^F_{a,c}-M^F_{a});S^F_{a}=S^F_{a}+E^F_{a,c};];L^{16}_{c=0}[D^F_{a,c}=E^F_{a,c}/S^F_{a};];];"
)
# the sum from the other end, and a product with the reciprocal
REGROUPED = (
    MAXIMUM + "L^{16}_{c=0}[E^F_{a,c}=exp(A^F_{a,c}-M^F_{a});];L^{16}_{c=0}[S^F_{a}=S^F_{a}+E^F_{a,15-c};];"
    "L^{16}_{c=0}[D^F_{a,c}=E^F_{a,c}*(1/S^F_{a});];];"
)
ONE_SHORT = REGROUPED.replace("L^{16}_{c=0}[S", "L^{15}_{c=0}[S")
SAME_ORDER = (
    MAXIMUM.replace("L^{8}", "P^{8}") + "L^{16}_{c=0}[E^F_{a,c}=exp(A^F_{a,c}-M^F_{a});];L^{16}_{c=0}[S^F_{a}=S^F_{a}+E^F_{a,c};];"
    "V^{16}_{c=0}[D^F_{a,c}=E^F_{a,c}/S^F_{a};];];"
)


def softmax(text: str = SOFTMAX, dtype: str = "f32") -> Program:
    return program(ROWS, text, dtype)


def verdict(pool: WorkerPool, a: Program, b: Program, rounding: str) -> Verdict:
    return verify(a, b, pool=pool, rounding=rounding)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_the_same_operations_in_the_same_order_are_equal_bit_by_bit(pool: WorkerPool, dtype: str) -> None:
    got = verdict(pool, softmax(dtype=dtype), softmax(SAME_ORDER, dtype), "bitwise")
    assert got.answer == "equal"
    assert got.compared == got.elements == 3 * 128
    assert got.mismatches == 0


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_regrouping_is_no_bitwise_step_but_a_real_one(pool: WorkerPool, dtype: str) -> None:
    verifier = Verifier(pool)
    a, b = softmax(dtype=dtype), softmax(REGROUPED, dtype)
    assert verifier.verify(a, b, "bitwise").answer == "different"
    got = verifier.verify(a, b, "real")
    assert got.answer == "equal"
    assert got.max_ulp > 0
    assert got.worst is not None
    assert abs(got.worst.got - got.worst.expected) <= got.worst.tolerance


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_a_sum_that_misses_a_term_is_different(pool: WorkerPool, dtype: str) -> None:
    got = verdict(pool, softmax(dtype=dtype), softmax(ONE_SHORT, dtype), "real")
    assert got.answer == "different"
    assert got.mismatches
    assert got.worst is not None
    assert got.worst.tensor == "D"
    assert abs(got.worst.got - got.worst.expected) > got.worst.tolerance
    assert got.reason == f"{got.mismatches} elements differ"


def test_a_constant_off_in_the_fifth_digit_is_different(pool: WorkerPool) -> None:
    text = "L^{8}_{a=0}L^{16}_{c=0}[D^F_{a,c}=A^F_{a,c}*1.0001;];"
    assert verdict(pool, softmax(text), softmax(text.replace("1.0001", "1.0002")), "real").answer == "different"


def test_nothing_finite_to_compare_is_undecided(pool: WorkerPool) -> None:
    nan = softmax("L^{8}_{a=0}L^{16}_{c=0}[D^F_{a,c}=log(-1-A^F_{a,c}*A^F_{a,c});];")
    for rounding in ("bitwise", "real"):
        got = verdict(pool, nan, nan, rounding)
        assert (got.answer, got.compared, got.reason) == ("undecided", 0, "there was nothing finite to compare")


def test_a_bound_as_large_as_the_values_is_undecided(pool: WorkerPool) -> None:
    noise = softmax("L^{8}_{a=0}L^{16}_{c=0}[E^F_{a,c}=A^F_{a,c}/3;D^F_{a,c}=E^F_{a,c}*3-A^F_{a,c};];")
    zero = softmax("L^{8}_{a=0}L^{16}_{c=0}[D^F_{a,c}=A^F_{a,c}-A^F_{a,c};];")
    assert verdict(pool, zero, noise, "real").answer == "undecided"


def test_overflow_counts_as_different_unless_the_class_allows_it(pool: WorkerPool) -> None:
    naive = softmax(
        "L^{8}_{a=0}[L^{16}_{c=0}[E^F_{a,c}=exp(A^F_{a,c});S^F_{a}=S^F_{a}+E^F_{a,c};];L^{16}_{c=0}[D^F_{a,c}=E^F_{a,c}/S^F_{a};];];"
    )
    assert verdict(pool, softmax(), naive, "real").answer == "different"
    assert verdict(pool, softmax(), naive, "real+range").answer == "equal"


def test_signed_zeros_differ_bitwise_and_nans_do_not(pool: WorkerPool) -> None:
    text = "L^{8}_{a=0}L^{16}_{c=0}[D^F_{a,c}=VALUE;];"
    plus, minus = softmax(text.replace("VALUE", "A^F_{a,c}*0")), softmax(text.replace("VALUE", "-(A^F_{a,c}*0)"))
    assert verdict(pool, plus, minus, "bitwise").answer == "different"
    mixed = "if_then_else(c<8,1,NAN)"
    one = softmax(text.replace("VALUE", mixed.replace("NAN", "inf-inf")))
    other = softmax(text.replace("VALUE", mixed.replace("NAN", "sqrt(-1-A^F_{a,c}*A^F_{a,c})")))
    got = verdict(pool, one, other, "bitwise")
    assert (got.answer, got.compared, got.elements) == ("equal", 3 * 64, 3 * 128)


def test_a_program_that_cannot_run_is_undecided_and_says_why(pool: WorkerPool) -> None:
    wild = softmax("L^{8}_{a=0}L^{16}_{c=0}[D^F_{a,c}=A^F_{a,c};];L^{1000000}_{a=0}[D^F_{a*1000,0}=0;];")
    got = verdict(pool, softmax(), wild, "bitwise")
    assert got.answer == "undecided"
    assert got.reason.startswith("the second program, run: crash: the worker was killed by SIG")
    unread = softmax("L^{8}_{a=0}L^{16}_{c=0}[D^F_{a,c}=E^F_{a,c};E^F_{a,c}=A^F_{a,c};];")
    got = verdict(pool, unread, softmax(), "real")
    assert got.reason.startswith("the first program, interpret: run-error: InterpretError")


def test_other_known_tensors_are_undecided(pool: WorkerPool) -> None:
    assert verdict(pool, softmax(), softmax(dtype="f64"), "real").reason == "the programs have different known tensors"


def test_integers_and_bools_are_compared_exactly(pool: WorkerPool) -> None:
    tensors = "A i32[64]; C bool[64] output; D i32[64] output"
    a = program(tensors, "L^{64}_{a=0}[D^{i32,g}_{a}=A^{i32,g}_{a}*2;C^{bool,g}_{a}=A^{i32,g}_{a}>0;];")
    b = program(tensors, "L^{64}_{a=0}[D^{i32,g}_{a}=A^{i32,g}_{a}+A^{i32,g}_{a};C^{bool,g}_{a}=!(A^{i32,g}_{a}<=0);];")
    c = program(tensors, "L^{64}_{a=0}[D^{i32,g}_{a}=A^{i32,g}_{a}+A^{i32,g}_{a};C^{bool,g}_{a}=A^{i32,g}_{a}>=0;];")
    assert verdict(pool, a, b, "real").answer == "equal"
    got = verdict(pool, a, c, "real")
    assert got.answer == "different"
    assert got.worst is not None
    assert got.worst.tensor == "C"


def test_many_at_once_are_judged_as_one_by_one(pool: WorkerPool) -> None:
    others = [(softmax(t), r) for t in (SOFTMAX, SAME_ORDER, REGROUPED, ONE_SHORT) for r in ("bitwise", "real")]
    together = Verifier(pool).verify_many(softmax(), others)  # type: ignore[arg-type]
    assert [v.answer for v in together] == ["equal", "equal", "equal", "equal", "different", "equal", "different", "different"]
    assert together == [Verifier(pool).verify(softmax(), b, r) for b, r in others]  # type: ignore[arg-type]


def test_a_verdict_is_plain_data(pool: WorkerPool) -> None:
    naive = softmax("L^{8}_{a=0}L^{16}_{c=0}[D^F_{a,c}=exp(A^F_{a,c})*0;];")
    got = verdict(pool, softmax(), naive, "real").to_json()
    assert json.loads(json.dumps(got, allow_nan=False)) == got
    assert got["draws"] == ["normal", "positive", "adversarial"]


def test_timing(pool: WorkerPool) -> None:
    got = measure(softmax(), pool=pool, repeat=5, min_repeat_ms=2)
    assert isinstance(got, Timing)
    assert 0 < got.fastest_s <= got.median_s < 0.1
    assert got.calls == 5
    assert got.spread >= 0
    power = program("A i32[4]; D i32[4] output", "L^{4}_{a=0}[D^{i32,g}_{a}=A^{i32,g}_{a}**A^{i32,g}_{a};];")
    failed = measure(power, pool=pool)
    assert isinstance(failed, Outcome)
    assert failed.status == "refused"
