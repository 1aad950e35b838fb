"""What every part of the checker stands on: the equations with their loops, and the tensors with their accesses.

Everything is on the flat form, so axis ``k`` is the k-th loop along the path, and a point is in loop names and values of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from leir.diagnostics import Diagnostic, Place, Witness, diagnose
from leir.ir import Access, Binary, Digit, Equation, Expr, Index, Int, Item, Known, Loop, Nest, Signature, Unary, accesses
from leir.polyhedral import Statement, Touch, statements
from leir.printer import print_expr
from leir.shapes import Interval, ShapeError, interval
from leir.syntax.spans import Position

ITEM_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "i32": 4, "i64": 8, "bool": 1}


@dataclass(frozen=True, slots=True, eq=False)
class LoopNode:
    """One loop of the text: ``nest`` is the path of its nest, ``axis`` its number along the path."""

    loop: Loop
    nest: tuple[int, ...]
    axis: int


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """An equation in its place; ``loops[k]`` is the loop of axis ``k``."""

    statement: Statement
    loops: tuple[LoopNode, ...]

    @property
    def path(self) -> tuple[int, ...]:
        return self.statement.path

    @property
    def equation(self) -> Equation:
        return self.statement.equation

    @property
    def extents(self) -> tuple[int, ...]:
        return self.statement.extents

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(node.loop.name for node in self.loops)

    @property
    def touches(self) -> tuple[Touch, ...]:
        return self.statement.touches

    @property
    def written(self) -> Touch:
        """The target's touch."""
        return self.statement.touches[-1]


@dataclass(slots=True, eq=False)
class TensorUse:
    """A tensor of the text. ``shape`` is None where it cannot be told; ``sound``: the shape is known, every access has its rank,
    and no target is indirect, so that questions about elements make sense."""

    name: str
    known: Known | None
    shape: tuple[int, ...] | None = None
    sound: bool = True
    writes: list[Site] = field(default_factory=list)
    reads: list[tuple[Site, Touch]] = field(default_factory=list)

    @property
    def accesses(self) -> Iterator[tuple[Site, Touch]]:
        """Every access, targets included: writes first."""
        yield from ((site, site.written) for site in self.writes)
        yield from self.reads


class Positions(Protocol):
    """Where the parts of the text stand, as (line, column) from 1; `leir.syntax.spans.SpanTable` is one."""

    def item(self, path: Sequence[int]) -> Position:
        """The start of an item."""
        ...

    def value(self, path: Sequence[int], scalar: Sequence[int] = ()) -> Position:
        """The start of a subexpression of an equation's value."""
        ...


class Facts:
    """The program under check, and the diagnostics found so far."""

    def __init__(self, signature: Signature, nests: Sequence[Nest], target: str, spans: Positions | None) -> None:
        self.signature = signature
        self.nests = tuple(nests)
        self.target = target
        self.found: list[Diagnostic] = []
        self._spans = spans
        self.nodes = [node for k, nest in enumerate(nests) for node in _loop_nodes(nest, (k,), 0)]
        loops: dict[tuple[int, ...], tuple[LoopNode, ...]] = {}
        for k, nest in enumerate(nests):
            _loops_of(nest, (k,), (), loops)
        self.sites = [Site(s, loops[s.path]) for s in statements(nests)]
        self.tensors = self._uses()
        self.no_value: set[tuple[int, ...]] = set()  # equations that compute nothing, whatever they read
        self.value_ranges: dict[str, Interval | None] = {}  # of integer tensors, filled as they are asked for

    # ---------------------------------------------------------------------------------------------------------------- tensors

    def _uses(self) -> dict[str, TensorUse]:
        known = {tensor.name: tensor for tensor in self.signature.tensors}
        uses = {name: TensorUse(name, tensor, tensor.shape) for name, tensor in known.items()}
        for site in self.sites:
            for touch in site.touches:
                name = touch.access.tensor.name
                use = uses.setdefault(name, TensorUse(name, None))
                if touch.scalar is None:
                    use.writes.append(site)
                else:
                    use.reads.append((site, touch))
        for use in uses.values():
            if use.known is None:
                use.shape = _written_shape(use.writes)
            rank = None if use.shape is None else len(use.shape)
            use.sound = (
                rank is not None
                and all(len(touch.access.subscripts) == rank for _, touch in use.accesses)
                and not any(is_indirect(site.equation.target) for site in use.writes)
            )
        return uses

    # ---------------------------------------------------------------------------------------------------------------- reports

    def place(self, path: tuple[int, ...], scalar: tuple[int, ...] | None = None) -> Place:
        """The place of an item, or of a subexpression of an equation's value."""
        line, column = None, None
        if self._spans is not None and path:
            line, column = self._spans.item(path) if scalar is None else self._spans.value(path, scalar)
        return Place(path, scalar, line, column)

    def report(
        self,
        code: str,
        message: str,
        path: tuple[int, ...] = (),
        scalar: tuple[int, ...] | None = None,
        *,
        help: str | None = None,
        witness: Witness | None = None,
    ) -> None:
        """Add a diagnostic."""
        self.found.append(diagnose(code, self.place(path, scalar), message, help=help, witness=witness))


