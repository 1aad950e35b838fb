"""How the loops of an expression order the instances of its equations, decided from sign vectors where they tell, else by isl.

The question is always the same: the loops are changed and the body is not; does every hard dependence keep its order, and does any
loop that runs its iterations at once carry a dependence? The answer depends on digits and kinds only, so it is kept per pair of
anonymous nests, and the many schedules of a search that differ in names or GPU indices share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Literal

from leir.ir import FLOAT_DTYPES, Digit, Loop, Nest
from leir.polyhedral import Level, OverBudgetError, compare, ordered, within_budget
from rules.legality.dependence import (
    Clash,
    Conflict,
    Piece,
    Signs,
    Undecided,
    all_pieces,
    clash_in,
    conflicts,
    direction,
    piece,
    skeleton,
)


@dataclass(frozen=True, slots=True)
class Placed:
    """A loop and where it stands: the item path of its nest, its number there."""

    loop: Loop
    nest: tuple[int, ...]
    number: int


@dataclass(frozen=True, slots=True, eq=False)
class Violation:
    """Two instances that the new loops would run in the wrong order or at once, and the loop at which they part."""

    clash: Clash
    how: Literal["reversed", "carried"]
    at: Placed


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """The new loops keep what must be kept. ``reassociates``: some element's accumulation runs in another order than before, and
    rounding can show it."""

    reassociates: bool


@lru_cache(maxsize=50_000)
def anonymous(nest: Nest) -> Nest:
    """The nest with of its loops only what decides order: their digits, their kinds (U is L), and of a bound loop whether it is a
    block (``b``) or a thread index (``t``)."""
    loops = tuple(
        Loop("L" if loop.kind == "U" else loop.kind, loop.name[0] if loop.kind == "B" else "", loop.digits)
        for loop in nest.schedule
    )
    return Nest(nest.axes, loops, tuple(anonymous(item) if isinstance(item, Nest) else item for item in nest.body))


def compare_orders(old: Nest, new: Nest) -> Order | Violation | Undecided:
    """Whether ``new``, which has the body of ``old``, keeps its dependences and runs at once only what is independent."""
    return _compare_orders(anonymous(old), anonymous(new))


@lru_cache(maxsize=100_000)
def _compare_orders(old: Nest, new: Nest) -> Order | Violation | Undecided:
    body = skeleton(new)
    assert body is skeleton(old), "a schedule leaves the body alone"
    reassociates = False
    for conflict in conflicts(body):
        question = _Question(conflict, loops_around(old, conflict.common), loops_around(new, conflict.common))
        try:
            violation = question.violation()
            if violation is not None:
                return violation
            reassociates = reassociates or question.reassociates()
        except OverBudgetError:
            return Undecided(conflict.tensor)
    return Order(reassociates)


def loops_around(expression: Nest, path: tuple[int, ...]) -> tuple[Placed, ...]:
    """The loops from the outermost to those of the nest at ``path``, that nest's included."""
    nest, found = expression, [Placed(loop, (), k) for k, loop in enumerate(expression.schedule)]
    for depth, number in enumerate(path, 1):
        inner = nest.body[number]
        assert isinstance(inner, Nest)
        nest = inner
        found += [Placed(loop, path[:depth], k) for k, loop in enumerate(nest.schedule)]
    return tuple(found)


