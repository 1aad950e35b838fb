"""The vectorised walk: the bits of the point-by-point walk, with whole axes at a time.

Each nest is planned once. The loops of `independent_axes` run all together, as array dimensions; the others are stepped in order.
An accumulation whose target does not move under the innermost stepped loops is *folded*: its terms are computed for many points
at once, then added one after the other, in order, in the dtype. Items of a body that share loops run item by item for all
independent iterations, and step by step for the rest. With no independent loop at all this is the point-by-point order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import NDArray

from leir import scalars
from leir.elaborate import Apply, Typed
from leir.interpreter.axes import axes_of, independent_axes
from leir.interpreter.compile import Closure, Compiler
from leir.interpreter.frames import Frame, blocks
from leir.interpreter.state import PreparedEquation, PreparedNest, Store

POINTS_AT_ONCE = 1 << 18
"""Points that one frame holds at most: what keeps intermediate arrays in cache and memory bounded."""

_SHORT_ROW = 256
"""Accumulators up to which NumPy's own sequential accumulation beats one call per step."""


@dataclass(frozen=True, slots=True)
class Fold:
    """An accumulation: ``axes`` are the innermost stepped loops, ``terms`` what each point adds, operator by operator."""

    equation: PreparedEquation
    position: Closure
    axes: tuple[int, ...]
    terms: tuple[tuple[str, Closure], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """How to run one nest: step ``outer``, spread ``together`` (in blocks), step ``inner``, then the fold or the body."""

    nest: PreparedNest
    extents: tuple[int, ...]
    outer: tuple[int, ...]
    together: tuple[int, ...]
    inner: tuple[int, ...]
    fold: Fold | None

    def ranges(self, axes: Sequence[int]) -> list[range]:
        return [range(self.extents[axis]) for axis in axes]


@dataclass(frozen=True, slots=True)
class CompiledEquation:
    equation: PreparedEquation
    position: Closure
    value: Closure


def walk_vector(nests: Sequence[PreparedNest], store: Store) -> None:
    """Run ``nests`` on ``store``. Raises InterpretError where the point-by-point walk does, if perhaps for another point."""
    walk = _VectorWalk(store)
    for nest in nests:
        for buffer in store.values():
            buffer.refresh()
        walk.run(nest, Frame([], ()), ())


class _VectorWalk:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.plans: dict[PreparedNest, Plan] = {}
        self.compiled: dict[PreparedEquation, CompiledEquation] = {}

    def run(self, nest: PreparedNest, frame: Frame, outer: tuple[int, ...]) -> None:
        plan = self.plans.get(nest)
        if plan is None:
            plan = self.plans[nest] = self.plan(nest, outer)
        frame = frame.opened(len(plan.nest.extents))
        extents = [plan.extents[axis] for axis in plan.together]
        for outer_step in product(*plan.ranges(plan.outer)):
            _step(frame, plan.outer, outer_step)
            for block in blocks(extents, POINTS_AT_ONCE // prod(frame.shape)):
                part = frame.spread(plan.together, block)
                for inner_step in product(*plan.ranges(plan.inner)):
                    _step(part, plan.inner, inner_step)
                    self.body(plan, part)

    def body(self, plan: Plan, frame: Frame) -> None:
        if plan.fold:
            self.fold(plan, plan.fold, frame)
            return
        for item in plan.nest.body:
            if isinstance(item, PreparedNest):
                self.run(item, frame, plan.extents)
            else:
                self.assign(self.equation(item), frame)

    def plan(self, nest: PreparedNest, outer: tuple[int, ...]) -> Plan:
        nest = _merged(nest)
        extents = outer + nest.extents
        together = independent_axes(nest, extents)
        stepped = [axis for axis in range(nest.first, len(extents)) if axis not in together]
        fold = self.fold_of(nest, stepped)
        if fold:
            stepped = stepped[: len(stepped) - len(fold.axes)]
        before = [axis for axis in stepped if together and axis < together[0]]
        return Plan(nest, extents, tuple(before), together, tuple(stepped[len(before) :]), fold)

    def fold_of(self, nest: PreparedNest, stepped: Sequence[int]) -> Fold | None:
        only = nest.body[0] if len(nest.body) == 1 else None
        if not isinstance(only, PreparedEquation) or only.accumulates is None:
            return None
        moving = axes_of(only.target)
        count = 0
        while count < len(stepped) and stepped[len(stepped) - 1 - count] not in moving:
            count += 1
        if count == 0:
            return None
        compiler = Compiler(only, self.store)
        terms = tuple((op, compiler.value(term)) for op, term in _terms(only))
        return Fold(only, compiler.position(only.target, "writes"), tuple(stepped[len(stepped) - count :]), terms)

    def equation(self, item: PreparedEquation) -> CompiledEquation:
        found = self.compiled.get(item)
        if found is None:
            compiler = Compiler(item, self.store)
            found = CompiledEquation(item, compiler.position(item.target, "writes"), compiler.value(item.value))
            self.compiled[item] = found
        return found

    def assign(self, compiled: CompiledEquation, frame: Frame) -> None:
        """All reads, then all writes: the points of the frame write different elements, and read no other point's."""
        equation = compiled.equation
        buffer, where = self.store[equation.target.tensor.name], compiled.position(frame)
        if equation.accumulates and not buffer.complete:
            written = buffer.written[where]
            buffer.data[where] = np.where(written, buffer.data[where], equation.start)
            buffer.written[where] = True
        buffer.data[where] = compiled.value(frame)
        if not buffer.complete:
            buffer.written[where] = True

    def fold(self, plan: Plan, fold: Fold, frame: Frame) -> None:
        equation, dtype = fold.equation, fold.equation.value.dtype
        buffer, where = self.store[equation.target.tensor.name], fold.position(frame)
        total = buffer.data[where]
        if not buffer.complete:
            total = np.where(buffer.written[where], total, equation.start)
        total = np.broadcast_to(total, frame.shape)
        extents = [plan.extents[axis] for axis in fold.axes]
        for block in blocks(extents, POINTS_AT_ONCE // prod(frame.shape)):
            inside = frame.spread(fold.axes, block, outermost=True)
            rows = (-1, *frame.shape)
            terms = [(op, np.broadcast_to(term(inside), inside.shape).reshape(rows)) for op, term in fold.terms]
            total = accumulated(total, terms, dtype)
        buffer.data[where] = total
        buffer.written[where] = True


def _merged(nest: PreparedNest) -> PreparedNest:
    """Brackets around a single nest change nothing: the loops of both as one nest."""
    while len(nest.body) == 1 and isinstance(nest.body[0], PreparedNest):
        inner = nest.body[0]
        nest = PreparedNest(nest.first, nest.extents + inner.extents, inner.body)
    return nest


def _step(frame: Frame, axes: Sequence[int], values: Sequence[int]) -> None:
    for axis, value in zip(axes, values, strict=True):
        frame.values[axis] = value


def _terms(equation: PreparedEquation) -> list[tuple[str, Typed]]:
    """What an accumulation adds to its accumulator, first to last: ``X+a-b`` is ``[("+", a), ("-", b)]``."""
    assert equation.accumulates is not None
    terms: list[tuple[str, Typed]] = []
    node = equation.value
    for position in equation.accumulates[1]:
        assert isinstance(node, Apply)
        terms.append((node.op, node.args[1 - position]))
        node = node.args[position]
    return terms[::-1]


def accumulated(total: NDArray[Any], terms: Sequence[tuple[str, NDArray[Any]]], dtype: str) -> NDArray[Any]:
    """``total`` after row 0 of every term, then row 1, and so on; each step rounds in ``dtype``.

    ``total`` has the shape of one row. A sum is never regrouped; max and min may be, since no grouping can be told from another.
    """
    ops = {op for op, _ in terms}
    count = len(terms[0][1])
    if len(terms) == 1 and ops <= {"max", "min"}:
        return _extremum(total, *terms[0], dtype)
    if count > 1 and total.size <= _SHORT_ROW:
        storage = np.dtype(bfloat16) if dtype == "bf16" else total.dtype
        sequence = np.empty((1 + count * len(terms), *total.shape), storage)
        sequence[0] = total
        for position, (op, rows) in enumerate(terms, 1):
            sequence[position :: len(terms)] = -rows if op == "-" else rows  # x-y is x+(-y), to the bit
        ufunc = np.multiply if ops == {"*"} else np.add
        return np.asarray(ufunc.accumulate(sequence, axis=0, dtype=storage)[-1]).astype(total.dtype)
    for row in range(count):
        for op, rows in terms:
            total = scalars.apply(op, (total, rows[row]), dtype)
    return np.asarray(total)


def _extremum(total: NDArray[Any], op: str, rows: NDArray[Any], dtype: str) -> NDArray[Any]:
    while len(rows) > 1:
        half = len(rows) // 2
        rest = rows[2 * half :]
        rows = np.concatenate((scalars.apply(op, (rows[:half], rows[half : 2 * half]), dtype), rest))
    return np.asarray(scalars.apply(op, (total, rows[0]), dtype))
