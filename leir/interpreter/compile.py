"""From typed expressions to closures over a frame, for the vectorised walk.

A closure takes a `Frame` and returns a value that broadcasts to the frame's shape: of its rank, or 0-d where all points agree.
Closures are built once per equation, and share nothing with the point-by-point walk but `leir.scalars`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, TypeAlias

import numpy as np

from leir import scalars
from leir.elaborate import Apply, Const, IndexValue, Load, Typed
from leir.interpreter.axes import axes_of
from leir.interpreter.frames import Frame, Selection, at
from leir.interpreter.state import PreparedEquation, Store, in_bounds
from leir.ir import Access, Binary, Expr, Index, Int, Unary

Closure: TypeAlias = Callable[[Frame], Any]

_INDEX_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
}


class Compiler:
    """Closures for the parts of one equation."""

    def __init__(self, equation: PreparedEquation, store: Store) -> None:
        self.equation, self.store = equation, store

    def value(self, node: Typed) -> Closure:
        """The value of ``node``."""
        match node:
            case Const():
                constant = scalars.constant(node.value, node.dtype)
                return lambda frame: constant
            case IndexValue():
                return self.index_value(self.index(node.expr), node.dtype)
            case Load():
                return self.load(node.access)
            case Apply(op="if_then_else"):
                return self.selection(node)
            case Apply(op="cast"):
                return self.cast(self.value(node.args[0]), node.args[0].dtype, node.dtype)
            case Apply():
                return self.operation(node)

    def index_value(self, index: Closure, dtype: str) -> Closure:
        return lambda frame: scalars.cast(np.asarray(index(frame), np.int64), "i64", dtype)

    def cast(self, value: Closure, source: str, dtype: str) -> Closure:
        return lambda frame: scalars.cast(value(frame), source, dtype)

    def operation(self, node: Apply) -> Closure:
        parts, op, dtype = tuple(self.value(arg) for arg in node.args), node.op, node.args[0].dtype

        def run(frame: Frame) -> Any:
            try:
                return scalars.apply(op, tuple(part(frame) for part in parts), dtype)
            except scalars.UndefinedOperation as problem:
                raise self.equation.failure(str(problem), frame.point(problem.where)) from None

        return run

    def selection(self, node: Apply) -> Closure:
        """Each branch runs on the points that its guard selects, and on no others."""
        guard, then, other = (self.value(arg) for arg in node.args)
        axes, dtype = sorted(set(_axes(node))), scalars.STORAGE[node.dtype]

        def run(frame: Frame) -> Any:
            mask = np.asarray(guard(frame))
            if mask.all():
                return then(frame)
            if not mask.any():
                return other(frame)
            frame = frame.over(axes)
            result = np.empty(frame.shape, dtype)
            for part, branch in ((mask, then), (~mask, other)):
                chosen = Selection(part)
                chosen.put(result, branch(chosen.frame(frame)))
            return result

        return run

    def load(self, access: Access) -> Closure:
        """The elements that ``access`` reads, all of them written."""
        buffer, position = self.store[access.tensor.name], self.position(access, "reads")

        def run(frame: Frame) -> Any:
            where = position(frame)
            if not buffer.complete:
                written = np.asarray(buffer.written[where])
                if not written.all():
                    point = frame.point(~written)
                    element = np.unravel_index(at(where, _corner(~written)), buffer.shape) if buffer.shape else ()
                    text = ",".join(str(int(k)) for k in element)
                    raise self.equation.failure(f"reads {buffer.name}[{text}] before it is written", point)
            return buffer.data.take(where)

        return run

    def position(self, access: Access, verb: str) -> Closure:
        """Where ``access`` lies in its tensor's row-major storage, in bounds."""
        buffer = self.store[access.tensor.name]
        subscripts = tuple(self.index(s) for s in access.subscripts)
        shape = buffer.shape
        strides = tuple(prod(shape[d + 1 :]) for d in range(len(shape)))
        proved = in_bounds(access, shape, self.equation.extents)

        def run(frame: Frame) -> Any:
            values = [subscript(frame) for subscript in subscripts]
            if not proved:
                for value, size in zip(values, shape, strict=True):
                    bad = np.asarray((value < 0) | (value >= size))
                    if bad.any():
                        element = ",".join(str(at(v, _corner(bad))) for v in values)
                        extent = ",".join(map(str, shape))
                        message = f"{verb} {buffer.name}[{element}], outside its shape [{extent}]"
                        raise self.equation.failure(message, frame.point(bad))
            total: Any = 0
            for value, stride in zip(values, strides, strict=True):
                total = total + value * stride
            return total

        return run

    def index(self, expr: Expr) -> Closure:
        """A subscript or an index value: an int, or an i64 array."""
        match expr:
            case Int():
                constant = expr.value
                return lambda frame: constant
            case Index():
                axis = expr.axis
                return lambda frame: frame.values[axis]
            case Access():
                return self.gathered(self.load(expr))
            case Unary():
                operand = self.index(expr.operand)
                return lambda frame: -operand(frame)
            case Binary():
                return self.index_operation(expr)
        raise AssertionError(expr)

    def gathered(self, load: Closure) -> Closure:
        def run(frame: Frame) -> Any:
            value = load(frame)
            return int(value) if np.ndim(value) == 0 else value.astype(np.int64)

        return run

    def index_operation(self, expr: Binary) -> Closure:
        left, right, operation = self.index(expr.left), self.index(expr.right), _INDEX_OPERATIONS[expr.op]
        if expr.op not in ("//", "%"):
            return lambda frame: operation(left(frame), right(frame))

        def run(frame: Frame) -> Any:
            x, y = left(frame), right(frame)
            zero = np.asarray(y == 0)
            if zero.any():
                raise self.equation.failure(f"{expr.op} by zero", frame.point(zero))
            return operation(x, y)

        return run


def _axes(node: Typed) -> Iterator[int]:
    match node:
        case IndexValue():
            yield from axes_of(node.expr)
        case Load():
            yield from axes_of(node.access)
        case Apply():
            for arg in node.args:
                yield from _axes(arg)
        case _:
            return


def _corner(bad: Any) -> tuple[Any, ...]:
    return np.unravel_index(int(np.argmax(bad)), bad.shape) if bad.ndim else ()
