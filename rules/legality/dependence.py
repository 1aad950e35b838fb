"""What must stay ordered inside one expression: computed once per body, whatever the loops around it (facts-isl.md, section 3).

Two instances *conflict* when they touch one element and at least one writes it. Conflicts live on the logical axes, so all
schedules of one body share them. For each pair of touches we list the *sign vectors*: how the axes that the two equations share can
compare (-1, 0, 1 per axis, the sink's value minus the source's). A schedule that walks whole axes orders two instances by these
signs alone, so most schedules are decided without isl; the rest ask isl about one sign vector at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Literal, TypeAlias

from leir.ir import Digit, Index, Int, Nest
from leir.polyhedral import (
    Level,
    Map,
    OverBudgetError,
    Statement,
    Touch,
    compare,
    conflict,
    conflict_kind,
    ordered,
    sample,
    statements,
    touch_relation,
    within_budget,
)

Signs: TypeAlias = tuple[int, ...]
Point: TypeAlias = tuple[int, ...]

MAX_VECTORS = 3**6


@dataclass(frozen=True, slots=True, eq=False)
class Conflict:
    """Instances of two equations of one expression that touch one element, at least one of them writing it.

    ``source`` stands before ``sink`` in the body, or is the same equation. ``common`` is the item path of the innermost nest that
    holds both, ``shared`` the number of axes they see in common. ``signs`` lists the vectors with a sign in them that occur between
    two such instances (of one unordered pair, only the lexicographically positive); None if isl ran over its budget or the list
    over `MAX_VECTORS`.
    """

    source: Statement
    a: Touch
    sink: Statement
    b: Touch
    hard: bool
    common: tuple[int, ...]
    shared: int
    signs: tuple[Signs, ...] | None

    @property
    def tensor(self) -> str:
        return self.a.access.tensor.name

    @property
    def symmetric(self) -> bool:
        """Whether source and sink are one and the same touch, so that a pair occurs in both directions."""
        return self.source is self.sink and self.a is self.b


@lru_cache(maxsize=50_000)
def skeleton(nest: Nest) -> Nest:
    """The nest without its loops: what all its schedules have in common."""
    return Nest(nest.axes, (), tuple(skeleton(item) if isinstance(item, Nest) else item for item in nest.body))


@lru_cache(maxsize=20_000)
def conflicts(body: Nest) -> tuple[Conflict, ...]:
    """Every conflict of an expression that its loops can order: ``body`` is a `skeleton`. Conflicts whose instances always agree on
    the shared axes are ordered by their places in the body, which no schedule changes, and are left out."""
    found: list[Conflict] = []
    equations = statements((body,))
    for k, source in enumerate(equations):
        for sink in equations[k:]:
            common, shared = _meeting(body, source.path[1:], sink.path[1:])
            for a, b in _touch_pairs(source, sink):
                kind = conflict_kind(source, a, sink, b)
                if kind is None:
                    continue
                signs = _signs(source, a, sink, b, shared)
                if signs == ():
                    continue
                found.append(Conflict(source, a, sink, b, kind == "hard", common, shared, signs))
    return tuple(found)


def carries_order(body: Nest) -> bool:
    """Whether some hard dependence runs between iterations of a loop, so that the reference order matters."""
    return any(c.hard for c in conflicts(body))


def _meeting(body: Nest, first: tuple[int, ...], second: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """The path of the innermost nest that holds both items, and the number of axes that it sees."""
    nest, shared, depth = body, len(body.axes), 0
    while depth < min(len(first), len(second)) - 1 and first[depth] == second[depth]:
        inner = nest.body[first[depth]]
        assert isinstance(inner, Nest)
        nest, shared, depth = inner, shared + len(inner.axes), depth + 1
    return first[:depth], shared


def _touch_pairs(source: Statement, sink: Statement) -> Iterator[tuple[Touch, Touch]]:
    """Pairs of touches on one tensor, a repeated access once; of one equation, unordered pairs."""
    left, right = _distinct(source.touches), _distinct(sink.touches)
    for k, a in enumerate(left):
        for b in right[k:] if source is sink else right:
            if a.access.tensor.name == b.access.tensor.name:
                yield a, b


def _distinct(touches: Sequence[Touch]) -> list[Touch]:
    return list({(t.role, t.access, t.guards): t for t in reversed(touches)}.values())[::-1]


# --------------------------------------------------------------------------------------------------------------- sign vectors


def _signs(s: Statement, a: Touch, t: Statement, b: Touch, shared: int) -> tuple[Signs, ...] | None:
    choices = _separable(s, a, t, b, shared)
    symmetric = s is t and a is b
    if choices is not None:
        if prod(map(len, choices)) > MAX_VECTORS:
            return None
        return tuple(v for v in product(*choices) if any(v) and not (symmetric and direction(v) < 0))
    try:
        found: tuple[Signs, ...] | None = within_budget(lambda: _signs_by_isl(s, a, t, b, shared, symmetric))
        return found
    except OverBudgetError:
        return None


def _separable(s: Statement, a: Touch, t: Statement, b: Touch, shared: int) -> list[tuple[int, ...]] | None:
    """The possible signs per shared axis where each axis is free of the others; None where that is not plain from the subscripts.

    Exact for unguarded accesses whose subscripts are, dimension by dimension, the same shared axis, two numbers, or two axes of
    which neither is shared.
    """
    if a.guards or b.guards:
        return None
    pinned: set[int] = set()
    private_s: set[int] = set()
    private_t: set[int] = set()
    for x, y in zip(a.access.subscripts, b.access.subscripts, strict=True):
        match x, y:
            case Int(), Int():
                if x is not y:
                    return [()]
            case Index(axis=p), Index(axis=q) if p == q and p < shared:
                pinned.add(p)
            case Index(axis=p), Index(axis=q) if p >= shared and q >= shared and p not in private_s and q not in private_t:
                private_s.add(p)
                private_t.add(q)
            case _:
                return None
    return [(0,) if k in pinned or s.extents[k] == 1 else (-1, 0, 1) for k in range(shared)]


def _signs_by_isl(s: Statement, a: Touch, t: Statement, b: Touch, shared: int, symmetric: bool) -> tuple[Signs, ...] | None:
    found: list[Signs] = []

    def descend(pairs: Map, vector: Signs) -> None:
        if len(found) > MAX_VECTORS or pairs.is_empty():
            return
        if len(vector) == shared:
            if any(vector):
                found.append(vector)
            return
        level = axis_level(s, len(vector))
        for sign, op in _SIGNS:
            if sign < 0 and symmetric and not any(vector):
                continue
            descend(compare(pairs, s, level, t, level, op), (*vector, sign))

    descend(conflict(s, a, t, b), ())
    return tuple(found) if len(found) <= MAX_VECTORS else None


_SIGNS: tuple[tuple[int, Literal["<", "=", ">"]], ...] = ((-1, ">"), (0, "="), (1, "<"))  # the sink's value minus the source's


def direction(vector: Signs) -> int:
    """Whether the source runs before (1) or after (-1) the sink in reference order; 0 if the shared axes do not tell."""
    return next((sign for sign in vector if sign), 0)


def axis_level(statement: Statement, axis: int) -> Level:
    """An axis walked whole, as a level of a timeline."""
    return Level("L", (Digit(axis, statement.extents[axis], 1),), 0)


# --------------------------------------------------------------------------------------------------------------- pairs by isl


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Some conflicting pairs, all standing in the same reference order: ``direction`` 1 if the source runs first."""

    direction: int
    pairs: Map


