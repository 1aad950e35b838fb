"""What a top-level expression must satisfy to be one kernel (leir.md, GPU reading), beyond the order of its instances.

Structure: each GPU index at most once on a path, with one extent, within the limits, and every item under all block indices.
Memory: two blocks of one launch share no element that one of them writes; a shared value stays in its block, a local one in its
thread. Blocks and threads are compared on all conflicting pairs, so a "no" here may rest on values that are dead.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod

from leir.ir import Equation, Item, Loop, Nest, equations
from leir.polyhedral import Level, Map, OverBudgetError, Statement, Touch, compare, conflict, conflict_kind, statements, within_budget
from rules.strategy import Refusal

GRID_LIMITS = {"bx": 2**31 - 1, "by": 65535, "bz": 65535}
THREAD_LIMITS = {"tx": 1024, "ty": 1024, "tz": 64}
MAX_THREADS = 1024


def kernel_problem(expression: Nest) -> Refusal | None:
    """Why the expression is no valid kernel, or None."""
    if not any(loop.kind == "B" for loop in _all_loops(expression)):
        return None
    return structure_problem(expression) or memory_problem(expression)


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
    """The first GPU limit that the expression breaks."""
    extents: dict[str, int] = {}
    bound = [{loop.gpu_axis: loop for loop in path if loop.gpu_axis} for path in _paths(expression)]
    for path, by_axis in zip(_paths(expression), bound, strict=True):
        loops = [loop for loop in path if loop.kind == "B"]
        for loop in loops:
            axis = loop.name[:2]
            if by_axis[axis] is not loop:
                return Refusal("axis-bound-twice", f"{axis} would be bound twice on one path, by {loop.name} and {by_axis[axis].name}")
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


def memory_problem(expression: Nest) -> Refusal | None:
    """The first conflict that crosses blocks, or leaves the memory of its block or thread."""
    found = _memory_problem(expression)
    return found


@lru_cache(maxsize=20_000)
def _memory_problem(expression: Nest) -> Refusal | None:
    launch = _launch_loops(expression)
    blocks_first = _blocks_part_first(expression, len(launch))
    scoped = any(a.scope != "g" for eq in equations(expression) for a in _tensors(eq))
    if blocks_first and not scoped:
        return None
    found = statements((expression,))
    for k, s in enumerate(found):
        for t in found[k:]:
            for a in s.touches:
                for b in t.touches:
                    if conflict_kind(s, a, t, b) is None:
                        continue
                    scope = a.access.tensor.scope
                    if scope == "g" and blocks_first:
                        continue
                    try:
                        problem = within_budget(lambda s=s, a=a, t=t, b=b: _strays(launch, s, a, t, b))
                    except OverBudgetError:
                        return Refusal("over-budget", f"isl ran over its budget on which threads touch {a.access.tensor.name}")
                    if problem:
                        return problem
    return None


def _tensors(equation: Equation) -> Iterator[_Tensor]:
    ...
