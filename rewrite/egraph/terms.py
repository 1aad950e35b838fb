"""Bodies as terms: the scalar level of the e-graph, between `leir` expressions and rows of egglog.

A kernel of one equation is also a computation: a head (axes in reference order, write map, dtype, init) and a scalar term. A term
is total and means the same wherever it stands: an index leaf carries its extent, an access map the extents that it is over, a read
of what the kernel itself writes the number of its computation; reads keep the guards around them. So a union of two terms, which
must hold in every context, is one for all kernels in which they occur.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from leir.ir import (
    INT_DTYPES,
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Int,
    Nest,
    Real,
    Tensor,
    Unary,
    accesses,
    children,
    subexpressions,
    with_children,
)
from rewrite.egraph.dataflow import Dataflow
from rewrite.egraph.templates import HOLE

Term: TypeAlias = tuple[str | int, ...]
"""A constructor and its arguments; subterms by number. ("Rd", map, values...) reads the first value, the others in subscripts."""

OWN = -1  # the tensor that a computation writes, among the values of a map
NOBODY = -1  # the computation number where nothing reads what is written


@dataclass(frozen=True, slots=True)
class AccessMap:
    """Subscripts over the axes of extents ``extents``; tensors inside them are named ``%1``, ``%2``, ... ``types``: dtype and scope
    of every tensor, the one that is read first."""

    subscripts: tuple[Expr, ...]
    extents: tuple[tuple[int, int], ...]
    types: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Head:
    """What a computation is besides its term. ``own``: its number, where it reads what it writes. ``updates``: whether what it
    writes had a value before."""

    axes: tuple[int, ...]
    target: tuple[Expr, ...]
    dtype: str
    scope: str
    init: str | None
    operator: str | None
    own: int
    updates: bool

    @property
    def plain(self) -> bool:
        """Whether every element is written with a value of the term, and nothing else is there."""
        return self.operator is None and self.own == NOBODY and not self.updates


class NoTerm(Exception):
    """The equation has no term: a comparison of more than three operands, a subscript that reads what is written, or arithmetic
    of integers that wraps, for which the bounds of `scalar_rules` are wrong."""


@dataclass(slots=True)
class Terms:
    """Interned terms, maps and heads; numbers are handles in egglog."""

    flow: Dataflow
    terms: list[Term] = field(default_factory=list)
    maps: list[AccessMap] = field(default_factory=list)
    heads: list[Head] = field(default_factory=list)
    computations: dict[int, tuple[int, int, tuple[int, ...]]] = field(default_factory=dict)  # by kernel: head, term, earlier value
    _term: dict[Term, int] = field(default_factory=dict)
    _map: dict[AccessMap, int] = field(default_factory=dict)
    _head: dict[Head, int] = field(default_factory=dict)
    _own: dict[tuple[object, ...], int] = field(default_factory=dict)

    def add_kernel(self, kernel: int, leader: Sequence[int]) -> None:
        """Make the computation of a kernel, if it is one."""
        plain = self.flow.template_of(kernel)
        match plain.nest:
            case Nest(body=(Equation() as equation,)):
                pass
            case _:
                return
        try:
            if wraps(equation):
                return
            frame = self.frame(kernel, equation, leader)
            term = self.term(equation.value, frame)
        except NoTerm:
            return
        tensor = equation.target.tensor
        updates = bool(plain.in_place)
        operator = equation.accumulates
        head = Head(
            plain.nest.axes, equation.target.subscripts, tensor.dtype, tensor.scope, equation.init, operator, frame.own, updates
        )
        number = self._head.setdefault(head, len(self.heads))
        if number == len(self.heads):
            self.heads.append(head)
        earlier = tuple(self.flow.kernels[kernel].operands[at] for at, _ in plain.in_place)
        self.computations[kernel] = number, term, earlier

    def frame(self, kernel: int, equation: Equation, leader: Sequence[int]) -> Frame:
        """Where the tensors and axes of a kernel's equation stand for what."""
        plain = self.flow.template_of(kernel)
        values = {f"{HOLE}{hole}": v for hole, v in zip(plain.reads, self.flow.kernels[kernel].operands, strict=True)}
        target = equation.target.tensor.name
        values[target] = OWN
        if any(access.tensor.name == target for sub in equation.target.subscripts for access in accesses(sub)):
            raise NoTerm
        own = NOBODY
        if any(access.tensor.name == target for access in accesses(equation.value)):
            (output,) = self.flow.outputs(kernel)
            known = leader[output] if output < len(leader) else output
            key = plain.nest.axes, equation.target.subscripts, equation.init, equation.accumulates, known
            own = self._own.setdefault(key, len(self._own))
        return Frame(plain.nest.axes, values, own)

    def term(self, expr: Expr, frame: Frame) -> int:
        """The number of an expression's term. Raises NoTerm."""
        match expr:
            case Int():
                return self._intern(("C", f"i{expr.value}"))
            case Real():
                return self._intern(("C", f"r{expr.value.hex()}"))
            case Index():
                return self._intern(("Ix", expr.axis, frame.axes[expr.axis]))
            case Access():
                return self._read(expr, frame)
            case Unary():
                return self._intern(("Op1", expr.op, self.term(expr.operand, frame)))
            case Binary():
                return self._intern(("Op2", expr.op, self.term(expr.left, frame), self.term(expr.right, frame)))
            case Call(fn="if_then_else"):
                return self._intern(("Sel", *(self.term(arg, frame) for arg in expr.args)))
            case Compare() | Call() if len(children(expr)) <= 3:
                name = " ".join(expr.ops) if isinstance(expr, Compare) else expr.fn
                parts = [self.term(part, frame) for part in children(expr)]
                return self._intern((f"Op{len(parts)}", name, *parts))
        raise NoTerm

    def _read(self, access: Access, frame: Frame) -> int:
        names = [access.tensor.name]
        types = [(access.tensor.dtype, access.tensor.scope)]

        def plain(expr: Expr) -> Expr:
            parts = children(expr)
            new = with_children(expr, tuple(plain(part) for part in parts)) if parts else expr
            if isinstance(new, Access):
                names.append(new.tensor.name)
                types.append((new.tensor.dtype, new.tensor.scope))
                return Access(Tensor(f"{HOLE}{len(names) - 1}", new.tensor.dtype, new.tensor.scope), new.subscripts)
            return new

        subscripts = tuple(plain(sub) for sub in access.subscripts)
        used = sorted({e.axis for sub in subscripts for e in subexpressions(sub) if isinstance(e, Index)})
        found = AccessMap(subscripts, tuple((axis, frame.axes[axis]) for axis in used), tuple(types))
        number = self._map.setdefault(found, len(self.maps))
        if number == len(self.maps):
            self.maps.append(found)
        values = [frame.values[name] for name in names]
        if OWN in values[1:]:
            raise NoTerm
        if values[0] == OWN:
            if len(values) > 1:
                raise NoTerm
            return self._intern(("Self", frame.own, number))
        return self._intern(("Rd", number, *values))

    def _intern(self, term: Term) -> int:
        number = self._term.setdefault(term, len(self.terms))
        if number == len(self.terms):
            self.terms.append(term)
        return number

    # ------------------------------------------------------------------------------------------------------------------ and back

    def read_back(self, map_number: int, values: Sequence[int], target: str) -> Access:
        """The access of a map; value v is called ``names(v)``, what is written ``target``."""
        found = self.maps[map_number]
        names = [value_name(v) if v != OWN else target for v in values]

        def named(expr: Expr) -> Expr:
            parts = children(expr)
            new = with_children(expr, tuple(named(part) for part in parts)) if parts else expr
            if isinstance(new, Access):
                name = names[int(new.tensor.name.removeprefix(HOLE))]
                return Access(Tensor(name, new.tensor.dtype, new.tensor.scope), new.subscripts)
            return new

        dtype, scope = found.types[0]
        return Access(Tensor(names[0], dtype, scope), tuple(named(sub) for sub in found.subscripts))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Frame:
    """The axes of a computation, what its tensors stand for, and its number where it reads what it writes."""

    axes: tuple[int, ...]
    values: Mapping[str, int]
    own: int

    def called(self, names: Mapping[str, str]) -> Frame:
        """The frame for an expression that calls the tensors otherwise: by their names there, what they are called here."""
        return Frame(self.axes, {name: self.values[here] for name, here in names.items() if here in self.values}, self.own)


INT_CASTS = tuple(f"cast_{dtype}" for dtype in INT_DTYPES)


def wraps(equation: Equation) -> bool:
    """Whether integers that are no loop indices are computed with, outside subscripts."""

    def visit(expr: Expr) -> bool:
        match expr:
            case Access():
                return expr.tensor.dtype in INT_DTYPES
            case Call() if expr.fn in INT_CASTS:
                return True
        return any(map(visit, children(expr)))

    return equation.target.tensor.dtype in INT_DTYPES or visit(equation.value)


def value_name(value: int) -> str:
    """What a value is called in an expression that is read back."""
    return f"#{value}"


def number(text: str) -> float:
    """The value of a constant's text."""
    return float(int(text[1:])) if text[0] == "i" else float.fromhex(text[1:])


def constant(text: str) -> Expr:
    """The literal that a constant's text stands for."""
    return Int(int(text[1:])) if text[0] == "i" else Real(float.fromhex(text[1:]))
