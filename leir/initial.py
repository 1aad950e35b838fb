"""Implicit initialisation: which accumulations start from the identity, and where (leir.md, section 3).

The text does not say it; it follows from the order of writes. It is derived once, when a program is made from text, and stored in
each accumulating equation; rewrites carry it. `derive` on a program whose nests carry it already must find the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from leir.ir import Equation, Index, Int, Item, Nest, Signature
from leir.polyhedral import (
    Level,
    Map,
    OverBudgetError,
    Set,
    Statement,
    loop_text,
    parse_map,
    relation,
    statements,
    tuple_text,
    within_budget,
)


def derive(signature: Signature, nests: tuple[Nest, ...]) -> tuple[Nest, ...]:
    """The nests with `Equation.init` set from the order of writes. Accumulations into input tensors start nowhere.

    Where isl runs over its budget, an equation initialises all or nothing: nothing if an earlier expression writes the tensor.
    """
    count = Counter(write.name for nest in nests for write in _writes(nest))
    inputs = {t.name for t in signature.inputs}
    shared: dict[str, list[Statement]] = defaultdict(list)
    for number, nest in enumerate(nests):
        if any(count[write.name] > 1 for write in _writes(nest)):
            for statement in _statements(nest, number):
                shared[statement.equation.target.tensor.name].append(statement)
    return tuple(_derived(nest, number, inputs, count, shared) for number, nest in enumerate(nests))


def _derived(nest: Nest, number: int, inputs: set[str], count: Counter[str], shared: dict[str, list[Statement]]) -> Nest:
    found: dict[tuple[int, ...], str | None] = {}
    for write in _writes(nest):
        if not write.accumulates or write.name in inputs:
            found[write.path] = None
        elif count[write.name] == 1:
            found[write.path] = "all"
        else:
            group = shared[write.name]
            found[write.path] = first_writes(next(s for s in group if s.path == (number, *write.path)), group)
    if all(found[write.path] == write.init for write in _writes(nest)):
        return nest
    changed = _with_init(nest, (), found)
    assert isinstance(changed, Nest)
    return changed


@dataclass(frozen=True, slots=True)
class _Write:
    """An equation of a nest: its item path, its target's name, whether it accumulates, and the `init` that it carries."""

    path: tuple[int, ...]
    name: str
    accumulates: bool
    init: str | None


@lru_cache(maxsize=100_000)
def _writes(nest: Nest) -> tuple[_Write, ...]:
    found: list[_Write] = []

    def visit(item: Item, path: tuple[int, ...]) -> None:
        if isinstance(item, Equation):
            found.append(_Write(path, item.target.tensor.name, item.accumulates is not None, item.init))
        else:
            for number, child in enumerate(item.body):
                visit(child, (*path, number))

    visit(nest, ())
    return tuple(found)


@lru_cache(maxsize=50_000)
def _statements(nest: Nest, number: int) -> tuple[Statement, ...]:
    return tuple(statements((nest,), first=number))


def _with_init(item: Item, path: tuple[int, ...], found: dict[tuple[int, ...], str | None]) -> Item:
    if isinstance(item, Equation):
        return Equation(item.target, item.value, found[path])
    return Nest(item.axes, item.schedule, tuple(_with_init(child, (*path, k), found) for k, child in enumerate(item.body)))


