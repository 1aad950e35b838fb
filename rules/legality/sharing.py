"""What two consecutive expressions would do to each other under shared loops (operator fusion).

Before, all of the first runs before all of the second. Under shared loops an iteration of the second runs before the later
iterations of the first, and a loop that runs its iterations at once orders nothing between them. Worked out on flat nests, where
the k-th loop of each is its axis k.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Literal

from leir.ir import Index, Loop, Nest, Tensor
from leir.polyhedral import OverBudgetError, Statement, Touch, compare, conflict, conflict_kind, statements, within_budget
from rules.legality.dependence import Clash, axis_level, clash_in


@dataclass(frozen=True, slots=True, eq=False)
class Crossing:
    """An instance of the first expression and one of the second that clash, and part at shared loop ``level``: there the second's
    value is less (``sign`` -1) or greater (1). Without a clash, isl ran over its budget there on ``tensor``."""

    level: int
    sign: Literal[-1, 1]
    tensor: Tensor
    clash: Clash | None


def shared_depth(first: Nest, second: Nest) -> int:
    """How many outermost loops agree in kind, extent and GPU index."""
    depth = 0
    for a, b in zip(first.schedule, second.schedule, strict=False):
        if (a.kind, a.extent, a.gpu_axis) != (b.kind, b.extent, b.gpu_axis):
            break
        depth += 1
    return depth


def first_crossing(first: Nest, second: Nest, depth: int) -> Crossing | None:
    """What forbids two flat expressions to share ``depth`` loops: a clash whose second half would run first, or at once with it."""
    for crossing in crossings(first, second, shared_depth(first, second)):
        if crossing.level < depth and _forbids(crossing, first.schedule[crossing.level]):
            return crossing
    return None


def _forbids(crossing: Crossing, loop: Loop) -> bool:
    if loop.kind in ("L", "U"):
        return crossing.sign < 0
    scope = crossing.tensor.scope
    private = loop.kind == "B" and (scope == "l" or (scope == "s" and loop.name[0] == "b"))
    return not private


@lru_cache(maxsize=20_000)
def crossings(first: Nest, second: Nest, depth: int) -> tuple[Crossing, ...]:
    """One crossing per pair of touches, level and sign, if there is any; by level."""
    found: list[Crossing] = []
    for s, a, t, b in _touching(first, second):
        open_levels = [k for k in range(depth) if first.axes[k] > 1 and not _pinned(a, b, k)]
        if not open_levels:
            continue
        try:
            found += within_budget(lambda s=s, a=a, t=t, b=b: list(_search(s, a, t, b, depth)))
        except OverBudgetError:
            found.append(Crossing(open_levels[0], -1, a.access.tensor, None))
    return tuple(sorted(found, key=lambda c: c.level))


def _touching(first: Nest, second: Nest) -> Iterator[tuple[Statement, Touch, Statement, Touch]]:
    def name(entry: tuple[Statement, Touch]) -> str:
        return entry[1].access.tensor.name

    every = [[(s, touch) for s in statements((nest,), first=k) for touch in s.touches] for k, nest in enumerate((first, second))]
    theirs = {n: list(group) for n, group in groupby(sorted(every[1], key=name), key=name)}
    for s, a in every[0]:
        for t, b in theirs.get(a.access.tensor.name, ()):
            if conflict_kind(s, a, t, b) is not None:
                yield s, a, t, b


def _pinned(a: Touch, b: Touch, level: int) -> bool:
    """Whether one dimension is subscripted by this shared loop alone on both sides, so that equal elements mean equal values."""
    return any(
        isinstance(x, Index) and x is y and x.axis == level for x, y in zip(a.access.subscripts, b.access.subscripts, strict=True)
    )


def _search(s: Statement, a: Touch, t: Statement, b: Touch, depth: int) -> Iterator[Crossing]:
    pairs = conflict(s, a, t, b)
    for k in range(depth):
        level_s, level_t = axis_level(s, k), axis_level(t, k)
        if not _pinned(a, b, k):
            for sign, op in _SIGNS:
                clash = clash_in(compare(pairs, s, level_s, t, level_t, op), s, a, t, b)
                if clash is not None:
                    yield Crossing(k, sign, a.access.tensor, clash)
        pairs = compare(pairs, s, level_s, t, level_t, "=")
        if pairs.is_empty():
            return


_SIGNS: tuple[tuple[Literal[-1, 1], Literal["<", ">"]], ...] = ((-1, ">"), (1, "<"))
