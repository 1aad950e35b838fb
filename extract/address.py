"""Addresses as linear forms of loop digits.

In normal form a subscript is written in axes, an axis is a sum of digits, and every digit is walked by one loop. So the address of
an access is linear in the digits, also where the text has ``k//61`` and ``k%61``. A digit with its loop is called a *wheel* here:
loops are wheels turning in one another. What stays non-linear in a body (``//``, ``%``, subscripts that read memory) is
approximated, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leir.ir import Access, Binary, Expr, Index, Int, Nest, Unary
from leir.scalars import STORAGE

ITEM_BYTES: Mapping[str, int] = {dtype: 2 if dtype == "bf16" else form.itemsize for dtype, form in STORAGE.items()}
"""The bytes of an element in memory."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A digit of extent above 1: ``loop`` is the number of its loop along the path, ``axis`` and ``stride`` those of the digit."""

    extent: int
    loop: int
    axis: int
    stride: int


@dataclass(frozen=True, slots=True)
class Address:
    """Where an access goes. ``strides`` (bytes, one per wheel along the path) and ``offset`` (bytes); ``spread``: a subscript reads
    memory, so the strides only say what moves it. ``size``: the bytes of the whole tensor."""

    tensor: str
    dtype: str
    scope: str
    strides: tuple[int, ...]
    offset: int
    spread: bool
    size: int

    @property
    def item(self) -> int:
        return ITEM_BYTES[self.dtype]

    @property
    def moves(self) -> int:
        """The wheels that move it, as bits."""
        return sum(1 << k for k, stride in enumerate(self.strides) if stride)


def wheels_of(nest: Nest, first_loop: int) -> list[Wheel]:
    """The wheels of a nest's own loops, outermost first."""
    return [
        Wheel(d.extent, number, d.axis, d.stride)
        for number, loop in enumerate(nest.schedule, first_loop)
        for d in loop.digits
        if d.extent > 1
    ]


@dataclass(slots=True)
class _Linear:
    """``offset + sum(strides[k] * wheel k)``, with every value in [low, high]."""

    offset: int
    strides: dict[int, int]
    spread: bool = False


class Addresses:
    """Addresses of accesses under one path of wheels. ``shapes``: of every tensor, by name."""

    def __init__(self, wheels: Sequence[Wheel], shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.wheels = wheels
        self.shapes = shapes
        self.axes: dict[int, dict[int, int]] = {}
        for k, wheel in enumerate(wheels):
            self.axes.setdefault(wheel.axis, {})[k] = wheel.stride

    def of(self, access: Access) -> Address:
        shape = self.shapes[access.tensor.name]
        total: dict[int, int] = {}
        offset, spread = 0, False
        step = ITEM_BYTES[access.tensor.dtype]
        for subscript, size in zip(reversed(access.subscripts), reversed(shape), strict=True):
            form = self.linear(subscript)
            offset += form.offset * step
            spread = spread or form.spread
            for wheel, stride in form.strides.items():
                total[wheel] = total.get(wheel, 0) + stride * step
            step *= max(size, 1)
        strides = tuple(total.get(k, 0) for k in range(len(self.wheels)))
        return Address(access.tensor.name, access.tensor.dtype, access.tensor.scope, strides, offset, spread, step)

    def depends(self, expr: Expr) -> int:
        """The wheels that an index expression depends on, as bits."""
        return sum(1 << k for k in self.linear(expr).strides)

    def linear(self, expr: Expr) -> _Linear:
        match expr:
            case Int():
                return _Linear(expr.value, {})
            case Index():
                return _Linear(0, dict(self.axes.get(expr.axis, {})))
            case Unary():
                return self.scaled(self.linear(expr.operand), -1)
            case Binary(op="+" | "-"):
                left, right = self.linear(expr.left), self.linear(expr.right)
                return self.sum(left, self.scaled(right, -1) if expr.op == "-" else right)
            case Binary(op="*", left=Int(value=factor)):
                return self.scaled(self.linear(expr.right), factor)
            case Binary(op="*", right=Int(value=factor)):
                return self.scaled(self.linear(expr.left), factor)
            case Binary(op="//", right=Int(value=divisor)) if divisor > 0:
                return self.quotient(self.linear(expr.left), divisor)
            case Binary(op="%", right=Int(value=divisor)) if divisor > 0:
                return self.remainder(self.linear(expr.left), divisor)
            case Access():
                moved = [k for s in expr.subscripts for k in self.linear(s).strides]
                return _Linear(0, dict.fromkeys(moved, 1), spread=True)
            case Binary():
                return self.sum(self.linear(expr.left), self.linear(expr.right))
        return _Linear(0, {})

    def scaled(self, form: _Linear, factor: int) -> _Linear:
        strides = {k: s * factor for k, s in form.strides.items() if s * factor}
        return _Linear(form.offset * factor, strides, form.spread)

    def sum(self, left: _Linear, right: _Linear) -> _Linear:
        strides = dict(left.strides)
        for k, s in right.strides.items():
            strides[k] = strides.get(k, 0) + s
        return _Linear(left.offset + right.offset, {k: s for k, s in strides.items() if s}, left.spread or right.spread)

    def quotient(self, form: _Linear, divisor: int) -> _Linear:
        """Strides that the divisor divides, divided; of smaller ones, those that get past it at all count as steps of 1."""
        strides = {}
        for k, s in form.strides.items():
            if s % divisor == 0:
                strides[k] = s // divisor
            elif abs(s) * (self.wheels[k].extent - 1) >= divisor:
                strides[k] = max(1, abs(s) // divisor)
        return _Linear(form.offset // divisor, strides, form.spread)

    def remainder(self, form: _Linear, divisor: int) -> _Linear:
        """Strides that the divisor divides drop out; of the others none is longer than the divisor."""
        strides = {k: s % divisor for k, s in form.strides.items() if s % divisor}
        return _Linear(form.offset % divisor, strides, form.spread)
