"""The algebraic strategies on whole random programs: every step that is offered interprets equal."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from leir.interpret import Mode, interpret
from rewrite.enumerate import Found, enumerate_steps
from tests.generators import Options, random_inputs, random_program

OPTIONS = Options(dtypes=("f32", "f64", "i32", "i64"))


@pytest.mark.parametrize(
    ("strategy", "programs", "real", "bitwise"),
    [("factorization", 500, 60, 20), ("expand_factorization", 300, 60, 100), ("powsimp", 300, 8, 8)],
)
def test_every_step_on_random_programs_has_the_same_values(strategy: str, programs: int, real: int, bitwise: int) -> None:
    """Bit by bit for integers, which wrap; for floats in the float64 mode, whose rounding is far below the tolerance."""
    counts: Counter[str] = Counter()
    for seed in range(programs):
        program = random_program(Random(seed), OPTIONS)
        inputs = random_inputs(program, seed)
        for found in enumerate_steps(program, strategies=[strategy]):
            assert isinstance(found, Found)
            counts[found.rounding] += 1
            mode: Mode = "native" if found.rounding == "bitwise" else "f64"
            before = interpret(program, inputs, mode=mode)
            after = interpret(found.program, inputs, mode=mode)
            for name, expected in before.items():
                if mode == "native":
                    np.testing.assert_array_equal(after[name], expected)
                else:
                    np.testing.assert_allclose(after[name], expected, rtol=1e-6, atol=1e-9)
    print(dict(counts))
    assert counts["real"] >= real
    assert counts["bitwise"] >= bitwise
