"""Iteration domains, access relations and orders of nests as isl objects: the one place in ``leir/`` that imports islpy.

Works on nests in normal or flat form alike. An *instance* of an equation is a point of the axes along its path, ancestors first;
in isl text they are ``i0, i1, ...``. Everything here is exact, or says that it is not: an indirect subscript covers its whole
dimension, a guard that reads data restricts nothing.

Measured (facts-isl.md): parsing isl text dominates, so maps are memoised by their text; isl objects are never used as keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import islpy as isl

from leir.ir import (
    Access,
    Binary,
    Call,
    Compare,
    Digit,
    Equation,
    Expr,
    Index,
    Int,
    Item,
    Nest,
    Unary,
    accumulation,
)

Set: TypeAlias = Any  # isl.Set and isl.Map: islpy ships no usable types
Map: TypeAlias = Any
Role: TypeAlias = Literal["read", "write", "accumulate"]

_DIM = isl.dim_type
OPERATION_BUDGET = 100_000
"""isl operations for one question, about half a second's worth; nearly all questions take under 1,000."""


class OverBudgetError(Exception):
    """An isl question took more operations than allowed; the caller refuses, with that reason."""


# ------------------------------------------------------------------------------------------------------------------- isl text


def affine(expr: Expr, names: Sequence[str]) -> str | None:
    """Index arithmetic as isl text over ``names`` (``names[k]`` is axis ``k``), or None if it is not quasi-affine."""
    match expr:
        case Int():
            return str(expr.value)
        case Index():
            return names[expr.axis]
        case Unary(op="-"):
            inner = affine(expr.operand, names)
            return None if inner is None else f"(-{inner})"
        case Binary(op="+" | "-"):
            left, right = affine(expr.left, names), affine(expr.right, names)
            return None if left is None or right is None else f"({left} {expr.op} {right})"
        case Binary(op="*"):
            left, right = affine(expr.left, names), affine(expr.right, names)
            if left is None or right is None or not (_is_constant(expr.left) or _is_constant(expr.right)):
                return None
            return f"({left} * {right})" if _is_constant(expr.left) else f"({right} * {left})"
        case Binary(op="//" | "%", right=Int(value=divisor)) if divisor > 0:
            inner = affine(expr.left, names)
            if inner is None:
                return None
            return f"floor(({inner})/{divisor})" if expr.op == "//" else f"(({inner}) mod {divisor})"
        case _:
            return None


def _is_constant(expr: Expr) -> bool:
    match expr:
        case Int():
            return True
        case Unary(op="-"):
            return _is_constant(expr.operand)
        case Binary(op="+" | "-" | "*"):
            return _is_constant(expr.left) and _is_constant(expr.right)
        case _:
            return False


@dataclass(frozen=True, slots=True)
class Condition:
    """When a guard can hold and when it can fail, each as isl text that covers at least those points (``exact``: just those)."""

    holds: str
    fails: str
    exact: bool


def condition(guard: Expr, names: Sequence[str]) -> Condition:
    """A guard as constraints on the axes."""
    match guard:
        case Unary(op="!"):
            inner = condition(guard.operand, names)
            return Condition(inner.fails, inner.holds, inner.exact)
        case Binary(op="&" | "|"):
            a, b = condition(guard.left, names), condition(guard.right, names)
            both, either = f"(({a.holds}) and ({b.holds}))", f"(({a.fails}) or ({b.fails}))"
            if guard.op == "|":
                both, either = f"(({a.holds}) or ({b.holds}))", f"(({a.fails}) and ({b.fails}))"
            return Condition(both, either, a.exact and b.exact)
        case Compare():
            terms = [affine(e, names) for e in guard.operands]
            holds, fails, exact = [], [], True
            for op, left, right in zip(guard.ops, terms, terms[1:], strict=False):
                if left is None or right is None:
                    exact = False
                    fails.append("true")
                    continue
                holds.append(_comparison(left, op, right))
                fails.append(f"not ({_comparison(left, op, right)})")
            return Condition(" and ".join(holds) or "true", " or ".join(fails), exact)
        case _:
            return Condition("true", "true", False)


