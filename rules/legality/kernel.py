"""What a top-level expression must satisfy to be one kernel (leir.md, GPU reading), beyond the order of its instances.

Structure: each GPU index at most once on a path, with one extent, within the limits, and every item under all block indices.
Memory: two blocks of one launch share no element that one of them writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile
from math import prod
from typing import Literal

from leir.ir import Equation, Item, Loop, Nest
from leir.polyhedral import Level, OverBudgetError, Statement, Touch, compare, conflict, conflict_kind, statements, within_budget
from rules.legality.dependence import Clash, Undecided, clash_in
from rules.strategy import Refusal

GRID_LIMITS = {"bx": 2**31 - 1, "by": 65535, "bz": 65535}
THREAD_LIMITS = {"tx": 1024, "ty": 1024, "tz": 64}
MAX_THREADS = 1024


def is_kernel(expression: Nest) -> bool:
    """Whether some loop of the expression is bound; without one it is a one-thread kernel, and always valid."""
    return any(loop.kind == "B" for loop in _all_loops(expression))


def _all_loops(item: Item) -> Iterator[Loop]:
    if isinstance(item, Nest):
        yield from item.schedule
        for child in item.body:
            yield from _all_loops(child)


def _paths(item: Item, around: tuple[Loop, ...] = ()) -> Iterator[tuple[Loop, ...]]:
    """The loops around each equation."""
    if isinstance(item, Equation):
        yield around
    else:
        for child in item.body:
            yield from _paths(child, around + item.schedule)


# ------------------------------------------------------------------------------------------------------------------ structure


def structure_problem(expression: Nest) -> Refusal | None:
    """The first rule for GPU indices that the expression breaks, or None."""
    if not is_kernel(expression):
        return None
    extents: dict[str, int] = {}
    bound = [{loop.gpu_axis: loop for loop in path if loop.gpu_axis} for path in _paths(expression)]
    for path, by_axis in zip(_paths(expression), bound, strict=True):
        loops = [loop for loop in path if loop.kind == "B"]
        for loop in loops:
            axis = loop.name[:2]
            if by_axis[axis] is not loop:
                return Refusal(
                    "axis-bound-twice", f"{axis} would be bound twice on one path, by {loop.name} and {by_axis[axis].name}"
                )
            if extents.setdefault(axis, loop.extent) != loop.extent:
                sizes = f"{extents[axis]} and {loop.extent}"
                return Refusal("axis-extents", f"{axis} would have two extents in one kernel, {sizes}")
    for axis, size in extents.items():
        if size > GRID_LIMITS.get(axis, size):
            return Refusal("grid-limit", f"{axis} would have {size} values, and the limit is {GRID_LIMITS[axis]}")
        if size > THREAD_LIMITS.get(axis, size):
            return Refusal("thread-limit", f"{axis} would have {size} values, and the limit is {THREAD_LIMITS[axis]}")
    threads = prod(size for axis, size in extents.items() if axis in THREAD_LIMITS)
    if threads > MAX_THREADS:
        return Refusal("thread-limit", f"a block would have {threads} threads, and the limit is {MAX_THREADS}")
    for axis in extents:
        if axis in GRID_LIMITS and any(axis not in by_axis for by_axis in bound):
            return Refusal("outside-block", f"an item of the kernel would stand outside its {axis} loop")
    return None


# --------------------------------------------------------------------------------------------------------------------- memory


@lru_cache(maxsize=20_000)
def crossed_blocks(expression: Nest) -> Clash | Undecided | None:
    """Nothing orders the blocks of one launch, so no two of them may touch one element of global memory that one of them writes.

    Shared and local memory is a matter of value flow through the whole program: the checker's, after the step.
    """
    launch = _launch_loops(expression)
    if _blocks_part_first(expression, len(launch)):
        return None
    found = statements((expression,))
    for k, s in enumerate(found):
        for t in found[k:]:
            for a in s.touches:
                for b in t.touches:
                    if conflict_kind(s, a, t, b) is None or a.access.tensor.scope != "g":
                        continue
                    try:
                        crossed: Clash | None = within_budget(lambda s=s, a=a, t=t, b=b: _crossed(expression, launch, s, a, t, b))
                    except OverBudgetError:
                        return Undecided(a.access.tensor.name)
                    if crossed is not None:
                        return crossed
    return None


def _launch_loops(expression: Nest) -> tuple[Loop, ...]:
    """The loops that enclose every B loop: each of their iterations is a launch of its own."""
    found: list[Loop] = []
    nest = expression
    while True:
        for loop in nest.schedule:
            if loop.kind == "B":
                return tuple(found)
            found.append(loop)
        only = nest.body[0]
        if len(nest.body) > 1 or not isinstance(only, Nest):
            return tuple(found)
        nest = only


def _blocks_part_first(expression: Nest, launch: int) -> bool:
    """Whether plainly no two blocks of one launch can conflict: all block loops stand around the whole body, inside launch and
    bound loops only, and a bound loop carries nothing."""
    around = expression.schedule[launch:]
    outer = list(takewhile(lambda loop: loop.kind == "B", around))
    inside = [*around[len(outer) :], *(loop for item in expression.body for loop in _all_loops(item))]
    return all(loop.gpu_axis not in GRID_LIMITS for loop in inside)


def _crossed(expression: Nest, launch: tuple[Loop, ...], s: Statement, a: Touch, t: Statement, b: Touch) -> Clash | None:
    """Two instances of one launch that touch one element in two blocks, or None."""
    pairs = conflict(s, a, t, b)
    for loop in launch:
        pairs = compare(pairs, s, _level(loop), t, _level(loop), "=")
    for axis in GRID_LIMITS:
        first, second = _bound(expression, s, axis), _bound(expression, t, axis)
        if first is not None and second is not None:
            for op in _UNEQUAL:
                clash = clash_in(compare(pairs, s, _level(first), t, _level(second), op), s, a, t, b)
                if clash is not None:
                    return clash
    return None


_UNEQUAL: tuple[Literal["<"], Literal[">"]] = ("<", ">")


def _level(loop: Loop) -> Level:
    return Level(loop.kind, loop.digits, 0)


def _bound(expression: Nest, statement: Statement, axis: str) -> Loop | None:
    """The loop that binds a GPU index around an equation."""
    item: Item = expression
    for number in statement.path[1:]:
        assert isinstance(item, Nest)
        for loop in item.schedule:
            if loop.gpu_axis == axis:
                return loop
        item = item.body[number]
    return None
