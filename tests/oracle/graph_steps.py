"""Fission, swap and inlining by brute force: whole parameter spaces, decided by execution.

Fission and swap give every instance another time, which is held against the conflicts of the trace. Inlining is decided by values:
the program runs on uninterpreted values, in which two results are equal only if the same operations made them of the same inputs.
At every instance of a consumer each read is computed a second time, from the producer's right-hand side as things stand then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from leir.ir import Access, Binary, Call, Compare, Expr, Int, Nest, Real, Unary
from tests.oracle.steps import Case, Levels, Space, kernel_problem
from tests.oracle.trace import Loops, Point, Where, accumulator, decide, equations_of, number, operator, points, sequential_time

Path = tuple[int, ...]
Pair = tuple[Path, Path]


def fissions(space: Space) -> Iterator[Case]:
    """Every cut of every body of several items; each part is an expression afterwards."""
    for expression, nest in enumerate(space.nests):
        for cut in range(1, len(nest.body)):

            def levels(where: Where, expression: int = expression, cut: int = cut) -> Levels:
                old = space.old_levels(where)
                at = 1 + len(space.nests[expression].schedule)
                if where[0][0] == expression and where[0][1] >= cut:
                    return [("item", expression + 1), *old[1:at], ("item", where[0][1] - cut), *old[at + 1 :]]
                return old if where[0][0] <= expression else [("item", where[0][0] + 1), *old[1:]]

            parts = [Nest(nest.axes, nest.schedule, items) for items in (nest.body[:cut], nest.body[cut:])]
            reason = next(filter(None, map(kernel_problem, parts)), "") or order_problem(space, levels)
            yield Case("operator_fission", (expression,), (("cut", cut),), not reason, reason, True)


def swaps(space: Space) -> Iterator[Case]:
    """Every pair of neighbours."""
    for first in range(len(space.nests) - 1):

        def levels(where: Where, first: int = first) -> Levels:
            moved = {first: first + 1, first + 1: first}.get(where[0][0], where[0][0])
            return [("item", moved), *space.old_levels(where)[1:]]

        reason = order_problem(space, levels)
        yield Case("expression_reorder", (first,), (), not reason, reason, True)


def order_problem(space: Space, levels: Callable[[Where], Levels]) -> str:
    """Why the instances may not run at ``levels``, or nothing. Whole expressions move, so no accumulation is reordered."""
    for conflict in space.conflicts:
        first, second = levels(conflict.first.where), levels(conflict.second.where)
        a, b = next((a, b) for a, b in zip(first, second, strict=False) if a[1] != b[1])
        if a[0][0] in "PVB":
            return "carried"
        if a[1] > b[1]:
            return "reversed"
    return ""


# ------------------------------------------------------------------------------------------------------------------- inlining


def inlinings(nests: Sequence[Nest]) -> list[Pair]:
    """Every plain equation with every other one that reads its target in the same expression or a later one."""
    every = equations_of(nests)
    return [
        (p.path, c.path)
        for p in every
        if accumulator(p.equation) is None
        for c in every
        if c is not p and c.path[0] >= p.path[0] and _mentions(c.equation.value, p.equation.target.tensor.name)
    ]


def _mentions(expr: Expr, name: str) -> bool:
    return any(access.tensor.name == name for access in _accesses(expr))


def _accesses(expr: Expr) -> Iterator[Access]:
    if isinstance(expr, Access):
        yield expr
    for part in _parts(expr):
        yield from _accesses(part)


def _parts(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Access():
            return expr.subscripts
        case Unary():
            return (expr.operand,)
        case Binary():
            return (expr.left, expr.right)
        case Compare():
            return expr.operands
        case Call():
            return expr.args
    return ()


UNDEFINED = -1


@dataclass(slots=True)
class Values:
    """One run on uninterpreted values. ``integers`` are the inputs that subscripts read; a value is the number of its term."""

    nests: Sequence[Nest]
    integers: Mapping[str, np.ndarray]
    inputs: frozenset[str]
    terms: dict[tuple[object, ...], int] = field(default_factory=dict)
    memory: dict[tuple[str, Point], int] = field(default_factory=dict)

    def wrong(self, pairs: Sequence[Pair]) -> set[Pair]:
        """The pairs of producer and consumer for which some read would be another value, or none."""
        every = equations_of(self.nests)
        by_path = {eq.path: eq for eq in every}
        instances = sorted((sequential_time(eq, point), eq.path, point) for eq in every for point in points(eq))
        sources: dict[Path, dict[Point, list[Point]]] = {p: {} for p, _ in pairs}
        for _, path, point in instances:
            if path in sources:
                sources[path].setdefault(self.element(by_path[path].equation.target, point), []).append(point)
        producers: dict[Path, list[Path]] = {}
        for p, c in pairs:
            producers.setdefault(c, []).append(p)
        found: set[Pair] = set()
        for _, path, point in instances:
            eq = by_path[path]
            for p in producers.get(path, ()):
                if (p, path) not in found and not self.same(by_path[p], sources[p], eq, point):
                    found.add((p, path))
            self.memory[eq.equation.target.tensor.name, self.element(eq.equation.target, point)] = self.result(eq, point)
        return found

    def same(self, producer: Loops, source: Mapping[Point, list[Point]], consumer: Loops, point: Point) -> bool:
        """Whether each read of one instance has the value that the producer's right-hand side has now."""
        name = producer.equation.target.tensor.name
        for read in self.reached(consumer.equation.value, point):
            if read.tensor.name == name:
                element = self.element(read, point)
                instances = source.get(element, [])
                held = self.memory.get((name, element), UNDEFINED)
                if len(instances) != 1 or held == UNDEFINED or self.value(producer.equation.value, instances[0]) != held:
                    return False
        return True

    def reached(self, expr: Expr, point: Point) -> Iterator[Access]:
        """The accesses that an instance evaluates, or may."""
        if isinstance(expr, Call) and expr.fn == "if_then_else":
            guard, then, other = expr.args
            truth = decide(guard, point)
            chosen = [guard, *([then] if truth is not False else []), *([other] if truth is not True else [])]
            for part in chosen:
                yield from self.reached(part, point)
            return
        if isinstance(expr, Access):
            yield expr
        for part in _parts(expr):
            yield from self.reached(part, point)

    def result(self, eq: Loops, point: Point) -> int:
        target = eq.equation.target
        place = target.tensor.name, self.element(target, point)
        if accumulator(eq.equation) is not None and place not in self.memory:
            self.memory[place] = self.term("identity", operator(eq.equation))
        return self.value(eq.equation.value, point)

    def term(self, *parts: object) -> int:
        return self.terms.setdefault(parts, len(self.terms))

    def element(self, access: Access, point: Point) -> Point:
        return tuple(self.integer(sub, point) for sub in access.subscripts)

    def integer(self, expr: Expr, point: Point) -> int:
        """The value of a subscript: its reads become numbers first."""
        value = number(self.looked_up(expr, point), point)
        assert value is not None
        return value

    def looked_up(self, expr: Expr, point: Point) -> Expr:
        match expr:
            case Access():
                held = int(self.integers[expr.tensor.name][self.element(expr, point)])
                return Int(held) if held >= 0 else Unary("-", Int(-held))
            case Unary():
                return Unary(expr.op, self.looked_up(expr.operand, point))
            case Binary():
                return Binary(expr.op, self.looked_up(expr.left, point), self.looked_up(expr.right, point))
        return expr

    def value(self, expr: Expr, point: Point) -> int:
        known = number(expr, point)
        if known is not None:
            return self.term("integer", known)
        match expr:
            case Real():
                return self.term("real", repr(expr.value))
            case Access():
                name, element = expr.tensor.name, self.element(expr, point)
                if name in self.inputs:
                    return self.term("input", name, element)
                return self.memory.get((name, element), UNDEFINED)
            case Call(fn="if_then_else", args=(guard, then, other)):
                truth = decide(guard, point)
                if truth is not None:
                    return self.value(then if truth else other, point)
        label = expr.fn if isinstance(expr, Call) else getattr(expr, "op", None) or getattr(expr, "ops", None)
        parts = [self.value(part, point) for part in _parts(expr)]
        return UNDEFINED if UNDEFINED in parts else self.term(label, *parts)
