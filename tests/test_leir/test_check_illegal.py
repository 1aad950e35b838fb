"""Every error code finds its fault: 200 programs broken in the way of the code, out of legal random ones."""

from __future__ import annotations

from random import Random

import pytest

from leir.check import check, check_flat
from leir.diagnostics import CODES
from leir.lift import make_program
from leir.printer import print_nests
from tests.illegal import BREAKERS, broken

ERRORS = [code for code, info in CODES.items() if info.severity == "error"]
COUNT = 200


def test_every_error_code_has_a_breaker() -> None:
    assert sorted(BREAKERS) == sorted(ERRORS)


@pytest.mark.parametrize("code", ERRORS)
def test_broken_programs_are_diagnosed(code: str) -> None:
    rng = Random(code)
    diagnosed = 0
    for k in range(COUNT):
        case = broken(code, rng)
        found = check_flat(case.signature, case.nests, target=case.target)
        assert code in {d.code for d in found}, (case.signature.tensors, print_nests(case.nests), [str(d) for d in found])
        diagnosed += 1
        if k % 10 == 0:  # in normal form it is the same program, and no fault keeps it from being made
            assert check(make_program(case.signature, case.nests), target=case.target) == found
    print(f"{code}: {diagnosed} diagnosed")
    assert diagnosed >= COUNT
