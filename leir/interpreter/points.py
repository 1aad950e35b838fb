"""The point-by-point walk: the definition of what a program means, written as plainly as it can be.

Loops run in nest order, items in order, one element at a time. An accumulation into an element that nobody wrote first stores its
identity there. Every read is checked to be in bounds and of an element that was written. Only ``if_then_else`` is lazy.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TypeAlias

from leir import scalars
from leir.elaborate import Apply, Const, IndexValue, Load, Typed
from leir.interpreter.state import PreparedEquation, PreparedNest, Store
from leir.ir import Access, Binary, Expr, Index, Int, Unary

Point: TypeAlias = tuple[int, ...]


def walk_points(nests: Sequence[PreparedNest], store: Store) -> None:
    """Run ``nests`` on ``store``. Raises InterpretError at the first access without a meaning."""
    for nest in nests:
        _run(nest, (), store)


def _run(nest: PreparedNest, outer: Point, store: Store) -> None:
    for own in product(*(range(extent) for extent in nest.extents)):
        point = outer + own
        for item in nest.body:
            if isinstance(item, PreparedNest):
                _run(item, point, store)
            else:
                _Instance(item, point, store).run()


class _Instance:
    """One equation at one point."""

    def __init__(self, equation: PreparedEquation, point: Point, store: Store) -> None:
        self.equation, self.point, self.store = equation, point, store

    def run(self) -> None:
        target = self.store[self.equation.target.tensor.name]
        element = self.element(self.equation.target, "writes")
        if self.equation.accumulates and not target.written[element]:
            target.data[element] = self.equation.start
            target.written[element] = True
        target.data[element] = self.value(self.equation.value)
        target.written[element] = True

    def value(self, node: Typed) -> scalars.Value:
        match node:
            case Const():
                return scalars.constant(node.value, node.dtype)
            case IndexValue():
                return scalars.cast(scalars.constant(self.index(node.expr), "i64"), "i64", node.dtype)
            case Load():
                return self.load(node.access)
            case Apply(op="if_then_else"):
                guard, then, other = node.args
                return self.value(then if self.value(guard) else other)
            case Apply(op="cast"):
                return scalars.cast(self.value(node.args[0]), node.args[0].dtype, node.dtype)
            case Apply():
                args = tuple(self.value(arg) for arg in node.args)
                try:
                    return scalars.apply(node.op, args, node.args[0].dtype)
                except scalars.UndefinedOperation as problem:
                    raise self.equation.failure(str(problem), self.point) from None

    def index(self, expr: Expr) -> int:
        """A subscript or an index value, exactly."""
        match expr:
            case Int():
                return expr.value
            case Index():
                return self.point[expr.axis]
            case Access():
                return int(self.load(expr))
            case Unary():
                return -self.index(expr.operand)
            case Binary():
                left, right = self.index(expr.left), self.index(expr.right)
                if expr.op in ("//", "%") and right == 0:
                    raise self.equation.failure(f"{expr.op} by zero", self.point)
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
        raise AssertionError(expr)

    def load(self, access: Access) -> scalars.Value:
        buffer, element = self.store[access.tensor.name], self.element(access, "reads")
        if not buffer.written[element]:
            where = ",".join(str(self.index(s)) for s in access.subscripts)
            raise self.equation.failure(f"reads {buffer.name}[{where}] before it is written", self.point)
        return buffer.data[element]

    def element(self, access: Access, verb: str) -> int:
        """The position of an element in its tensor's row-major storage."""
        buffer, position = self.store[access.tensor.name], 0
        subscripts = [self.index(s) for s in access.subscripts]
        for subscript, size in zip(subscripts, buffer.shape, strict=True):
            if not 0 <= subscript < size:
                where, shape = ",".join(map(str, subscripts)), ",".join(map(str, buffer.shape))
                raise self.equation.failure(f"{verb} {buffer.name}[{where}], outside its shape [{shape}]", self.point)
            position = position * size + subscript
        return position
