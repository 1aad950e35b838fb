"""Reads through data: integers that isl cannot see become further axes, so that gathers and their guards are decided exactly.

``A_{I_{a}+1}`` under ``0<=I_{a}`` is index arithmetic over ``a`` and one more axis, which ranges over the values that ``I_{a}`` may
have. The same access has the same value all over one equation, so it is one axis there. What is no quasi-affine expression, such as
``a*c``, becomes an axis too; an answer about it may then be too strict, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from leir.checker.facts import Facts, Site, TensorUse
from leir.checker.regions import reach
from leir.elaborate import subscript_is_integer
from leir.ir import Access, Binary, Call, Compare, Expr, Index, Int, Unary, children, is_index_arithmetic, with_children
from leir.polyhedral import Guard, Statement, Touch
from leir.shapes import Interval

INTEGER_BITS = {"i8": 8, "i32": 32, "i64": 64}
DTYPE_RANGE = {"i8": (-(1 << 7), (1 << 7) - 1), "i32": (-(1 << 31), (1 << 31) - 1), "i64": (-(1 << 40), 1 << 40)}
"""The values of an integer tensor without a range; for i64 far enough to leave every tensor."""
_BEYOND = (-(1 << 40), 1 << 40)

Opaqueness = Literal["ranged", "unranged", "not affine"]


@dataclass(frozen=True, slots=True)
class Opaque:
    """An integer that stands as an axis of its own, with values from ``low``."""

    expr: Expr
    kind: Opaqueness
    low: int


@dataclass(frozen=True, slots=True)
class Exposed:
    """A read whose subscripts are index arithmetic over the loops and the ``opaque`` axes after them."""

    statement: Statement
    touch: Touch
    opaque: tuple[Opaque, ...]

    @property
    def extents(self) -> tuple[int, ...]:
        return self.statement.extents

    def has(self, kind: Opaqueness) -> bool:
        """Whether a subscript holds an opaque integer of this kind."""
        first = len(self.extents) - len(self.opaque)
        used = {e.axis for s in self.touch.access.subscripts for e in _indices(s)}
        return any(o.kind == kind and first + k in used for k, o in enumerate(self.opaque))


def _indices(expr: Expr) -> list[Index]:
    return [expr] if isinstance(expr, Index) else [e for part in children(expr) for e in _indices(part)]


def expose(facts: Facts, site: Site, touch: Touch) -> Exposed:
    """``touch`` over the loops and its opaque integers. The statement keeps its order of execution."""
    exposer = _Exposer(facts, site)
    access = Access(touch.access.tensor, tuple(exposer.subscript(s) for s in touch.access.subscripts))
    guards = tuple(Guard(exposer.guard(g.expr), g.branch) for g in touch.guards)
    if not exposer.opaque:
        return Exposed(site.statement, touch, ())
    statement = replace(site.statement, extents=site.extents + tuple(exposer.sizes))
    return Exposed(statement, Touch(touch.role, access, guards, touch.scalar), tuple(exposer.opaque))


class _Exposer:
    def __init__(self, facts: Facts, site: Site) -> None:
        self.facts, self.site = facts, site
        self.opaque: list[Opaque] = []
        self.sizes: list[int] = []
        self.axes: dict[Expr, Expr] = {}

    def axis(self, expr: Expr, kind: Opaqueness, bounds: Interval) -> Expr:
        """``expr`` as an axis that starts at 0, plus its least value."""
        if expr not in self.axes:
            low, high = bounds
            index: Expr = Index(len(self.site.extents) + len(self.opaque))
            if low:
                index = Binary("+", index, Int(low)) if low > 0 else Binary("-", index, Int(-low))
            self.opaque.append(Opaque(expr, kind, low))
            self.sizes.append(high - low + 1)
            self.axes[expr] = index
        return self.axes[expr]

    def subscript(self, expr: Expr) -> Expr:
        match expr:
            case Int() | Index():
                return expr
            case Access():
                return self.data(expr)
            case Unary() | Binary(op="+" | "-"):
                return with_children(expr, tuple(self.subscript(part) for part in children(expr)))
            case Binary(op="*") if _constant(expr.left) or _constant(expr.right):
                return with_children(expr, tuple(self.subscript(part) for part in children(expr)))
            case Binary(op="//" | "%", right=Int(value=divisor)) if divisor > 0:
                return with_children(expr, (self.subscript(expr.left), expr.right))
        extents = self.site.extents
        return self.axis(expr, "not affine", reach(expr, extents) or _BEYOND)

    def data(self, access: Access) -> Expr:
        bounds = value_range(self.facts, access.tensor.name)
        if bounds is None:
            return self.axis(access, "unranged", DTYPE_RANGE.get(access.tensor.dtype, _BEYOND))
        return self.axis(access, "ranged", bounds)

    def guard(self, expr: Expr) -> Expr:
        """A guard in which integers that are compared, and fit what they are compared in, are opaque axes."""
        match expr:
            case Compare() if all(self.exact(e) for e in expr.operands):
                return Compare(tuple(self.subscript(e) for e in expr.operands), expr.ops)
            case Unary(op="!") | Binary(op="&" | "|"):
                return with_children(expr, tuple(self.guard(part) for part in children(expr)))
        return expr

    def exact(self, operand: Expr) -> bool:
        """Whether comparing ``operand`` in its dtype compares exact integers: no arithmetic on data that could wrap."""
        if isinstance(operand, Access):
            return operand.tensor.dtype in ("i32", "i64") and subscript_is_integer(operand)
        bounds = reach(operand, self.site.extents)
        return bounds is not None and bounds[0] >= -(1 << 31) and bounds[1] < 1 << 31


def _constant(expr: Expr) -> bool:
    match expr:
        case Int():
            return True
        case Unary(op="-"):
            return _constant(expr.operand)
        case Binary(op="+" | "-" | "*"):
            return _constant(expr.left) and _constant(expr.right)
        case _:
            return False


# ------------------------------------------------------------------------------------------------------- ranges of integer tensors


def value_range(facts: Facts, name: str) -> Interval | None:
    """The values that an integer tensor may hold: as declared, or for a temporary as its equations say; None if unknown."""
    if name not in facts.value_ranges:
        use = facts.tensors[name]
        facts.value_ranges[name] = None  # a value that depends on itself has no range
        facts.value_ranges[name] = use.known.range if use.known is not None else _written_range(facts, use)
    return facts.value_ranges[name]


def _written_range(facts: Facts, use: TensorUse) -> Interval | None:
    spans = [_Spans(facts, site).of(site.equation.value) for site in use.writes]
    return _hull(spans) if spans else None


def _hull(spans: list[Interval | None]) -> Interval | None:
    known = [s for s in spans if s is not None]
    return (min(s[0] for s in known), max(s[1] for s in known)) if len(known) == len(spans) else None


@dataclass(frozen=True, slots=True)
class _Spans:
    """Bounds on integer values of one equation, in its dtype; None where they are unknown or could wrap."""

    facts: Facts
    site: Site

    def of(self, expr: Expr) -> Interval | None:
        allowed = DTYPE_RANGE.get(self.site.equation.target.tensor.dtype)
        found = reach(expr, self.site.extents) or self.inside(expr)
        return found if found is not None and allowed is not None and allowed[0] <= found[0] <= found[1] <= allowed[1] else None

    def inside(self, expr: Expr) -> Interval | None:
        match expr:
            case Access():
                return value_range(self.facts, expr.tensor.name)
            case Unary(op="-"):
                inner = self.of(expr.operand)
                return None if inner is None else (-inner[1], -inner[0])
            case Call(fn="if_then_else"):
                return _hull([self.of(branch) for branch in expr.args[1:]])
            case Call(fn="cast_i32" | "cast_i64") if is_index_arithmetic(expr.args[0]):
                return reach(expr.args[0], self.site.extents)
            case Binary(op="%", right=Int(value=divisor)) if divisor > 0:
                return 0, divisor - 1
            case Binary(op="+" | "-" | "*"):
                return self.pair(expr.op, expr.left, expr.right)
            case Call(fn="max" | "min"):
                return self.pair(expr.fn, *expr.args)
            case _:
                return None

    def pair(self, op: str, first: Expr, second: Expr) -> Interval | None:
        left, right = self.of(first), self.of(second)
        if left is None or right is None:
            return None
        match op:
            case "+":
                return left[0] + right[0], left[1] + right[1]
            case "-":
                return left[0] - right[1], left[1] - right[0]
            case "*":
                corners = [x * y for x in left for y in right]
                return min(corners), max(corners)
            case "max":
                return max(left[0], right[0]), max(left[1], right[1])
            case _:
                return min(left[0], right[0]), min(left[1], right[1])
