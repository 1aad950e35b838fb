"""Between the text and the normal form: flatten and lift (leir.md, section 4).

*Flatten* writes every axis as the sum of its digits, which is what the printer prints. *Lift* reads such sums back: a loop whose
every occurrence is a digit ``k//S%E`` of one mixed radix is unfused, then two axes that occur only as ``h*E+a`` become one. Both
directions match and produce the same expressions, node for node, so a text comes back to the letter and ``lift(flatten(n)) is n``
for every nest in normal form. Normal form is, by definition, what `lift` returns.

Merging axes forgets the order in which their digits were written, so it must be harmless: the written order has to preserve every
hard dependence of the reference order (axes by first occurrence). Where it does not, the axes keep the written order, or stay
apart, and the body says so by its axis numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from leir import digits as algebra
from leir.harmless import written_order_preserves
from leir.initial import derive
from leir.ir import (
    Access,
    Binary,
    Digit,
    Equation,
    Expr,
    Index,
    Int,
    Item,
    Loop,
    Nest,
    Program,
    Signature,
    children,
    is_index_arithmetic,
    with_children,
)

_WORK = 1_000_000  # axis numbers from here on are working numbers: unique, and not yet those of the result


def make_program(signature: Signature, nests: Sequence[Nest]) -> Program:
    """A program in normal form, with its initialisation derived, from nests in any form."""
    return Program(signature, derive(signature, tuple(lift(flatten(nest)) for nest in nests)))


def flatten_program(program: Program) -> tuple[Nest, ...]:
    """The program's text as flat nests."""
    return tuple(flatten(nest) for nest in program.nests)


# --------------------------------------------------------------------------------------------------------------------- flatten


@lru_cache(maxsize=100_000)
def flatten(nest: Nest) -> Nest:
    """The flat form of a top-level nest: every loop one whole axis, in loop order. `init` stays as it is."""
    return _flatten(nest, (), 0)


def _flatten(nest: Nest, env: tuple[Expr, ...], depth: int) -> Nest:
    loops = [Index(depth + k) for k in range(len(nest.schedule))]
    env = env + tuple(algebra.axis_values(nest, loops, len(env)))
    depth += len(loops)
    schedule = tuple(
        Loop(loop.kind, loop.name, algebra.whole(index.axis, loop.extent)) for loop, index in zip(nest.schedule, loops, strict=True)
    )
    body = tuple(
        _flatten(item, env, depth) if isinstance(item, Nest) else map_equation(item, lambda e: substitute(e, env))
        for item in nest.body
    )
    return Nest(tuple(loop.extent for loop in nest.schedule), schedule, body)


def substitute(expr: Expr, env: Sequence[Expr]) -> Expr:
    """``expr`` with axis ``k`` replaced by ``env[k]``. After a ``+`` in index arithmetic, a sum is spliced in term by term."""
    if isinstance(expr, Index):
        return env[expr.axis]
    parts = children(expr)
    if not parts:
        return expr
    new = tuple(substitute(part, env) for part in parts)
    if isinstance(expr, Binary) and expr.op == "+" and isinstance(expr.right, Index) and is_index_arithmetic(expr.left):
        left = new[0]
        for term in _sum_terms(new[1]):
            left = Binary("+", left, term)
        return left
    return expr if all(a is b for a, b in zip(parts, new, strict=True)) else with_children(expr, new)


def _sum_terms(expr: Expr) -> list[Expr]:
    if isinstance(expr, Binary) and expr.op == "+":
        return [*_sum_terms(expr.left), expr.right]
    return [expr]


def map_equation(equation: Equation, fn: Callable[[Expr], Expr]) -> Equation:
    """``equation`` with ``fn`` applied to its target and its value."""
    target = fn(equation.target)
    assert isinstance(target, Access)
    return Equation(target, fn(equation.value), equation.init)


def map_item(item: Item, fn: Callable[[Expr], Expr]) -> Item:
    """``item`` with ``fn`` applied to every target and value below it; loops stay."""
    if isinstance(item, Equation):
        return map_equation(item, fn)
    return Nest(item.axes, item.schedule, tuple(map_item(child, fn) for child in item.body))


# ------------------------------------------------------------------------------------------------------------------------ lift


@dataclass(slots=True)
class _Axis:
    """A working axis: its extent and its digits as (loop number, position in the loop, extent, stride)."""

    number: int
    extent: int
    digits: list[tuple[int, int, int, int]]


@lru_cache(maxsize=100_000)
def lift(flat: Nest) -> Nest:
    """The normal form of a flat top-level nest."""
    shifted = _shift(flat)
    return _lift(shifted, 0, (), _Counter())


@dataclass(slots=True)
class _Counter:
    next: int = 2 * _WORK

    def fresh(self) -> int:
        self.next += 1
        return self.next