@dataclass(slots=True)
class _Question:
    conflict: Conflict
    old: Sequence[Placed]
    new: Sequence[Placed]

    @property
    def extents(self) -> tuple[int, ...]:
        return self.conflict.source.extents

    def violation(self) -> Violation | None:
        if not self.conflict.hard and all(placed.loop.kind == "L" for placed in self.new):
            return None
        if self.conflict.signs is None:
            return self.by_isl(lambda: all_pieces(self.conflict))
        for signs in self.conflict.signs:
            outcomes = list(partings(signs, self.new, self.extents))
            if any(self.wrong(o, direction(signs)) for o in outcomes):
                found = self.by_isl(lambda signs=signs: (piece(self.conflict, signs),))  # type: ignore[misc]
                if found is not None:
                    return found
                assert len(outcomes) > 1, "a sign vector that is decided outright has a pair"
        return None

    def wrong(self, outcome: Parting, reference: int) -> bool:
        """Whether instances that part so break a rule. Every block has its own shared memory and every thread its own local one,
        so values there do not meet across the loop that makes them part."""
        if outcome.loop.kind == "L":
            return self.conflict.hard and outcome.direction != reference
        scope = self.conflict.a.access.tensor.scope
        private = scope == "l" or (scope == "s" and outcome.loop.name == "b")
        return not (outcome.loop.kind == "B" and private)

    def by_isl(self, pieces: Callable[[], Sequence[Piece]]) -> Violation | None:
        """The first violation, level by level, among pairs of known reference order."""
        found: Violation | None = within_budget(lambda: self.search(pieces()))
        return found

    def search(self, pieces: Sequence[Piece]) -> Violation | None:
        s, a, t, b = self.conflict.source, self.conflict.a, self.conflict.sink, self.conflict.b
        for part in pieces:
            current = part.pairs
            for placed in self.new:
                level = as_level(placed.loop)
                for sign, op in _BOTH:
                    outcome = Parting(sign, placed.loop)
                    if not self.wrong(outcome, part.direction):
                        continue
                    clash = clash_in(compare(current, s, level, t, level, op), s, a, t, b)
                    if clash is not None:
                        how: Literal["reversed", "carried"] = "reversed" if placed.loop.kind == "L" else "carried"
                        return Violation(clash, how, placed)
                current = compare(current, s, level, t, level, "=")
                if current.is_empty():
                    break
        return None

    def reassociates(self) -> bool:
        """Whether two accumulations into one element change places, and that can change a bit."""
        equation = self.conflict.source.equation
        if self.conflict.hard or equation.accumulates in ("max", "min") or equation.target.tensor.dtype not in FLOAT_DTYPES:
            return False
        if [p.loop.digits for p in self.old] == [p.loop.digits for p in self.new]:
            return False
        if self.conflict.signs is None:
            return any(self.swapped(part) for part in within_budget(lambda: all_pieces(self.conflict)))
        for signs in self.conflict.signs:
            before = {o.direction for o in partings(signs, self.old, self.extents)}
            after = {o.direction for o in partings(signs, self.new, self.extents)}
            if len(before) == len(after) == 1:
                if before != after:
                    return True
            elif self.swapped(piece(self.conflict, signs)):
                return True
        return False

    def swapped(self, part: Piece) -> bool:
        """Whether some pair stands in one order under the old loops and in the other under the new."""
        s, t = self.conflict.source, self.conflict.sink
        old, new = [as_level(p.loop) for p in self.old], [as_level(p.loop) for p in self.new]
        for before, after in (("<", ">"), (">", "<")):
            answer = within_budget(
                lambda before=before, after=after: any(
                    ordered(kept, s, new, t, new, after) for kept in ordered(part.pairs, s, old, t, old, before)
                )
            )
            if answer:
                return True
        return False


_BOTH: tuple[tuple[int, Literal["<", ">"]], ...] = ((1, "<"), (-1, ">"))


def as_level(loop: Loop) -> Level:
    return Level(loop.kind, loop.digits, 0)


@dataclass(frozen=True, slots=True)
class Parting:
    """How two instances can part: at which loop, and which of them has the lesser value there (1: the source)."""

    direction: int
    loop: Loop


def partings(signs: Signs, loops: Sequence[Placed], extents: Sequence[int]) -> Iterator[Parting]:
    """Every way in which two instances with these signs can part at the first loop where they differ. One way means: that one.
    Several mean: no other, but each may or may not occur.

    Of an axis only the sign is known: the greatest digit that differs has it, those below it may have any.
    """
    walked: dict[int, list[Digit]] = {}
    for placed in loops:
        for digit in placed.loop.digits:
            sign = signs[digit.axis]
            if sign == 0 or digit.extent == 1:
                continue
            equal = walked.setdefault(digit.axis, [])  # the digits of this axis that agree, or we would not be here
            above = prod(d.extent for d in equal if d.stride > digit.stride)
            below = prod(d.extent for d in equal if d.stride < digit.stride)
            equal.append(digit)
            yield Parting(sign, placed.loop)
            if above * digit.stride * digit.extent != extents[digit.axis]:
                yield Parting(-sign, placed.loop)
            elif below == digit.stride:
                return
