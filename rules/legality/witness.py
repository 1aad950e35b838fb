"""From two points of the logical axes to the words of the text: which iteration touches what that which other one writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from leir.digits import loop_point
from leir.ir import Access, Binary, Expr, Index, Int, Nest, Unary
from leir.polyhedral import Touch
from rules.legality.dependence import Clash, Point
from rules.strategy import Instance, Witness


def witness(expression: Nest, clash: Clash) -> Witness:
    """A clash inside one expression, in the order in which the expression runs the two; paths begin at the expression."""
    s, t = clash.s.path[1:], clash.t.path[1:]
    if _time(expression, s, clash.x) > _time(expression, t, clash.y):
        clash, s, t = Clash(clash.t, clash.b, clash.y, clash.s, clash.a, clash.x), t, s
    first, second = loop_values(expression, s, clash.x), loop_values(expression, t, clash.y)
    return witness_of(clash, Instance(s, first), Instance(t, second))


def witness_between(first: Nest, second: Nest, clash: Clash) -> Witness:
    """A clash of two consecutive expressions; paths begin with 0 for the first and 1 for the second."""
    x, y = loop_values(first, clash.s.path[1:], clash.x), loop_values(second, clash.t.path[1:], clash.y)
    return witness_of(clash, Instance((0, *clash.s.path[1:]), x), Instance((1, *clash.t.path[1:]), y))


def witness_of(clash: Clash, first: Instance, second: Instance) -> Witness:
    """A clash of two instances that are known by their place in the text."""
    a, b = clash.a.access, clash.b.access
    return Witness(a.tensor.name, _element(a, clash.x, b, clash.y), first, second, _kind(clash.a, clash.b))


def sentence(found: Witness, exact: bool) -> str:
    """As in "iteration a=1 reads E[3], which iteration a=0 writes"."""
    second, first = {
        "flow": ("reads", "writes"),
        "anti": ("writes", "reads"),
        "output": ("writes", "writes"),
        "accumulation": ("accumulates into", "accumulates into"),
    }[found.kind]
    element = f"{found.tensor}[{','.join(map(str, found.element))}]" if found.element else found.tensor
    text = f"{_iteration(found.second)} {second} {element}, which {_iteration(found.first)} {first}"
    return text if exact else f"{text}, for all that the text says (a subscript or a guard reads data)"


def loop_values(expression: Nest, path: Sequence[int], point: Point) -> tuple[tuple[str, int], ...]:
    """The value of every loop around the item at ``path``, by the name that the text shows."""
    return tuple((loop.name, loop_point(loop, point)) for nest in _nests(expression, path) for loop in nest.schedule)


def _nests(expression: Nest, path: Sequence[int]) -> list[Nest]:
    nests = [expression]
    for number in path[:-1]:
        inner = nests[-1].body[number]
        assert isinstance(inner, Nest)
        nests.append(inner)
    return nests


def _time(expression: Nest, path: Sequence[int], point: Point) -> tuple[int, ...]:
    time: list[int] = []
    for nest, number in zip(_nests(expression, path), path, strict=True):
        time += [*(loop_point(loop, point) for loop in nest.schedule), number]
    return tuple(time)


def _iteration(instance: Instance) -> str:
    return f"iteration {','.join(f'{name}={value}' for name, value in instance.point)}" if instance.point else "the equation"


def _kind(a: Touch, b: Touch) -> Literal["flow", "anti", "output", "accumulation"]:
    match a.role, b.role:
        case "read", _:
            return "anti"
        case _, "read":
            return "flow"
        case "accumulate", "accumulate":
            return "accumulation"
        case _:
            return "output"


def _element(a: Access, x: Point, b: Access, y: Point) -> tuple[int, ...]:
    """The element that both touch; a dimension that is subscripted through data on both sides is shown as 0."""
    element = []
    for left, right in zip(a.subscripts, b.subscripts, strict=True):
        value = _value(left, x)
        if value is None:
            value = _value(right, y)
        element.append(value or 0)
    return tuple(element)


def _value(expr: Expr, point: Point) -> int | None:
    match expr:
        case Int():
            return expr.value
        case Index():
            return point[expr.axis]
        case Unary(op="-"):
            inner = _value(expr.operand, point)
            return None if inner is None else -inner
        case Binary(op="+" | "-" | "*" | "//" | "%"):
            left, right = _value(expr.left, point), _value(expr.right, point)
            if left is None or right is None:
                return None
            match expr.op:
                case "+":
                    return left + right
                case "-":
                    return left - right
                case "*":
                    return left * right
            if right == 0:
                return None
            return left // right if expr.op == "//" else left % right
    return None
