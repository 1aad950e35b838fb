"""factorization on whole random programs: every step that is offered interprets equal."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np

from leir.interpret import interpret
from rewrite.enumerate import Found, enumerate_steps
from tests.generators import Options, random_inputs, random_program

PROGRAMS = 500
OPTIONS = Options(dtypes=("f32", "f64", "i32", "i64"))


def test_every_step_on_random_programs_has_the_same_values() -> None:
    """Bit by bit for integers, which wrap; for floats in the float64 mode, whose rounding is far below the tolerance."""
    counts: Counter[str] = Counter()
    for seed in range(PROGRAMS):
        program = random_program(Random(seed), OPTIONS)
        inputs = random_inputs(program, seed)
        for found in enumerate_steps(program, strategies=["factorization"]):
            assert isinstance(found, Found)
            counts[found.rounding] += 1
            mode = "native" if found.rounding == "bitwise" else "f64"
            before = interpret(program, inputs, mode=mode)  # type: ignore[arg-type]
            after = interpret(found.program, inputs, mode=mode)  # type: ignore[arg-type]
            for name, expected in before.items():
                if mode == "native":
                    np.testing.assert_array_equal(after[name], expected)
                else:
                    np.testing.assert_allclose(after[name], expected, rtol=1e-6, atol=1e-9)
    print(dict(counts))
    assert counts["real"] >= 60
    assert counts["bitwise"] >= 20