def is_indirect(target: Access) -> bool:
    """Whether a subscript reads a tensor."""
    return any(True for s in target.subscripts for _ in accesses(s))


def _loop_nodes(item: Item, path: tuple[int, ...], depth: int) -> Iterator[LoopNode]:
    if isinstance(item, Nest):
        for k, loop in enumerate(item.schedule):
            yield LoopNode(loop, path, depth + k)
        for k, child in enumerate(item.body):
            yield from _loop_nodes(child, (*path, k), depth + len(item.schedule))


def _loops_of(
    item: Item, path: tuple[int, ...], outer: tuple[LoopNode, ...], found: dict[tuple[int, ...], tuple[LoopNode, ...]]
) -> None:
    if isinstance(item, Equation):
        found[path] = outer
        return
    if [loop.digits for loop in item.schedule] != [(Digit(len(outer) + k, n, 1),) for k, n in enumerate(item.axes)]:
        raise ValueError("the checker takes flat nests: one whole axis per loop, in axis order")
    inner = outer + tuple(LoopNode(loop, path, len(outer) + k) for k, loop in enumerate(item.schedule))
    for k, child in enumerate(item.body):
        _loops_of(child, (*path, k), inner, found)


def _written_shape(writes: Sequence[Site]) -> tuple[int, ...] | None:
    """One more than the greatest value of each written subscript, or None where there is none or a subscript has no interval."""
    shape: tuple[int, ...] | None = None
    for site in writes:
        subscripts = site.equation.target.subscripts
        try:
            reach = tuple(max(interval(s, site.extents)[1] + 1, 0) for s in subscripts)
        except ShapeError:
            return None
        if shape is not None and len(shape) != len(reach):
            return shape
        shape = reach if shape is None else tuple(map(max, shape, reach))
    return shape


# -------------------------------------------------------------------------------------------------------------------- messages


def at_point(names: Sequence[str], values: Sequence[int], prime: str = "") -> Witness:
    """A point of loops as a witness."""
    return tuple((name + prime, value) for name, value in zip(names, values, strict=False))


def describe(witness: Witness) -> str:
    """``at a=3, c=0: `` or nothing."""
    return f"at {', '.join(f'{name}={value}' for name, value in witness)}: " if witness else ""


def element(name: str, subscripts: Sequence[object]) -> str:
    """``A[4,0]``; a 0-d tensor is its name."""
    return f"{name}[{','.join(map(str, subscripts))}]" if subscripts else name


def shown(expr: Expr, names: Sequence[str]) -> str:
    """An expression as the text has it; an access without superscripts, ``A[a+1,c]``."""
    if not isinstance(expr, Access):
        return print_expr(expr, names)
    return element(expr.tensor.name, [shown(s, names) for s in expr.subscripts])


_FLOOR: dict[str, Callable[[int, int], int]] = {
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
    "//": int.__floordiv__,
    "%": int.__mod__,
}


def evaluate(expr: Expr, point: Sequence[int]) -> int:
    """The value of index arithmetic at a point. Raises ZeroDivisionError."""
    match expr:
        case Int():
            return expr.value
        case Index():
            return point[expr.axis]
        case Unary():
            return -evaluate(expr.operand, point)
        case Binary():
            return _FLOOR[expr.op](evaluate(expr.left, point), evaluate(expr.right, point))
    raise ValueError(f"no index arithmetic: {expr}")
