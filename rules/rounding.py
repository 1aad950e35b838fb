"""How rounding classes add up over several steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from rules.strategy import Rounding

ORDER: tuple[Rounding, ...] = get_args(Rounding)
"""From the strictest class to the loosest."""


def loosest(classes: Iterable[Rounding]) -> Rounding:
    """What a sequence of steps keeps of rounding: the loosest of their classes, ``bitwise`` for none."""
    return max(classes, key=ORDER.index, default="bitwise")