@lru_cache(maxsize=50_000)
def piece(conflict_: Conflict, signs: Signs) -> Piece:
    """The pairs of a conflict with this sign vector."""
    s, t = conflict_.source, conflict_.sink
    pairs = conflict(s, conflict_.a, t, conflict_.b)
    for axis, sign in enumerate(signs):
        level = axis_level(s, axis)
        pairs = compare(pairs, s, level, t, level, "=" if sign == 0 else "<" if sign > 0 else ">")
    return Piece(direction(signs), pairs)


@lru_cache(maxsize=20_000)
def all_pieces(conflict_: Conflict) -> tuple[Piece, ...]:
    """All pairs of a conflict that differ on a shared axis, in pieces of one direction."""
    s, t = conflict_.source, conflict_.sink
    pairs = conflict(s, conflict_.a, t, conflict_.b)
    levels = [axis_level(s, axis) for axis in range(conflict_.shared)]
    forward = [Piece(1, p) for p in ordered(pairs, s, levels, t, levels, "<")]
    if conflict_.symmetric:
        return tuple(forward)
    return (*forward, *(Piece(-1, p) for p in ordered(pairs, s, levels, t, levels, ">")))


@dataclass(frozen=True, slots=True, eq=False)
class Clash:
    """Two instances that touch one element, at least one writing it: an equation, its touch and a point of its axes, twice."""

    s: Statement
    a: Touch
    x: Point
    t: Statement
    b: Touch
    y: Point

    @property
    def exact(self) -> bool:
        """Whether the two certainly meet; not if a subscript or a guard reads data."""
        return touch_relation(self.s, self.a).exact and touch_relation(self.t, self.b).exact


@dataclass(frozen=True, slots=True)
class Undecided:
    """isl ran over its budget on the accesses to this tensor."""

    tensor: str


def clash_in(pairs: Map, s: Statement, a: Touch, t: Statement, b: Touch) -> Clash | None:
    """The least of these pairs of instances of ``s`` and ``t``, or None if there is none."""
    point = sample(pairs)
    if point is None:
        return None
    return Clash(s, a, point[: len(s.extents)], t, b, point[len(s.extents) :])
