"""What both walks of the interpreter stand on: typed equations, tensors with a written flag per element, and the error.

A `Prepared` program is the flat nests once more, with every right-hand side typed (`leir.elaborate`), every access checked
against its tensor's dtype and rank, and a label for messages. It holds no evaluation: each walk brings its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leir.elaborate import Apply, Const, IndexValue, Load, Typed, TypingError, elaborate, subscript_is_integer
from leir.ir import (
    FLOAT_DTYPES,
    Access,
    AccumulateOp,
    Digit,
    Equation,
    Expr,
    Nest,
    accesses,
    accumulation,
    children,
    equations,
    is_index_arithmetic,
)
from leir.scalars import STORAGE, identity
from leir.shapes import ShapeError, interval

Mode: TypeAlias = Literal["native", "f64"]


class InterpretError(ValueError):
    """The program or its inputs have no meaning: a wrong input, an access out of bounds, a read of what nobody wrote.

    The message names the equation and the values of the loop indices.
    """


@dataclass(slots=True)
class Buffer:
    """A tensor's storage, row-major and flat.

    ``given``: an input, never written here. ``complete`` promises that every element is written; it may lag behind.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: NDArray[Any]
    written: NDArray[np.bool_]
    given: bool
    complete: bool

    def refresh(self) -> None:
        """Bring ``complete`` up to date."""
        self.complete = self.complete or bool(self.written.all())


Store: TypeAlias = Mapping[str, Buffer]


@dataclass(frozen=True, slots=True, eq=False)
class PreparedEquation:
    """``names`` and ``extents`` are those of the axes on the path. ``value`` computes in the mode's dtypes; ``reads`` are all its
    accesses, the accumulator and those inside subscripts included. An accumulation has its operator and the path of the
    accumulator in ``value``; ``start`` is where it begins an element that nobody wrote."""

    label: str
    names: tuple[str, ...]
    extents: tuple[int, ...]
    target: Access
    value: Typed
    reads: tuple[Access, ...]
    accumulates: tuple[AccumulateOp, tuple[int, ...]] | None
    start: Any

    def failure(self, message: str, point: Sequence[int]) -> InterpretError:
        where = ", ".join(f"{name}={value}" for name, value in zip(self.names, point, strict=False))
        return InterpretError(f"{self.label}: {message}" + (f", at {where}" if where else ""))


@dataclass(frozen=True, slots=True, eq=False)
class PreparedNest:
    """``first`` is the number of the nest's outermost axis; ``extents`` are those of its own axes."""

    first: int
    extents: tuple[int, ...]
    body: tuple[PreparedItem, ...]


PreparedItem: TypeAlias = PreparedEquation | PreparedNest


def prepare(nests: Sequence[Nest], store: Store, mode: Mode) -> tuple[PreparedNest, ...]:
    """Type and check flat nests. Raises InterpretError on ill-typed equations and accesses that fit no tensor."""
    return tuple(_Preparation(store, mode, nest, k).nest(nest, (), ()) for k, nest in enumerate(nests, 1))


