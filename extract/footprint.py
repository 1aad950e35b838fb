"""How much memory a strided walk touches.

A *shape* is what a set of loops does to an address: for every loop that moves it, (stride in bytes, number of iterations). The
bytes of one element and a shape tell which lines are touched, exactly for a single stride and for strides that nest (tiles,
windows of a convolution, rows); where progressions overlap without nesting it is an over-estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, gcd
from typing import TypeAlias

Shape: TypeAlias = tuple[tuple[int, int], ...]
"""(|stride| in bytes, iterations), strides not 0, iterations above 1."""


@dataclass(frozen=True, slots=True)
class Reach:
    """``run`` contiguous bytes (up to gaps smaller than a line), repeated over ``progressions`` of (stride, count)."""

    run: int
    progressions: tuple[tuple[int, int], ...]

    @property
    def repeats(self) -> int:
        total = 1
        for _, count in self.progressions:
            total *= count
        return total


@lru_cache(maxsize=100_000)
def reach(shape: Shape, item: int, line: int) -> Reach:
    """What ``shape``, its strides ascending, touches with elements of ``item`` bytes."""
    run = item
    progressions: list[tuple[int, int]] = []
    for stride, count in shape:
        if not progressions and stride <= max(run, line):
            run += stride * (count - 1)
            continue
        if progressions:
            inner, n = progressions[-1]
            if stride % inner == 0 and stride <= inner * n:
                progressions[-1] = (inner, min(n * count, n + stride // inner * (count - 1)))
                continue
        progressions.append((stride, count))
    return Reach(run, tuple(progressions))


def ascending(shape: Shape) -> Shape:
    return tuple(sorted(shape))


@lru_cache(maxsize=100_000)
def lines(shape: Shape, item: int, line: int) -> int:
    """How many lines of ``line`` bytes are touched."""
    touched = reach(ascending(shape), item, line)
    return ceil(touched.run / line) * touched.repeats


@lru_cache(maxsize=100_000)
def elements(shape: Shape, item: int) -> int:
    """How many different elements are touched."""
    touched = reach(ascending(shape), item, item)
    return touched.run // item * touched.repeats


@lru_cache(maxsize=100_000)
def sets_met(shape: Shape, item: int, line: int, sets: int) -> int:
    """How many of a cache's ``sets`` the lines fall into: strides that share a factor with the number of sets meet few."""
    touched = reach(ascending(shape), item, line)
    met = min(sets, ceil(touched.run / line))
    for stride, count in touched.progressions:
        different = count if stride % line else min(count, sets // gcd(sets, stride // line))
        met = min(sets, met * different)
    return met


@lru_cache(maxsize=100_000)
def first_run(shape: Shape, item: int, line: int) -> int:
    """The contiguous bytes, up to gaps smaller than a line, that are walked before the first jump; ``shape`` innermost first."""
    run = item
    for stride, count in shape:
        if stride > max(run, line):
            break
        run += stride * (count - 1)
    return run