def _comparison(left: str, op: str, right: str) -> str:
    return f"{left} != {right}" if op == "!=" else f"{left} {'=' if op == '==' else op} {right}"


# ------------------------------------------------------------------------------------------------------------------ statements


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition on the way to an access: the guard of an ``if_then_else`` and which branch was taken."""

    expr: Expr
    branch: bool


@dataclass(frozen=True, slots=True)
class Touch:
    """One access of an equation. ``scalar`` is its path in the value, None for the target."""

    role: Role
    access: Access
    guards: tuple[Guard, ...]
    scalar: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a timeline: a loop, by the digits of axes that it walks, or the position among the items of a body."""

    kind: str
    digits: tuple[Digit, ...]
    position: int


@dataclass(frozen=True, slots=True)
class Statement:
    """An equation with its place: item path, extents of the axes along the path, and the order in which its instances run."""

    equation: Equation
    path: tuple[int, ...]
    extents: tuple[int, ...]
    timeline: tuple[Level, ...]
    touches: tuple[Touch, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"i{k}" for k in range(len(self.extents)))


def position(index: int) -> Level:
    return Level("position", (), index)


def statements(nests: Sequence[Nest], *, first: int = 0) -> list[Statement]:
    """The equations of the expressions in program order; ``first`` is the number of the first expression."""
    found: list[Statement] = []
    for number, nest in enumerate(nests, first):
        _collect(nest, (number,), (), (position(number),), found)
    return found


def statements_below(nest: Nest, outer: tuple[int, ...]) -> list[Statement]:
    """The equations below a nest whose ancestors have axes of extents ``outer``; timelines and paths start at the nest."""
    found: list[Statement] = []
    _collect(nest, (), outer, (), found)
    return found


def _collect(
    item: Item, path: tuple[int, ...], extents: tuple[int, ...], timeline: tuple[Level, ...], found: list[Statement]
) -> None:
    if isinstance(item, Equation):
        found.append(Statement(item, path, extents, timeline, touches(item)))
        return
    inner = timeline + tuple(Level(loop.kind, loop.digits, 0) for loop in item.schedule)
    for number, child in enumerate(item.body):
        _collect(child, (*path, number), extents + item.axes, (*inner, position(number)), found)


@lru_cache(maxsize=200_000)
def touches(equation: Equation) -> tuple[Touch, ...]:
    """Reads in the order of the text, then the target; the accumulator is the target's touch, not a read."""
    found = accumulation(equation)
    skip = found[1] if found else None
    reads = [t for t in _reads(equation.value, (), ()) if t.scalar != skip]
    role: Role = "accumulate" if found else "write"
    return (*reads, Touch(role, equation.target, (), None))


def _reads(expr: Expr, guards: tuple[Guard, ...], path: tuple[int, ...]) -> Iterator[Touch]:
    match expr:
        case Access():
            yield Touch("read", expr, guards, path)
            for k, sub in enumerate(expr.subscripts):
                yield from _reads(sub, guards, (*path, k))
        case Call(fn="if_then_else", args=(guard, then, other)):
            yield from _reads(guard, guards, (*path, 0))
            yield from _reads(then, (*guards, Guard(guard, True)), (*path, 1))
            yield from _reads(other, (*guards, Guard(guard, False)), (*path, 2))
        case Unary():
            yield from _reads(expr.operand, guards, (*path, 0))
        case Binary():
            yield from _reads(expr.left, guards, (*path, 0))
            yield from _reads(expr.right, guards, (*path, 1))
        case Compare() | Call():
            for k, operand in enumerate(expr.operands if isinstance(expr, Compare) else expr.args):
                yield from _reads(operand, guards, (*path, k))
        case _:
            return


# -------------------------------------------------------------------------------------------------------------- sets and maps


@lru_cache(maxsize=100_000)
def parse_set(text: str) -> Set:
    return isl.Set(text)