def first_writes(statement: Statement, writers: Sequence[Statement]) -> str | None:
    """The elements that ``statement`` writes before any other of ``writers`` does: None, ``"all"``, or isl text."""
    rank = len(statement.equation.target.subscripts)  # a writer of another rank is ill-formed, as the checker reports
    others = [w for w in writers if w.path != statement.path and len(w.equation.target.subscripts) == rank]
    mine = _box(statement)
    undecided = []
    for other in others:
        if _strictly_later(other, statement):
            continue
        if _strictly_later(statement, other) and mine is not None and (theirs := _box(other)) is not None:
            if all(a_low >= b_low and a_high <= b_high for (a_low, a_high), (b_low, b_high) in zip(mine, theirs, strict=True)):
                return None
            if any(a_high < b_low or b_high < a_low for (a_low, a_high), (b_low, b_high) in zip(mine, theirs, strict=True)):
                continue
        if other.equation.target is statement.equation.target and _earlier_in_every_iteration(other, statement):
            return None
        undecided.append(other)
    if not undecided:
        return "all"
    try:
        text: str | None = within_budget(lambda: _first_elements(statement, undecided))
        return text
    except OverBudgetError:
        return None if any(_strictly_later(statement, other) for other in undecided) else "all"


def _strictly_later(later: Statement, earlier: Statement) -> bool:
    """Whether every instance of ``later`` runs after every instance of ``earlier``: they stand in different expressions."""
    return later.path[0] > earlier.path[0]


def _earlier_in_every_iteration(first: Statement, second: Statement) -> bool:
    """Whether two equations with one and the same target share all loops that it depends on, ``first`` standing earlier."""
    shared = 0
    for a, b in zip(first.timeline, second.timeline, strict=False):
        if a.kind == "position" and a.position != b.position:
            if a.position > b.position:
                return False
            break
        shared += sum(d.stride * d.extent == first.extents[d.axis] for d in a.digits)
    needed = {sub.axis for sub in first.equation.target.subscripts if isinstance(sub, Index)}
    simple = all(isinstance(sub, Int | Index) for sub in first.equation.target.subscripts)
    return simple and all(axis < shared for axis in needed)


def _box(statement: Statement) -> list[tuple[int, int]] | None:
    """The written elements as a range per dimension, if every subscript is a number or an axis of its own."""
    seen: set[int] = set()
    ranges = []
    for sub in statement.equation.target.subscripts:
        if isinstance(sub, Int):
            ranges.append((sub.value, sub.value))
        elif isinstance(sub, Index) and sub.axis not in seen:
            seen.add(sub.axis)
            ranges.append((0, statement.extents[sub.axis] - 1))
        else:
            return None
    return ranges


def _first_elements(statement: Statement, others: Sequence[Statement]) -> str | None:
    depth = max(len(s.timeline) for s in (statement, *others))
    mine = _first_times(statement, depth)
    elements: Set = mine.domain()
    for other in others:
        theirs = _first_times(other, depth)
        elements = elements.subtract(_earlier(theirs, mine, depth))
    if elements.is_empty():
        return None
    whole: Set = mine.domain()
    return "all" if elements.is_equal(whole) else str(elements.coalesce())


def _first_times(statement: Statement, depth: int) -> Map:
    """``{ [element] -> [time] }``, the first time at which the statement writes each element."""
    names = [f"i{k}" for k in range(len(statement.extents))]
    times = [_time(level, statement.extents) for level in statement.timeline] + ["0"] * (depth - len(statement.timeline))
    schedule = parse_map(f"{{ {tuple_text(names)} -> {tuple_text(times)} }}")
    written = relation(statement.extents, statement.equation.target, ()).map
    return written.reverse().apply_range(schedule).lexmin()


def _time(level: Level, extents: tuple[int, ...]) -> str:
    return str(level.position) if level.kind == "position" else loop_text(level.digits, extents, "i")


def _earlier(theirs: Map, mine: Map, depth: int) -> Set:
    """The elements whose time in ``theirs`` is before that in ``mine``."""
    a, b = [f"a{k}" for k in range(depth)], [f"b{k}" for k in range(depth)]
    order = " or ".join(" and ".join([*(f"a{j} = b{j}" for j in range(k)), f"a{k} < b{k}"]) for k in range(depth))
    before = parse_map(f"{{ {tuple_text(a)} -> {tuple_text(b)} : {order} }}")
    return theirs.apply_range(before).intersect(mine).domain()