class _Preparation:
    def __init__(self, store: Store, mode: Mode, nest: Nest, number: int) -> None:
        self.store, self.mode = store, mode
        count = sum(1 for _ in equations(nest))
        self.labels: Iterator[str] = iter(
            [f"expression {number}"] if count == 1 else [f"expression {number}, equation {k}" for k in range(1, count + 1)]
        )

    def nest(self, nest: Nest, names: tuple[str, ...], extents: tuple[int, ...]) -> PreparedNest:
        first = len(extents)
        flat = tuple((Digit(first + k, extent, 1),) for k, extent in enumerate(nest.axes))
        if tuple(loop.digits for loop in nest.schedule) != flat:
            raise ValueError("the interpreter takes flat nests: one whole axis per loop, in axis order")
        names += tuple(loop.name for loop in nest.schedule)
        extents += nest.axes
        body = tuple(
            self.nest(item, names, extents) if isinstance(item, Nest) else self.equation(item, names, extents) for item in nest.body
        )
        return PreparedNest(first, nest.axes, body)

    def equation(self, equation: Equation, names: tuple[str, ...], extents: tuple[int, ...]) -> PreparedEquation:
        label, target = next(self.labels), equation.target
        reads = tuple(accesses(equation.value))
        for access in (*accesses(target), *reads):
            self.check(access, label)
        if self.store[target.tensor.name].given:
            raise InterpretError(f"{label}: writes {target.tensor.name}, which is an input")
        for subscript in target.subscripts:
            if next(accesses(subscript), None) is not None:
                raise InterpretError(f"{label}: the target {target.tensor.name} has an access in a subscript")
        for part in (*target.subscripts, equation.value):
            if not _exact_in_i64(part, extents):
                raise InterpretError(f"{label}: an index expression leaves i64")
        try:
            value = elaborate(equation)
        except TypingError as problem:
            raise InterpretError(f"{label}: {problem}") from problem
        found = accumulation(equation)
        dtype = widen_dtype(target.tensor.dtype, self.mode)
        start = identity(found[0], dtype) if found else None
        if self.mode == "f64":
            value = widen(value)
        return PreparedEquation(label, names, extents, target, value, reads, found, start)

    def check(self, access: Access, label: str) -> None:
        name = access.tensor.name
        buffer = self.store.get(name)
        if buffer is None:
            raise InterpretError(f"{label}: reads {name}, which nothing writes")
        if access.tensor.dtype != buffer.dtype:
            raise InterpretError(f"{label}: {name} is {buffer.dtype}, and used as {access.tensor.dtype}")
        if len(access.subscripts) != len(buffer.shape):
            raise InterpretError(f"{label}: {name} has {len(buffer.shape)} dimensions, and {len(access.subscripts)} subscripts")
        for subscript in access.subscripts:
            if not subscript_is_integer(subscript):
                raise InterpretError(f"{label}: a subscript of {name} is no integer expression")


@lru_cache(maxsize=1 << 14)
def _exact_in_i64(expr: Expr, extents: tuple[int, ...]) -> bool:
    """Whether index arithmetic in ``expr`` stays within i64 at every step, so that NumPy computes it exactly."""
    if not all(_exact_in_i64(child, extents) for child in children(expr)):
        return False
    if not is_index_arithmetic(expr):
        return True
    try:
        low, high = interval(expr, extents)
    except ShapeError:  # a divisor that may be zero: reported where it is evaluated
        return True
    return low >= -(1 << 63) and high < 1 << 63


def widen_dtype(dtype: str, mode: Mode) -> str:
    """The dtype that ``dtype`` is computed in."""
    return "f64" if mode == "f64" and dtype in FLOAT_DTYPES else dtype


def widen(value: Typed) -> Typed:
    """``value`` with every float dtype replaced by f64: the whole difference between the two modes."""
    dtype = widen_dtype(value.dtype, "f64")
    match value:
        case Const():
            return Const(value.value, dtype)
        case IndexValue():
            return IndexValue(value.expr, dtype)
        case Load():
            return Load(value.access, dtype)
        case Apply():
            return Apply(value.op, tuple(widen(arg) for arg in value.args), dtype)


def storage(dtype: str, mode: Mode) -> np.dtype[Any]:
    """The NumPy dtype of a tensor's elements."""
    return STORAGE[widen_dtype(dtype, mode)]


def in_bounds(access: Access, shape: tuple[int, ...], extents: Sequence[int]) -> bool:
    """Whether interval arithmetic alone shows that ``access`` stays inside ``shape`` over the whole box of ``extents``."""
    try:
        reach = [interval(s, extents) for s in access.subscripts]
    except ShapeError:
        return False
    return all(low >= 0 and high < size for (low, high), size in zip(reach, shape, strict=True))
