"""Programs that are wrong in one known way each: a legal random program, broken as a diagnostic code says.

`BREAKERS` has an entry for every error code; a breaker returns None where the program it drew does not lend itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from tests.illegal.case import Case
from tests.illegal.kernels import KERNELS
from tests.illegal.structure import STRUCTURE
from tests.illegal.values import VALUES

Breaker = Callable[[Random], Case | None]

BREAKERS: Mapping[str, Breaker] = {**STRUCTURE, **VALUES, **KERNELS}


def broken(code: str, rng: Random) -> Case:
    """A program with the fault that ``code`` names."""
    while True:
        case = BREAKERS[code](rng)
        if case is not None:
            return case