def _shift(nest: Nest) -> Nest:
    """Flat axis numbers moved out of the way of final ones."""

    def move(expr: Expr) -> Expr:
        if isinstance(expr, Index):
            return Index(expr.axis + _WORK)
        parts = children(expr)
        return with_children(expr, tuple(move(p) for p in parts)) if parts else expr

    return Nest(
        nest.axes,
        tuple(Loop(loop.kind, loop.name, algebra.whole(loop.digits[0].axis + _WORK, loop.extent)) for loop in nest.schedule),
        tuple(_shift(item) if isinstance(item, Nest) else map_equation(item, move) for item in nest.body),
    )


def _lift(nest: Nest, first: int, outer: tuple[int, ...], counter: _Counter) -> Nest:
    """Lift one level: ``first`` final axes, of extents ``outer``, are already in the body."""
    body: tuple[Item, ...] = nest.body
    axes: list[_Axis] = []
    for number, loop in enumerate(nest.schedule):
        body = _unfuse(number, loop, body, axes, counter)
    apart, apart_body = list(axes), body
    merged, merged_body = _merge(axes, body, counter)

    canonical = _by_occurrence(merged, merged_body)
    written = sorted(merged, key=lambda a: min((d[0], d[1]) for d in a.digits))
    candidates = [(canonical, merged_body), (written, merged_body), (apart, apart_body)]
    for order, candidate in candidates:
        result = _number(nest.schedule, order, candidate, first)
        inner = outer + result.axes
        below = tuple(_lift(item, len(inner), inner, counter) if isinstance(item, Nest) else item for item in result.body)
        result = Nest(result.axes, result.schedule, below)
        if written_order_preserves(result, outer):
            return result
    raise AssertionError("the written order preserves itself")


def _number(schedule: tuple[Loop, ...], order: Sequence[_Axis], body: tuple[Item, ...], first: int) -> Nest:
    """The nest with its working axes numbered in the given order."""
    final = {axis.number: first + k for k, axis in enumerate(order)}
    digits: dict[tuple[int, int], Digit] = {}
    for axis in order:
        for at, place, size, stride in axis.digits:
            digits[at, place] = Digit(final[axis.number], size, stride)
    loops = []
    for number, loop in enumerate(schedule):
        own = sorted(place for at, place in digits if at == number)
        loops.append(Loop(loop.kind, loop.name, tuple(digits[number, place] for place in own)))

    def rename(expr: Expr) -> Expr:
        if isinstance(expr, Index):
            return Index(final.get(expr.axis, expr.axis))
        parts = children(expr)
        return with_children(expr, tuple(rename(p) for p in parts)) if parts else expr

    return Nest(tuple(a.extent for a in order), tuple(loops), tuple(map_item(item, rename) for item in body))


def _expressions(body: Sequence[Item]) -> list[Expr]:
    found: list[Expr] = []
    for item in body:
        if isinstance(item, Equation):
            found += [item.target, item.value]
        else:
            found += _expressions(item.body)
    return found


def _by_occurrence(axes: Sequence[_Axis], body: Sequence[Item]) -> list[_Axis]:
    """Axes by first occurrence in the target, then in the operands; those that never occur last, as written."""
    own = {axis.number: axis for axis in axes}
    seen: dict[int, _Axis] = {}

    def visit(expr: Expr) -> None:
        if isinstance(expr, Index) and expr.axis in own:
            seen.setdefault(expr.axis, own[expr.axis])
        for part in children(expr):
            visit(part)

    for expr in _expressions(body):
        visit(expr)
    return [*seen.values(), *(a for a in axes if a.number not in seen)]


# ------------------------------------------------------------------------------------------------ lift, first part: fused loops


def _unfuse(number: int, loop: Loop, body: tuple[Item, ...], axes: list[_Axis], counter: _Counter) -> tuple[Item, ...]:
    """Turn the digits that a loop prints as into axes; a loop that is no product of digits is an axis itself."""
    size, index = loop.extent, Index(loop.digits[0].axis)
    forms: dict[Expr, tuple[int, int]] = {}
    for expr in _expressions(body):
        _digit_forms(expr, index, size, forms)
    radix = _mixed_radix(sorted(forms.values()), size)
    if radix is not None:
        places = tuple(Digit(0, extent, 1) for extent in radix)
        values = [algebra.digit_value(index, places, k) for k in range(len(radix))]
        if set(forms) <= set(values) or len(radix) == 1:
            own = [_Axis(counter.fresh(), extent, [(number, k, extent, 1)]) for k, extent in enumerate(radix)]
            axes += own
            replacement: dict[Expr, Expr] = {value: Index(axis.number) for value, axis in zip(values, own, strict=True)}
            return tuple(map_item(item, lambda e: replace(e, replacement)) for item in body)
    axis = _Axis(counter.fresh(), size, [(number, 0, size, 1)])
    axes.append(axis)
    return tuple(map_item(item, lambda e: replace(e, {index: Index(axis.number)})) for item in body)


def replace(expr: Expr, table: dict[Expr, Expr]) -> Expr:
    """``expr`` with every subexpression that ``table`` names replaced, outermost first."""
    if expr in table:
        return table[expr]
    parts = children(expr)
    if not parts:
        return expr
    new = tuple(replace(part, table) for part in parts)
    return expr if all(a is b for a, b in zip(parts, new, strict=True)) else with_children(expr, new)


