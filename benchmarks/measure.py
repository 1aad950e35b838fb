"""How the benchmarks measure: the median of several runs, and what was counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: what was measured, its value in ``unit`` (None where there is none), and how to read it."""

    name: str
    value: float | None
    unit: str
    note: str = ""


def seconds(run: Callable[[], object], repeats: int = 5) -> float:
    """The median wall-clock time of ``run``, in seconds."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return median(times)
