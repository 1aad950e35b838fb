"""Random legal programs: TVM's LLVM against the interpreter, and both against the error bound."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from leir.interpret import bits, interpret
from leir.printer import print_program
from lower.build import build
from lower.compare import summed, within
from lower.draws import draw_inputs
from lower.error_bound import error_bounds
from tests.generators import Options, random_program

FLOATS = ("f16", "bf16", "f32", "f64")
PER_DTYPE = 20


@pytest.mark.parametrize("dtype", FLOATS)
def test_without_transcendental_calls_all_bits_agree(dtype: str) -> None:
    for seed in range(PER_DTYPE):
        p = random_program(Random(seed), Options(dtypes=(dtype,), transcendental=False))
        built = build(p)
        for kind in ("normal", "special"):
            inputs = draw_inputs(p.signature, seed, kind)
            expected, got = interpret(p, inputs), built.run(inputs)
            for name, value in expected.items():
                assert np.array_equal(bits(got[name]), bits(value)), (seed, kind, print_program(p))


@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding_errors_stay_within_the_bound(dtype: str) -> None:
    informative = 0
    for seed in range(1000, 1000 + PER_DTYPE):
        p = random_program(Random(seed), Options(dtypes=(dtype,)))
        built = build(p)
        for kind in ("normal", "positive"):
            inputs = draw_inputs(p.signature, seed, kind)
            reference, bounds = interpret(p, inputs, mode="f64"), error_bounds(p, inputs)
            for tensor in p.signature.outputs:
                bound = bounds.get(tensor.name)
                tolerance = summed(dtype, bound, bound)
                for run in (built.run(inputs), interpret(p, inputs)):
                    assert within(tensor, run[tensor.name], reference[tensor.name], tolerance), (seed, kind, print_program(p))
                informative += bound is not None and bool(np.isfinite(bound).any())
    assert informative > PER_DTYPE
