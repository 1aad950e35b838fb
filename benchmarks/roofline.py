"""How well the roofline model orders programs: Spearman's rank correlation of its costs with times measured through TVM on this
CPU.

Two corpora: schedules written to differ (`benchmarks.schedules.corpus`), on which the model's figures were calibrated, and the
ends of random walks over legal steps (`walks`), which it has not seen. Every program is measured twice: how the two measurements
correlate is the most that any model can reach on the machine as it is.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from time import perf_counter

import numpy as np

from benchmarks.measure import Row
from benchmarks.schedules import Case, corpus, walks
from extract.correlation import spearman
from extract.device import this_cpu
from extract.roofline import cost, time_text
from lower.outcome import Timing
from lower.verify import measure
from lower.workers import WorkerPool

FAMILY = 5
"""The least number of programs of one family that get a correlation of their own."""
WALKS = 12
"""Programs per original."""


@dataclass(frozen=True, slots=True)
class Point:
    """One program: seconds as modelled, and as measured twice."""

    case: Case
    modelled: float
    measured: float
    again: float

    @property
    def ratio(self) -> float:
        return self.modelled / self.measured


def rows(seed: int = 0) -> list[Row]:
    written, walked = points(corpus()), points(walks(WALKS, seed))
    return [*_summary("schedules", written), *_summary("walks", walked), *_families([*written, *walked])]


def points(cases: Sequence[Case]) -> list[Point]:
    """The programs of ``cases``, costed and timed. What does not run is left out."""
    device = this_cpu()
    found = []
    with WorkerPool(workers=1, timeout_s=60) as pool:
        for case in cases:
            first, second = (measure(case.program, pool=pool, repeat=5, min_repeat_ms=4) for _ in range(2))
            if isinstance(first, Timing) and isinstance(second, Timing):
                found.append(Point(case, cost(case.program, device).seconds, first.fastest_s, second.fastest_s))
    return found


def _summary(name: str, points: Sequence[Point]) -> list[Row]:
    errors = np.log([p.ratio for p in points])
    return [
        _correlation(name, points),
        _percent(f"{name}: one measurement with another", spearman([p.again for p in points], [p.measured for p in points])),
        Row(f"{name}: model over measurement", exp(float(np.median(errors))), "(median)"),
        Row(f"{name}: typical error", exp(float(np.sqrt(np.mean(errors**2)))), "times", "root mean square of the logarithm"),
    ]


def _families(points: Sequence[Point]) -> list[Row]:
    found = []
    for family in dict.fromkeys(p.case.family for p in points):
        own = [p for p in points if p.case.family == family]
        if len(own) >= FAMILY:
            found.append(_correlation(family, own))
    return found


def _correlation(name: str, points: Sequence[Point]) -> Row:
    found = spearman([p.modelled for p in points], [p.measured for p in points])
    return _percent(f"{name}: rank correlation", found, f"{len(points)} programs")


def _percent(name: str, value: float | None, note: str = "") -> Row:
    return Row(name, float("nan") if value is None else 100 * value, "%", note)


def main() -> None:
    """Print every program with its modelled and its measured time, the largest errors first, then the correlations."""
    given = argparse.ArgumentParser(prog="python -m benchmarks.roofline", description=main.__doc__)
    given.add_argument("--seed", type=int, default=0, help="of the random walks (default: 0)")
    seed = given.parse_args().seed
    start = perf_counter()
    written, walked = points(corpus()), points(walks(WALKS, seed))
    for p in sorted([*written, *walked], key=lambda p: -abs(log(p.ratio))):
        times = f"model {time_text(p.modelled):>8} measured {time_text(p.measured):>8} {p.ratio:7.2f}"
        print(f"{p.case.family:22} {p.case.name:28} {times}")
    print(f"{len(written) + len(walked)} programs in {perf_counter() - start:.0f} s")
    for row in (*_summary("schedules", written), *_summary("walks", walked), *_families([*written, *walked])):
        print(f"{row.name:46} {row.value:7.1f} {row.unit:9} {row.note}")


if __name__ == "__main__":
    main()
