"""The 60 programs that other tools wrote: read, printed back to the letter, lifted, and run with their sequential meaning."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from leir.interpret import bits, interpret, run_flat
from leir.ir import Nest, Program, Signature
from leir.lift import flatten_program
from leir.parser import parse_nests
from leir.printer import print_nests, print_program
from leir.repair import import_text
from tests.generators import random_inputs
from tests.test_leir.reference_programs import reference_programs

PROGRAMS = list(reference_programs())
POINTS = 20_000  # the point walk takes about a minute for a million


def points(nest: Nest) -> int:
    own = prod(loop.extent for loop in nest.schedule)
    return own * sum(points(item) if isinstance(item, Nest) else 1 for item in nest.body)


def inputs_for(program: Program) -> dict[str, np.ndarray]:
    """Random values; integers stay small enough to be subscripts of every dimension they index here."""
    values = random_inputs(program, 0)
    return {name: np.abs(v) % 2 if v.dtype.kind == "i" else v for name, v in values.items()}


@pytest.mark.parametrize(("signature", "text"), PROGRAMS, ids=[s.name for s, _ in PROGRAMS])
def test_reference_program(signature: Signature, text: str) -> None:
    assert print_nests(parse_nests(text).nests) == text
    program, _ = import_text(text, signature)
    inputs = inputs_for(program)
    result = interpret(program, inputs)
    assert all(array.shape == t.shape for t, array in zip(signature.outputs, result.values(), strict=True))
    flat = flatten_program(program)
    assert print_program(program) == print_nests(flat)
    if sum(map(points, flat)) <= POINTS:
        walked = run_flat(signature, flat, inputs, walk="points")
        for name, array in result.items():
            np.testing.assert_array_equal(bits(array), bits(walked[name]))