@lru_cache(maxsize=100_000)
def parse_map(text: str) -> Map:
    return isl.Map(text)


@lru_cache(maxsize=50_000)
def box(extents: tuple[int, ...]) -> Set:
    """``{ [i0, ...] : 0 <= ik < extents[k] }``."""
    result = isl.Set.universe(isl.Space.set_alloc(isl.DEFAULT_CONTEXT, 0, len(extents)))
    for k, size in enumerate(extents):
        result = result.lower_bound_val(_DIM.set, k, 0).upper_bound_val(_DIM.set, k, size - 1)
    return result


def tuple_text(names: Sequence[str]) -> str:
    return f"[{', '.join(names)}]"


def guarded_domain(extents: tuple[int, ...], guards: tuple[Guard, ...]) -> tuple[Set, bool]:
    """The instances that reach an access under these guards (a superset where a guard reads data), and whether it is exact."""
    names = [f"i{k}" for k in range(len(extents))]
    domain, exact = box(extents), True
    for guard in guards:
        reached = condition(guard.expr, names)
        text = reached.holds if guard.branch else reached.fails
        if text != "true":
            domain = domain.intersect(parse_set(f"{{ {tuple_text(names)} : {text} }}"))
        exact = exact and reached.exact
    return domain, exact


@dataclass(frozen=True, slots=True)
class Relation:
    """``{ [instance] -> [element] }`` of one access. Inexact means: at least these."""

    map: Map
    exact: bool


@lru_cache(maxsize=100_000)
def relation(extents: tuple[int, ...], access: Access, guards: tuple[Guard, ...]) -> Relation:
    """The access relation, restricted to the instances that reach it."""
    names = [f"i{k}" for k in range(len(extents))]
    cells, exact = [], True
    for k, sub in enumerate(access.subscripts):
        text = affine(sub, names)
        exact = exact and text is not None
        cells.append(f"c{k}" if text is None else text)
    whole = parse_map(f"{{ {tuple_text(names)} -> {tuple_text(cells)} }}")
    domain, reached = guarded_domain(extents, guards)
    return Relation(whole.intersect_domain(domain), exact and reached)


def touch_relation(statement: Statement, touch: Touch) -> Relation:
    return relation(statement.extents, touch.access, touch.guards)


@lru_cache(maxsize=100_000)
def _conflict(
    ext_s: tuple[int, ...], a: Access, guards_a: tuple[Guard, ...], ext_t: tuple[int, ...], b: Access, guards_b: tuple[Guard, ...]
) -> Map:
    return relation(ext_s, a, guards_a).map.apply_range(relation(ext_t, b, guards_b).map.reverse())


def conflict(s: Statement, a: Touch, t: Statement, b: Touch) -> Map:
    """``{ [instance of s] -> [instance of t] }`` that touch the same element through ``a`` and ``b``."""
    return _conflict(s.extents, a.access, a.guards, t.extents, b.access, b.guards)


def conflict_kind(s: Statement, a: Touch, t: Statement, b: Touch) -> Literal["hard", "commuting"] | None:
    """Two reads never conflict; two instances of one accumulation commute; everything else on one tensor is ordered."""
    if a.access.tensor.name != b.access.tensor.name or (a.role == "read" and b.role == "read"):
        return None
    if len(a.access.subscripts) != len(b.access.subscripts):
        return None  # ill-formed, as the checker reports: no element has two ranks
    if a.role == b.role == "accumulate" and s.path == t.path:
        return "commuting"
    return "hard"


# ----------------------------------------------------------------------------------------------------------------------- order


def loop_text(digits: tuple[Digit, ...], extents: tuple[int, ...], prefix: str) -> str:
    """The value of a loop as isl text of the axes ``prefix0, prefix1, ...``."""
    total = ""
    size = 1
    for digit in reversed(digits):
        value = f"{prefix}{digit.axis}"
        if digit.stride != 1:
            value = f"floor({value}/{digit.stride})"
        if digit.stride * digit.extent != extents[digit.axis]:
            value = f"({value} mod {digit.extent})"
        value = value if size == 1 else f"{size}*{value}"
        total = value if not total else f"{value} + {total}"
        size *= digit.extent
    return total


