"""Whether forgetting the written order of a nest is harmless (leir.md, section 4, Lifting)."""

from __future__ import annotations

from itertools import groupby

from leir.ir import Digit, Index, Nest
from leir.polyhedral import (
    Level,
    OverBudgetError,
    Statement,
    Touch,
    compare,
    conflict,
    conflict_kind,
    ordered,
    statements_below,
    within_budget,
)


def written_order_preserves(nest: Nest, outer: tuple[int, ...]) -> bool:
    """Whether the schedule of ``nest`` keeps the order of every hard dependence of its reference order, for fixed values of the
    enclosing axes, of extents ``outer``. Undecided within the isl budget counts as no.

    Both orders then have the same dependences, so the body alone, read in reference order, means what the text means.
    """
    first = len(outer)
    walked = [d for loop in nest.schedule for d in loop.digits]
    if walked == [Digit(first + k, size, 1) for k, size in enumerate(nest.axes)]:
        return True
    found = statements_below(nest, outer)
    touches = sorted(((t.access.tensor.name, k, s, t) for k, s in enumerate(found) for t in s.touches), key=lambda e: e[:2])
    for _, group in groupby(touches, key=lambda e: e[0]):
        members = [(s, t) for _, _, s, t in group]
        pairs = [(s, a, t, b) for s, a in members for t, b in members if conflict_kind(s, a, t, b) == "hard"]
        if not pairs or _pinned(members, nest, first):
            continue
        try:
            if any(within_budget(lambda p=p: _reversed(nest, first, *p)) for p in pairs):
                return False
        except OverBudgetError:
            return False
    return True


def _pinned(members: list[tuple[Statement, Touch]], nest: Nest, first: int) -> bool:
    """Whether a common element forces equal values of all own axes: each is the same whole subscript of every access."""
    common = set(enumerate(members[0][1].access.subscripts))
    for _, touch in members[1:]:
        common &= set(enumerate(touch.access.subscripts))
    pinned = {sub.axis for _, sub in common if isinstance(sub, Index)}
    return all(first + k in pinned or size == 1 for k, size in enumerate(nest.axes))


def _reversed(nest: Nest, first: int, s: Statement, a: Touch, t: Statement, b: Touch) -> bool:
    pairs = conflict(s, a, t, b)
    for axis in range(first):
        same = Level("L", (Digit(axis, s.extents[axis], 1),), 0)
        pairs = compare(pairs, s, same, t, same, "=")
    reference = [Level("L", (Digit(first + k, size, 1),), 0) for k, size in enumerate(nest.axes)]
    written = [Level(loop.kind, loop.digits, 0) for loop in nest.schedule]
    return any(ordered(piece, s, written, t, written, ">") for piece in ordered(pairs, s, reference, t, reference, "<"))
