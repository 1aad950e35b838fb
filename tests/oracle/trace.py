"""A trace oracle: programs executed point by point, for the order in which they touch memory.

Shares nothing with `leir.polyhedral` or `rules`: it walks flat loops with Python's own counters, evaluates subscripts and guards
with Python's own integers, and compares pairs of touches one by one. Slow, and obviously right. Like the engine it takes every
element of a dimension that is subscripted through data, and both branches of a guard that reads data.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Literal, TypeAlias

from leir.ir import Access, Binary, Call, Compare, Equation, Expr, Index, Int, Nest, Unary

Point: TypeAlias = tuple[int, ...]
Where: TypeAlias = tuple[tuple[int, ...], Point]  # an instance: the equation's item path, and the values of its loops
Time: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Touched:
    """One instance touching one element."""

    where: Where
    role: Literal["read", "write", "accumulate"]
    tensor: str
    element: Point


@dataclass(frozen=True, slots=True)
class Loops:
    """An equation with the flat loops around it: (kind, name, extent, number of items before it at each bracket)."""

    equation: Equation
    path: tuple[int, ...]
    loops: tuple[tuple[str, str, int], ...]
    shape: tuple[int, ...]  # how many loops each nest on the path has


def equations_of(nests: Sequence[Nest]) -> list[Loops]:
    """Every equation of flat nests, in program order."""
    found: list[Loops] = []

    def visit(nest: Nest, path: tuple[int, ...], loops: tuple[tuple[str, str, int], ...], shape: tuple[int, ...]) -> None:
        loops += tuple((loop.kind, loop.name, loop.extent) for loop in nest.schedule)
        shape += (len(nest.schedule),)
        for number, item in enumerate(nest.body):
            if isinstance(item, Nest):
                visit(item, (*path, number), loops, shape)
            else:
                found.append(Loops(item, (*path, number), loops, shape))

    for number, nest in enumerate(nests):
        visit(nest, (number,), (), ())
    return found


def sequential_time(eq: Loops, point: Point) -> Time:
    """The time of an instance in the sequential reading: item numbers and loop values, as they nest."""
    time = [eq.path[0]]
    at = 0
    for count, item in zip(eq.shape, eq.path[1:], strict=True):
        time += [*point[at : at + count], item]
        at += count
    return tuple(time)


def points(eq: Loops) -> Iterator[Point]:
    return product(*(range(extent) for _, _, extent in eq.loops))


# ------------------------------------------------------------------------------------------------------------------- touches


@lru_cache(maxsize=10_000)
def accumulator(equation: Equation) -> Expr | None:
    """The occurrence of the target that makes the equation an accumulation, read off the language definition."""
    target, value = equation.target, equation.value
    if target.tensor.dtype == "bool" or _mentions(value, target.tensor.name) != 1:
        return None
    if isinstance(value, Call) and value.fn in ("max", "min"):
        return target if target in value.args else None
    chain = {"+": "+-", "-": "+-", "*": "*"}.get(value.op, "") if isinstance(value, Binary) else ""
    leftmost: Expr = value
    while isinstance(leftmost, Binary) and leftmost.op in chain:
        leftmost = leftmost.left
    return target if chain and leftmost is target else None


def operator(equation: Equation) -> str:
    value = equation.value
    if isinstance(value, Call):
        return value.fn
    return {"-": "+"}.get(value.op, value.op) if isinstance(value, Binary) else ""


def _mentions(expr: Expr, name: str) -> int:
    own = isinstance(expr, Access) and expr.tensor.name == name
    return own + sum(_mentions(part, name) for part in _parts(expr))


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


def touches(eq: Loops, point: Point, sizes: Callable[[str], Point]) -> list[Touched]:
    """Everything one instance touches; ``sizes`` gives a tensor's shape, for subscripts through data."""
    where = (eq.path, point)
    skip = accumulator(eq.equation)
    found: list[Touched] = []

    def reads(expr: Expr) -> None:
        if isinstance(expr, Call) and expr.fn == "if_then_else":
            guard, then, other = expr.args
            reads(guard)
            truth = decide(guard, point)
            if truth is not False:
                reads(then)
            if truth is not True:
                reads(other)
            return
        if isinstance(expr, Access) and expr is not skip:
            found.extend(Touched(where, "read", expr.tensor.name, e) for e in elements(expr, point, sizes))
        if expr is not skip:
            for part in _parts(expr):
                reads(part)

    reads(eq.equation.value)
    role: Literal["write", "accumulate"] = "write" if skip is None else "accumulate"
    target = eq.equation.target
    found.extend(Touched(where, role, target.tensor.name, e) for e in elements(target, point, sizes))
    return found


def elements(access: Access, point: Point, sizes: Callable[[str], Point]) -> Iterator[Point]:
    ranges = []
    for dim, sub in enumerate(access.subscripts):
        value = number(sub, point)
        ranges.append(range(sizes(access.tensor.name)[dim]) if value is None else range(value, value + 1))
    return product(*ranges)


def number(expr: Expr, point: Point) -> int | None:
    """The value of index arithmetic, None where it reads data."""
    match expr:
        case Int():
            return expr.value
        case Index():
            return point[expr.axis]
        case Unary(op="-"):
            inner = number(expr.operand, point)
            return None if inner is None else -inner
        case Binary():
            left, right = number(expr.left, point), number(expr.right, point)
            if left is None or right is None:
                return None
            match expr.op:
                case "+":
                    return left + right
                case "-":
                    return left - right
                case "*":
                    return left * right
                case "//":
                    return left // right
                case "%":
                    return left % right
    return None


def decide(guard: Expr, point: Point) -> bool | None:
    """Whether a guard holds; None where that depends on data."""
    match guard:
        case Unary(op="!"):
            negated = decide(guard.operand, point)
            return None if negated is None else not negated
        case Binary(op="&" | "|"):
            sides = (decide(guard.left, point), decide(guard.right, point))
            absorbing = guard.op == "|"
            if absorbing in sides:
                return absorbing
            return None if None in sides else not absorbing
        case Compare():
            values = [number(e, point) for e in guard.operands]
            unknown = False
            for op, left, right in zip(guard.ops, values, values[1:], strict=False):
                if left is None or right is None:
                    unknown = True
                elif not _compare(op, left, right):
                    return False
            return None if unknown else True
    return None


def _compare(op: str, left: int, right: int) -> bool:
    match op:
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "==":
            return left == right
    return left != right


# ----------------------------------------------------------------------------------------------------------------- conflicts


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two instances on one element, at least one writing, ``first`` earlier in the sequential reading."""

    first: Touched
    second: Touched

    @property
    def commuting(self) -> bool:
        """Two instances of one accumulating equation."""
        return self.first.role == self.second.role == "accumulate" and self.first.where[0] == self.second.where[0]


def conflicts(nests: Sequence[Nest], sizes: Callable[[str], Point]) -> list[Conflict]:
    """Every pair of conflicting touches of different instances of flat nests."""
    by_element: dict[tuple[str, Point], list[tuple[Time, Touched]]] = defaultdict(list)
    for eq in equations_of(nests):
        for point in points(eq):
            for touched in touches(eq, point, sizes):
                by_element[touched.tensor, touched.element].append((sequential_time(eq, point), touched))
    found: list[Conflict] = []
    for group in by_element.values():
        group.sort(key=lambda e: e[0])
        for k, (time, first) in enumerate(group):
            for later, second in group[k + 1 :]:
                if time != later and not first.role == second.role == "read":
                    found.append(Conflict(first, second))
    return found