def _digit_forms(expr: Expr, loop: Index, size: int, forms: dict[Expr, tuple[int, int]]) -> None:
    """Collect the maximal occurrences of the loop that look like digits, each with its (stride, extent) within the loop."""
    match expr:
        case Binary(op="%", left=inner, right=Int(value=extent)) if extent > 0 and (stride := _digit_stride(inner, loop)):
            forms[expr] = (stride, extent)
        case Binary(op="//") if stride := _digit_stride(expr, loop):
            forms[expr] = (stride, size // stride if size % stride == 0 else 0)
        case Index() if expr is loop:
            forms[expr] = (1, size)
        case _:
            for part in children(expr):
                _digit_forms(part, loop, size, forms)


def _digit_stride(expr: Expr, loop: Index) -> int:
    """1 for the loop itself, S for ``loop//S``, else 0."""
    if expr is loop:
        return 1
    if isinstance(expr, Binary) and expr.op == "//" and expr.left is loop and isinstance(expr.right, Int) and expr.right.value > 1:
        return expr.right.value
    return 0


def _mixed_radix(forms: Sequence[tuple[int, int]], size: int) -> list[int] | None:
    """The extents, outermost first, of the mixed radix of ``size`` that has all these (stride, extent) digits, gaps filled."""
    radix: list[int] = []
    stride = 1
    for at, extent in forms:
        if extent == 0 or at % stride or at < stride:
            return None
        if at > stride:
            radix.append(at // stride)
        radix.append(extent)
        stride = at * extent
    if size % stride:
        return None
    if stride < size:
        radix.append(size // stride)
    return radix[::-1] or [size]


# ------------------------------------------------------------------------------------------------- lift, second part: split axes


def _merge(axes: Sequence[_Axis], body: tuple[Item, ...], counter: _Counter) -> tuple[list[_Axis], tuple[Item, ...]]:
    """Join axes that occur only as ``h*E+a``, innermost pairs first, until none is left."""
    live = list(axes)
    while True:
        pair = _mergeable(live, body)
        if pair is None:
            return live, body
        high, low = pair
        joined = _Axis(
            counter.fresh(),
            high.extent * low.extent,
            [(loop, place, size, stride * low.extent) for loop, place, size, stride in high.digits] + low.digits,
        )
        live = [joined if a is high else a for a in live if a is not low]
        body = tuple(map_item(item, lambda e, h=high, a=low, j=joined: _join(e, h, a, Index(j.number))) for item in body)  # type: ignore[misc]


def _mergeable(axes: Sequence[_Axis], body: Sequence[Item]) -> tuple[_Axis, _Axis] | None:
    own = {axis.number: axis for axis in axes}
    uses = dict.fromkeys(own, 0)
    pairs: dict[tuple[int, int], int] = {}

    def visit(expr: Expr, spliced: bool) -> None:
        if isinstance(expr, Index):
            if expr.axis in uses:
                uses[expr.axis] += 1
            return
        pair = _pair(expr, spliced)
        if pair is not None:
            pairs[pair[0], pair[1]] = pairs.get(pair[:2], 0) + (1 if own.get(pair[1]) and own[pair[1]].extent == pair[2] else 0)
        parts = children(expr)
        for k, part in enumerate(parts):
            visit(part, k == 1 and isinstance(expr, Binary) and expr.op == "+" and is_index_arithmetic(parts[0]))

    for expr in _expressions(body):
        visit(expr, False)
    for (high, low), count in pairs.items():
        if (
            high in own
            and low in own
            and high != low
            and own[high].extent > 1
            and own[low].extent > 1
            and uses[high] == uses[low] == count
        ):
            return own[high], own[low]
    return None


def _pair(expr: Expr, spliced: bool) -> tuple[int, int, int] | None:
    """(h, a, E) if ``expr`` is ``h*E+a`` or ends in those two terms. A sum that itself stands after a ``+`` would print without its
    parentheses, so it is no match."""
    if not (isinstance(expr, Binary) and expr.op == "+" and isinstance(expr.right, Index)):
        return None
    term = expr.left
    if isinstance(term, Binary) and term.op == "+" and is_index_arithmetic(term.left):
        term = term.right
    elif spliced:
        return None
    match term:
        case Binary(op="*", left=Index(axis=high), right=Int(value=radix)):
            return high, expr.right.axis, radix
    return None


def _join(expr: Expr, high: _Axis, low: _Axis, joined: Index) -> Expr:
    pair = _pair(expr, False)
    if pair == (high.number, low.number, low.extent):
        assert isinstance(expr, Binary)
        if isinstance(expr.left, Binary) and expr.left.op == "+":
            return Binary("+", _join(expr.left.left, high, low, joined), joined)
        return joined
    parts = children(expr)
    if not parts:
        return expr
    new = tuple(_join(part, high, low, joined) for part in parts)
    return expr if all(a is b for a, b in zip(parts, new, strict=True)) else with_children(expr, new)