def compare(pairs: Map, s: Statement, level_s: Level, t: Statement, level_t: Level, op: Literal["<", "=", ">"]) -> Map:
    """The pairs ``x -> y`` whose values at a level stand in this order."""
    axis_s, axis_t = _single_axis(level_s, s.extents), _single_axis(level_t, t.extents)
    if axis_s is not None and axis_t is not None:
        if op == "=":
            return pairs.equate(_DIM.in_, axis_s, _DIM.out, axis_t)
        if op == "<":
            return pairs.order_lt(_DIM.in_, axis_s, _DIM.out, axis_t)
        return pairs.order_gt(_DIM.in_, axis_s, _DIM.out, axis_t)
    left, right = loop_text(level_s.digits, s.extents, "x"), loop_text(level_t.digits, t.extents, "y")
    xs, ys = (tuple_text([f"{p}{k}" for k in range(n)]) for p, n in (("x", len(s.extents)), ("y", len(t.extents))))
    return pairs.intersect(parse_map(f"{{ {xs} -> {ys} : {left} {op} {right} }}"))


def _single_axis(level: Level, extents: tuple[int, ...]) -> int | None:
    if len(level.digits) == 1 and level.digits[0].extent == extents[level.digits[0].axis]:
        return level.digits[0].axis
    return None


def ordered(
    pairs: Map, s: Statement, tl_s: Sequence[Level], t: Statement, tl_t: Sequence[Level], op: Literal["<", ">"]
) -> list[Map]:
    """The non-empty pieces of ``pairs`` in which ``x`` runs before (``<``) or after (``>``) ``y``, read sequentially."""
    pieces: list[Map] = []
    current = pairs
    for level_s, level_t in zip(tl_s, tl_t, strict=False):
        if level_s.kind == "position":
            if level_s.position != level_t.position:
                if (level_s.position < level_t.position) == (op == "<") and not current.is_empty():
                    pieces.append(current)
                return pieces
            continue
        strict = compare(current, s, level_s, t, level_t, op)
        if not strict.is_empty():
            pieces.append(strict)
        current = compare(current, s, level_s, t, level_t, "=")
        if current.is_empty():
            return pieces
    return pieces


def sample(relation_or_set: Any) -> tuple[int, ...] | None:
    """The coordinates of the least point (inputs, then outputs, of a map), or None if empty."""
    points = relation_or_set.wrap() if isinstance(relation_or_set, isl.Map) else relation_or_set
    if points.is_empty():
        return None
    point = points.lexmin().sample_point()
    dims = points.dim(_DIM.set)
    return tuple(int(point.get_coordinate_val(_DIM.set, k).to_python()) for k in range(dims))


class _Patience:
    """How many more questions of the running `patience` block may use up a whole budget; None outside of one."""

    overruns: int | None = None


@contextmanager
def patience(overruns: int = 2) -> Iterator[None]:
    """In the block, once ``overruns`` questions have gone over budget, the others get a fiftieth of it: text that is made to be
    hard costs seconds, not a budget for each of its equations."""
    outer, _Patience.overruns = _Patience.overruns, overruns
    try:
        yield
    finally:
        _Patience.overruns = outer


def within_budget(question: Any, operations: int = OPERATION_BUDGET) -> Any:
    """The answer of ``question()``, or OverBudgetError if isl needed more than ``operations``."""
    if _Patience.overruns == 0:
        operations //= 50
    context = isl.DEFAULT_CONTEXT
    context.reset_operations()
    context.set_max_operations(operations)
    try:
        return question()
    except isl.Error as error:
        if "maximal number of operations exceeded" in str(error):
            if _Patience.overruns:
                _Patience.overruns -= 1
            raise OverBudgetError(f"more than {operations} isl operations") from error
        raise
    finally:
        context.set_max_operations(0)
        context.reset_operations()
