"""Every step of the loop and graph strategies by brute force: the whole parameter space, each point decided by the trace oracle.

A step is described by what it does to time: each instance gets the list of (kind, value) levels at which it runs afterwards. It is
legal when no conflict is reversed and none is carried by a P, V or B loop; it keeps rounding when every element's accumulation
runs in the old order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from math import prod
from typing import TypeAlias

from leir.digits import whole
from leir.ir import FLOAT_DTYPES, Loop, Nest
from tests.oracle.trace import Conflict, Loops, Point, Where, equations_of, operator

Levels: TypeAlias = list[tuple[str, int]]
Site: TypeAlias = tuple[tuple[int, ...], Nest, tuple[Loop, ...]]

GPU_LIMITS = {"bx": 2**31 - 1, "by": 65535, "bz": 65535, "tx": 1024, "ty": 1024, "tz": 64}


@dataclass(frozen=True, slots=True)
class Case:
    """One point of a strategy's parameter space, and the oracle's verdict on it."""

    strategy: str
    path: tuple[int, ...]
    arguments: tuple[tuple[str, object], ...]
    legal: bool
    reason: str
    bitwise: bool


@dataclass(slots=True)
class Space:
    """The flat nests of a program with their conflicts, ready to be asked about steps."""

    nests: tuple[Nest, ...]
    conflicts: list[Conflict]
    equations: dict[tuple[int, ...], Loops] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.equations = {eq.path: eq for eq in equations_of(self.nests)}

    # ------------------------------------------------------------------------------------------------------------- verdicts

    def judge(self, levels: Callable[[Where], Levels], kernel: Nest, *expressions: int) -> tuple[bool, str, bool]:
        """(legal, reason, bitwise) of running the instances at ``levels``; ``kernel`` is the changed expression afterwards, its
        loops only, and ``expressions`` the numbers of those it is made of. Other expressions keep their place and their order."""
        bitwise = True
        if problem := kernel_problem(kernel):
            return False, problem, True
        launch, blocks = launch_loops(kernel), _binds_blocks(kernel)
        for conflict in self.conflicts:
            if conflict.first.where[0][0] not in expressions or conflict.second.where[0][0] not in expressions:
                continue
            first, second = levels(conflict.first.where), levels(conflict.second.where)
            at = next((k for k, (a, b) in enumerate(zip(first, second, strict=False)) if a[1] != b[1]), None)
            assert at is not None
            if first[at][0][0] in "PVB":
                return False, "carried", True
            if blocks and _crosses_blocks(first, second, launch):
                return False, "crosses blocks", True
            if first[at][1] > second[at][1]:
                if not conflict.commuting:
                    return False, "reversed", True
                equation = self.equations[conflict.first.where[0]].equation
                if operator(equation) in ("+", "*") and equation.target.tensor.dtype in FLOAT_DTYPES:
                    bitwise = False
        return True, "", bitwise

    def old_levels(self, where: Where) -> Levels:
        eq = self.equations[where[0]]
        levels: Levels = [("item", eq.path[0])]
        at = 0
        for count, item in zip(eq.shape, eq.path[1:], strict=True):
            levels += [
                (eq.loops[k][0] + (eq.loops[k][1][:2] if eq.loops[k][0] == "B" else ""), where[1][k]) for k in range(at, at + count)
            ]
            levels.append(("item", item))
            at += count
        return levels

    def retimed(self, path: tuple[int, ...], walk: Callable[[Point], Levels]) -> Callable[[Where], Levels]:
        """The levels after the loops of the nest at ``path`` are walked as ``walk`` says, from the old values of those loops."""
        memo: dict[Where, Levels] = {}

        def levels(where: Where) -> Levels:
            if where in memo:
                return memo[where]
            old = self.old_levels(where)
            if where[0][: len(path)] == path:
                eq = self.equations[where[0]]
                depth = len(path) - 1
                start = 1 + sum(eq.shape[:depth]) + depth
                count = eq.shape[depth]
                point = tuple(value for _, value in old[start : start + count])
                old = old[:start] + walk(point) + old[start + count :]
            memo[where] = old
            return old

        return levels

    def sites(self) -> Iterator[Site]:
        """Every nest: its path, itself, the loops around it."""

        def visit(nest: Nest, path: tuple[int, ...], around: tuple[Loop, ...]) -> Iterator[Site]:
            yield path, nest, around
            for number, item in enumerate(nest.body):
                if isinstance(item, Nest):
                    yield from visit(item, (*path, number), around + nest.schedule)

        for number, nest in enumerate(self.nests):
            yield from visit(nest, (number,), ())

    def with_loops(self, path: tuple[int, ...], loops: tuple[Loop, ...]) -> Nest:
        """The top-level expression at ``path[0]`` with the nest's loops replaced; bodies are kept and may no longer fit."""

        def rebuild(nest: Nest, rest: tuple[int, ...]) -> Nest:
            if not rest:
                return Nest(nest.axes, loops, nest.body)
            body = list(nest.body)
            inner = body[rest[0]]
            assert isinstance(inner, Nest)
            body[rest[0]] = rebuild(inner, rest[1:])
            return Nest(nest.axes, nest.schedule, tuple(body))

        return rebuild(self.nests[path[0]], path[1:])

    # ------------------------------------------------------------------------------------------------------------ strategies

    def splits(self, radices: Callable[[tuple[int, ...], int], Sequence[int]]) -> Iterator[Case]:
        """``radices`` gives the digit extents of a loop, outermost first: (extent,) unless it is a fused loop."""
        for path, nest, _ in self.sites():
            for number, loop in enumerate(nest.schedule):
                for factor in _cut_points(radices(path, number)):
                    arguments = (("loop", number), ("factor", factor))
                    walk = self._split_walk(nest.schedule, number, factor)
                    cut = (_loop("L", "?", loop.extent // factor), _loop(loop.kind, loop.name, factor))
                    kernel = self.with_loops(path, nest.schedule[:number] + cut + nest.schedule[number + 1 :])
                    yield Case("loop_split", path, arguments, *self.judge(self.retimed(path, walk), kernel, path[0]))

    @staticmethod
    def _split_walk(schedule: tuple[Loop, ...], number: int, factor: int) -> Callable[[Point], Levels]:
        def walk(point: Point) -> Levels:
            levels: Levels = []
            for k, (loop, value) in enumerate(zip(schedule, point, strict=True)):
                levels += [("L", value // factor), (_label(loop), value % factor)] if k == number else [(_label(loop), value)]
            return levels

        return walk

    def reorders(self) -> Iterator[Case]:
        for path, nest, _ in self.sites():
            for order in _orders(len(nest.schedule)):
                loops = tuple(nest.schedule[k] for k in order)
                kinds = [_label(loop) for loop in loops]

                def walk(point: Point, order: tuple[int, ...] = order, kinds: list[str] = kinds) -> Levels:
                    return [(kind, point[k]) for kind, k in zip(kinds, order, strict=True)]

                kernel = self.with_loops(path, loops)
                yield Case("loop_reorder", path, (("order", order),), *self.judge(self.retimed(path, walk), kernel, path[0]))

    def bindings(self) -> Iterator[Case]:
        for path, nest, around in self.sites():
            for number, loop in enumerate(nest.schedule):
                if loop.kind != "L":
                    continue
                on_path = [x for x in (*around, *nest.schedule) if x is not loop]
                taken = {x.name[:2] for x in [*on_path, *_below(nest)] if x.kind == "B"}
                for axis in GPU_LIMITS:
                    if axis in taken:
                        continue
                    bound = _loop("B", axis, loop.extent)
                    kinds = [_label(x) if k != number else f"B{axis}" for k, x in enumerate(nest.schedule)]

                    def walk(point: Point, kinds: list[str] = kinds) -> Levels:
                        return list(zip(kinds, point, strict=True))

                    kernel = self.with_loops(path, (*nest.schedule[:number], bound, *nest.schedule[number + 1 :]))
                    arguments = (("loop", number), ("axis", axis))
                    yield Case("loop_binding", path, arguments, *self.judge(self.retimed(path, walk), kernel, path[0]))

    def fusions(self) -> Iterator[Case]:
        for number in range(len(self.nests) - 1):
            first, second = self.nests[number], self.nests[number + 1]
            for shared, (a, b) in enumerate(zip(first.schedule, second.schedule, strict=False), 1):
                if a.kind != b.kind or a.extent != b.extent or (a.kind == "B" and a.name[:2] != b.name[:2]):
                    break
                memo: dict[Where, Levels] = {}

                def levels(where: Where, shared: int = shared, number: int = number, memo: dict[Where, Levels] = memo) -> Levels:
                    if where not in memo:
                        old = self.old_levels(where)
                        expression = where[0][0]
                        if expression in (number, number + 1):
                            old = [("item", number), *old[1 : 1 + shared], ("item", expression - number), *old[1 + shared :]]
                        memo[where] = old
                    return memo[where]

                items = [Nest((), nest.schedule[shared:], nest.body) for nest in (first, second)]
                kernel = Nest((), first.schedule[:shared], tuple(items))
                yield Case("operator_fusion", (number,), (("depth", shared),), *self.judge(levels, kernel, number, number + 1))


def launch_loops(kernel: Nest) -> int:
    """How many loops stand around every B loop: each of their iterations is a launch of its own."""
    count = 0
    nest = kernel
    while True:
        for loop in nest.schedule:
            if loop.kind == "B":
                return count
            count += 1
        if len(nest.body) != 1 or not isinstance(nest.body[0], Nest):
            return count
        nest = nest.body[0]


def _crosses_blocks(first: Levels, second: Levels, launch: int) -> bool:
    """Whether two instances of one expression run in one launch and in two of its blocks."""
    loops = [[level for level in levels if level[0] != "item"] for levels in (first, second)]
    if loops[0][:launch] != loops[1][:launch]:
        return False
    blocks = [{kind: value for kind, value in side if kind.startswith("Bb")} for side in loops]
    return any(blocks[0][axis] != blocks[1][axis] for axis in blocks[0].keys() & blocks[1].keys())


def _label(loop: Loop) -> str:
    """The kind of a loop, a bound one with its GPU index."""
    return f"B{loop.name[:2]}" if loop.kind == "B" else loop.kind


def kernel_problem(kernel: Nest) -> str:
    """Why an expression is no valid kernel, or nothing: GPU indices once per path, one extent each, limits, blocks around all."""
    paths: list[tuple[Loop, ...]] = []

    def visit(nest: Nest, around: tuple[Loop, ...]) -> None:
        around += nest.schedule
        for item in nest.body:
            if isinstance(item, Nest):
                visit(item, around)
            else:
                paths.append(around)

    visit(kernel, ())
    extents: dict[str, set[int]] = {}
    for path in paths:
        axes = [loop.name[:2] for loop in path if loop.kind == "B"]
        if len(set(axes)) != len(axes):
            return "index bound twice"
        for loop in path:
            if loop.kind == "B":
                extents.setdefault(loop.name[:2], set()).add(loop.extent)
    if any(len(sizes) > 1 for sizes in extents.values()):
        return "two extents"
    if any(max(sizes) > GPU_LIMITS[axis] for axis, sizes in extents.items()):
        return "extent over the limit"
    if prod(max(sizes) for axis, sizes in extents.items() if axis[0] == "t") > 1024:
        return "too many threads"
    blocks = {axis for axis in extents if axis[0] == "b"}
    if any(not blocks <= {loop.name[:2] for loop in path if loop.kind == "B"} for path in paths):
        return "item outside a block index"
    return ""


def coordinates(kernel: Nest, levels: Levels) -> tuple[tuple[int, ...], dict[str, int]]:
    """Of an instance at ``levels``: its launch, the values of the loops around all bound ones, and its block, a value per index."""
    launch: list[int] = []
    block: dict[str, int] = {}
    nest, at, launching = kernel, 1, True
    while True:
        for loop, (_, value) in zip(nest.schedule, levels[at:], strict=False):
            launching = launching and loop.kind != "B"
            if launching:
                launch.append(value)
            elif loop.kind == "B" and loop.name[0] == "b":
                block[loop.name[:2]] = value
        at += len(nest.schedule)
        launching = launching and len(nest.body) == 1
        item = nest.body[levels[at][1]]
        if not isinstance(item, Nest):
            return tuple(launch), block
        nest, at = item, at + 1


def _binds_blocks(kernel: Nest) -> bool:
    return any(loop.kind == "B" and loop.name[0] == "b" for loop in (*kernel.schedule, *_below(kernel)))


def _loop(kind: str, name: str, extent: int) -> Loop:
    return Loop(kind, name, whole(0, extent))  # type: ignore[arg-type]


def _below(nest: Nest) -> Iterator[Loop]:
    for item in nest.body:
        if isinstance(item, Nest):
            yield from item.schedule
            yield from _below(item)


def _orders(count: int) -> list[tuple[int, ...]]:
    """All permutations of up to 4 loops; beyond, all swaps of two loops and all moves of one loop. Never the identity."""
    identity = tuple(range(count))
    if count <= 4:
        return [p for p in permutations(identity) if p != identity]
    found: set[tuple[int, ...]] = set()
    for i, j in combinations(identity, 2):
        swapped = list(identity)
        swapped[i], swapped[j] = swapped[j], swapped[i]
        found.add(tuple(swapped))
    for i in identity:
        for j in identity:
            moved = [k for k in identity if k != i]
            moved.insert(j, i)
            found.add(tuple(moved))
    return sorted(found - {identity})


def _cut_points(radix: Sequence[int]) -> list[int]:
    """The proper inner extents of a loop with these digits: a product of trailing digits times a divisor of the next one."""
    total, trailing, found = prod(radix), 1, set()
    for extent in reversed(radix):
        found |= {trailing * d for d in range(1, extent + 1) if extent % d == 0}
        trailing *= extent
    return sorted(found - {1, total})
