"""How well the roofline model orders programs: Spearman's rank correlation of its costs with times measured through TVM on this CPU."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from benchmarks.measure import Row
from benchmarks.schedules import Case, corpus
from extract.device import this_cpu
from extract.roofline import cost, time_text
from lower.outcome import Timing
from lower.verify import measure
from lower.workers import WorkerPool

FAMILY = 5
"""The least number of programs of one family that get a correlation of their own."""


@dataclass(frozen=True, slots=True)
class Point:
    """One program: seconds as modelled and as measured."""

    case: Case
    modelled: float
    measured: float
    why: str


def rows() -> list[Row]:
    points = measured_points()
    found = [_correlation("all programs", points)]
    for family in dict.fromkeys(p.case.family for p in points):
        own = [p for p in points if p.case.family == family]
        if len(own) >= FAMILY:
            found.append(_correlation(family, own))
    ratios = np.array([p.modelled / p.measured for p in points])
    found.append(Row("model over measurement, median", float(np.median(ratios)), "", f"{len(points)} programs"))
    low, high = np.quantile(ratios, [0.1, 0.9])
    found.append(Row("model over measurement, 10th percentile", float(low), ""))
    found.append(Row("model over measurement, 90th percentile", float(high), ""))
    return found


def measured_points() -> list[Point]:
    """The corpus, costed and timed. What does not run is left out."""
    device = this_cpu()
    points = []
    with WorkerPool(workers=1, timeout_s=60) as pool:
        for case in corpus():
            timing = measure(case.program, pool=pool, repeat=5, min_repeat_ms=5)
            if isinstance(timing, Timing):
                modelled = cost(case.program, device)
                points.append(Point(case, modelled.seconds, timing.fastest_s, modelled.explain()))
    return points


def spearman(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's rank correlation: that of the ranks, equal values sharing their mean rank. 1 for equal order, NaN without one."""
    a, b = ranks(x), ranks(y)
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale else float("nan")


def ranks(values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Ranks from 1; equal values share their mean rank."""
    _, inverse, counts = np.unique(np.asarray(values, np.float64), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], np.float64)


def _correlation(name: str, points: Sequence[Point]) -> Row:
    value = spearman([p.modelled for p in points], [p.measured for p in points])
    return Row(f"rank correlation, {name}", value, "", f"{len(points)} programs")


def main() -> None:
    """Print every program with its modelled and its measured time, worst first, then the correlations."""
    argparse.ArgumentParser(prog="python -m benchmarks.roofline", description=main.__doc__).parse_args()
    start = perf_counter()
    points = measured_points()
    for p in sorted(points, key=lambda p: -abs(np.log(p.modelled / p.measured))):
        ratio = p.modelled / p.measured
        print(f"{p.case.family:22} {p.case.name:28} model {time_text(p.modelled):>8} measured {time_text(p.measured):>8} {ratio:7.2f}")
    print(f"{len(points)} programs in {perf_counter() - start:.0f} s")
    print(f"rank correlation {spearman([p.modelled for p in points], [p.measured for p in points]):.3f}")
    for family in dict.fromkeys(p.case.family for p in points):
        own = [p for p in points if p.case.family == family]
        if len(own) >= FAMILY:
            print(f"  {family:24} {spearman([p.modelled for p in own], [p.measured for p in own]):6.3f}  {len(own)} programs")


if __name__ == "__main__":
    main()
