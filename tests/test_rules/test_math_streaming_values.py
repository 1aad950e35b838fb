"""online_softmax gives what the three expressions gave: with infinities and NaN, at random, and in built code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from leir.interpret import Walk, interpret
from leir.ir import Program
from lower.verify import Verifier
from lower.workers import WorkerPool
from rewrite.enumerate import Found, enumerate_steps
from tests.generators import random_inputs
from tests.test_rewrite.checked import applied, assert_sound, program
from tests.test_rules.softmaxes import random_softmax, same, softmax

INF, NAN = float("inf"), float("nan")
NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def _streamed(source: str | Program) -> Program:
    return applied(source, "online_softmax 0").program


ROWS = [
    [-INF] * 6,
    [-INF, -INF, 2, -INF, 3, -INF],
    [2, -INF, -INF, -INF, -INF, 5],
    [INF, 1, 2, 3, -INF, 0],
    [1, 2, INF, INF, -INF, 0],
    [-INF, -INF, -INF, -INF, -INF, INF],
    [-INF] * 5 + [NAN],
    [NAN, INF, -INF, 0, 1, 2],
    [1, 2, 3, NAN, 4, -INF],
    [88, -88, 300, -300, 1e4, -1e4],
    [-3e38, 3e38, 3e38, -3e38, 0, 1],
    [-1e30] * 6,
    [-0.0, 0.0, -0.0, 0.0, -0.0, 0.0],
    [1e-40, -1e-40, 0, 1, 2, 3],
    [-INF, -3e38, -3e38, -3e38, -3e38, -INF],
    [-700, -600, -500, -400, -300, -200],
]


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("start", range(0, 16, 4))
@pytest.mark.parametrize("walk", ["points", "vector"])
def test_rows_with_infinities_and_nan_give_what_they_gave(dtype: str, start: int, walk: Walk) -> None:
    """Maximum, sum and result are outputs: a fully masked row has the sum NaN before and after."""
    source = program(softmax(dtype=dtype))
    made = _streamed(source)
    with np.errstate(over="ignore"):
        a = np.array(ROWS[start : start + 4]).astype(NUMPY[dtype])
    inputs = {"A": a, "G": np.zeros_like(a)}
    same(source, made, inputs, "native")
    assert interpret(made, inputs, walk=walk)["D"].shape == (4,)


def test_a_fully_masked_row_is_nan_in_sum_and_result() -> None:
    made = _streamed(softmax())
    found = interpret(made, {"A": np.full((4, 6), -INF, np.float32), "G": np.zeros((4, 6), np.float32)})
    assert np.all(np.isnan(found["D"]))
    assert np.all(np.isnan(found["E"]))
    assert np.all(found["C"] == -INF)


def test_every_order_of_masked_and_unmasked_values() -> None:
    """All rows of -inf, a finite value and a larger one, +inf and NaN, of length 4."""
    kinds = (-INF, -1.0, 2.0, INF, NAN)
    rows = np.array(np.meshgrid(*[kinds] * 4)).reshape(4, -1).T
    source = program(softmax(dtype="f64", size=(625, 4)))
    same(source, _streamed(source), {"A": rows, "G": np.zeros_like(rows)}, "native")


def test_random_softmaxes_give_what_they_gave() -> None:
    """In the dtype with infinities and large values, and in f64 with ordinary ones, to the last few bits."""
    counts: Counter[str] = Counter()
    for seed in range(300):
        rng = Random(seed)
        source = random_softmax(rng)
        (found,) = enumerate_steps(source, strategies=["online_softmax"])
        assert isinstance(found, Found)
        assert_sound(found.program)
        inputs = random_inputs(source, seed)
        same(source, found.program, {k: v * 5 for k, v in inputs.items()}, "f64")
        chance = np.random.default_rng(seed)
        special = np.array([-INF, INF, NAN, 0, 8, -8])
        hard = {}
        for name, values in inputs.items():
            picked = chance.choice(special, values.shape, p=[0.4, 0.03, 0.02, 0.2, 0.15, 0.2])
            with np.errstate(invalid="ignore"):
                hard[name] = np.where(chance.random(values.shape) < 0.5, picked, values * 4).astype(values.dtype)
        same(source, found.program, hard, "native")
        counts[str(values.dtype)] += 1
    print(dict(counts))
    assert min(counts.values()) >= 60


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with WorkerPool(workers=1, timeout_s=60, memory_gib=2) as pool:
        yield Verifier(pool)


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_built_code_agrees(verifier: Verifier, dtype: str) -> None:
    source = program(softmax("A_{a,c}*0.5", dtype=dtype))
    verdict = verifier.verify(source, _streamed(source), "real")
    assert verdict.answer == "equal", verdict
