"""Value flow from one equation to another: whose value a read gets, and whether it can be computed again there (compute_inline).

The producer is a plain equation whose write map is injective, so each element has one instance of it. Worked out on a window of
expressions: the producer's, the consumer's, and those between that write what either reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from leir.ir import Nest
from leir.polyhedral import (
    Map,
    OverBudgetError,
    Set,
    Statement,
    Touch,
    compare,
    conflict,
    ordered,
    sample,
    statements,
    touch_relation,
    within_budget,
)
from rules.legality.dependence import Clash, Undecided, axis_level, clash_in


@dataclass(frozen=True, slots=True, eq=False)
class Foreign:
    """An instance of the consumer reads an element whose value is not the producer's: ``clash`` with one that wrote it, or None
    where nobody did and it starts from the identity."""

    tensor: str
    exact: bool
    clash: Clash | None


@dataclass(frozen=True, slots=True, eq=False)
class Changed:
    """What the producer read (``clash.a``) is written by ``clash.s`` after that, and before the consumer's instance ``clash.y``."""

    clash: Clash
    exact: bool


Broken: TypeAlias = Foreign | Changed | Undecided


@lru_cache(maxsize=50_000)
def broken_flow(window: tuple[Nest, ...], producer: tuple[int, ...], consumer: tuple[int, ...]) -> Broken | None:
    """Why the consumer may not compute the producer's value itself, or None if it may.

    Every read of the producer's tensor, the accumulator included, must get its value from the producer, and nothing that the
    producer reads may be written between the two. Paths begin with the number in ``window``.
    """
    every = statements(window)
    p = next(s for s in every if s.path == producer)
    c = next(s for s in every if s.path == consumer)
    try:
        found: Broken | None = within_budget(lambda: _search(every, p, c))
        return found
    except OverBudgetError:
        return Undecided(_name(p))


def reads_of(statement: Statement, name: str) -> list[Touch]:
    """How an equation gets values of a tensor: its reads, and its target where it accumulates."""
    return [t for t in statement.touches if t.access.tensor.name == name and t.role != "write"]


def _name(statement: Statement) -> str:
    return statement.equation.target.tensor.name


def _written(statement: Statement) -> Touch:
    return statement.touches[-1]


def _search(every: Sequence[Statement], p: Statement, c: Statement) -> Broken | None:
    others = [w for w in every if _name(w) == _name(p) and w is not p]
    for read in reads_of(c, _name(p)):
        flow = _union(ordered(conflict(p, _written(p), c, read), p, p.timeline, c, c.timeline, "<"))
        foreign = _uncovered(others, p, c, read, flow) or _overwritten(others, p, c, read, flow)
        if foreign is not None:
            return foreign
        if flow is None:  # no instance reaches this read
            continue
        for operand in (t for t in p.touches if t.role == "read"):
            writers = [w for w in every if _name(w) == operand.access.tensor.name]
            changed = _changed(writers, p, operand, c, read, flow)
            if changed is not None:
                return changed
    return None


def _uncovered(others: Sequence[Statement], p: Statement, c: Statement, read: Touch, flow: Map | None) -> Foreign | None:
    """An element that the consumer reads and that the producer has not written before."""
    relation = touch_relation(c, read)
    missing: Map = relation.map
    if not relation.exact:  # a subscript through data: of all elements, those that are ever written
        missing = missing.intersect_range(_elements((p, *others)))
    if flow is not None:
        missing = missing.subtract(flow.reverse().apply_range(touch_relation(p, _written(p)).map))
    if missing.is_empty():
        return None
    for w in others:
        for piece in ordered(conflict(w, _written(w), c, read), w, w.timeline, c, c.timeline, "<"):
            clash = clash_in(piece.intersect_range(missing.domain()), w, _written(w), c, read)
            if clash is not None:
                return Foreign(_name(p), clash.exact, clash)
    return Foreign(_name(p), relation.exact, None)


def _overwritten(others: Sequence[Statement], p: Statement, c: Statement, read: Touch, flow: Map | None) -> Foreign | None:
    """A write of another equation to the element, after the producer's and before the read."""
    if flow is None:
        return None
    for w in others:
        after = ordered(conflict(p, _written(p), w, _written(w)), p, p.timeline, w, w.timeline, "<")
        before = ordered(conflict(w, _written(w), c, read), w, w.timeline, c, c.timeline, "<")
        for first in after:
            for second in before:
                if first.apply_range(second).intersect(flow).is_empty():
                    continue
                clash = clash_in(second.intersect_domain(first.range()), w, _written(w), c, read)
                assert clash is not None
                return Foreign(_name(p), clash.exact, clash)
    return None


def _changed(writers: Sequence[Statement], p: Statement, operand: Touch, c: Statement, read: Touch, flow: Map) -> Changed | None:
    """A write to what the producer reads, at its own instance or later, and before the read."""
    for w in writers:
        for piece in _not_before(p, operand, w):
            for between in ordered(piece.reverse().apply_range(flow), w, w.timeline, c, c.timeline, "<"):
                point = sample(between)
                if point is not None:
                    x, y = point[: len(w.extents)], point[len(w.extents) :]
                    exact = all(touch_relation(s, t).exact for s, t in ((p, operand), (w, _written(w)), (c, read)))
                    return Changed(Clash(w, _written(w), x, c, operand, y), exact)
    return None


def _not_before(p: Statement, operand: Touch, w: Statement) -> Iterator[Map]:
    """The instances of ``w`` that write what an instance of the producer read, at that instance or after it."""
    pairs = conflict(p, operand, w, _written(w))
    yield from ordered(pairs, p, p.timeline, w, w.timeline, "<")
    if w is p:
        for axis in range(len(p.extents)):
            pairs = compare(pairs, p, axis_level(p, axis), w, axis_level(w, axis), "=")
        yield pairs


def _elements(writers: Sequence[Statement]) -> Set:
    """Every element that one of them writes."""
    total: Set = touch_relation(writers[0], _written(writers[0])).map.range()
    for w in writers[1:]:
        total = total.union(touch_relation(w, _written(w)).map.range())
    return total


def _union(pieces: Sequence[Map]) -> Map | None:
    total: Map | None = None
    for piece in pieces:
        total = piece if total is None else total.union(piece)
    return total
