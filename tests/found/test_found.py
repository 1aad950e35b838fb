"""Every input that once failed goes through everything that reads a program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leir.check import check, check_flat, has_errors
from leir.files import load_text
from leir.interpret import bits, interpret
from leir.key import key
from leir.lift import flatten_program, make_program
from leir.parser import parse
from leir.printer import print_program
from rewrite.enumerate import Found, enumerate_steps
from tests.generators import random_inputs

FILES = sorted(Path(__file__).parent.glob("*.leir"))


@pytest.mark.parametrize("path", FILES, ids=[p.stem for p in FILES])
def test_found(path: Path) -> None:
    program = load_text(path.read_text(), str(path))
    assert parse(print_program(program), program.signature) == program
    assert make_program(program.signature, program.nests) == program
    assert len(key(program)) == 32
    flat = flatten_program(program)
    assert check_flat(program.signature, flat) == check(program, flat=flat)
    if has_errors(check(program)):
        return
    inputs = random_inputs(program, 0)
    expected = interpret(program, inputs, walk="points")
    for name, array in interpret(program, inputs).items():
        np.testing.assert_array_equal(bits(array), bits(expected[name]))
    for found in enumerate_steps(program, "cuda"):
        assert isinstance(found, Found)
        assert not has_errors(check(found.program))
        if found.rounding == "bitwise":
            for name, array in interpret(found.program, inputs).items():
                np.testing.assert_array_equal(bits(array), bits(expected[name]))


def test_every_file_is_told_about() -> None:
    told = (Path(__file__).parent / "README.md").read_text()
    assert all(f"`{path.name}`" in told for path in FILES)
