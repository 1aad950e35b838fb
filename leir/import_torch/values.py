"""Tensors as the importer sees them: a shape, a dtype, and what an element is as an expression of the dimensions.

A view moves no data: it composes the map (`leir.import_torch.access_maps`), and whoever reads the value reads the tensor behind it.
Everything here is symbolic; shapes are logical, so PyTorch's strides play no part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from leir.import_torch.access_maps import compose
from leir.ir import Access, Binary, Call, Compare, Expr, Index, Int, Real, Tensor

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """``element`` is the element at ``(Index(0), ..., Index(rank-1))``: an access, or a literal for a constant tensor."""

    shape: Shape
    dtype: str
    element: Expr

    @property
    def rank(self) -> int:
        return len(self.shape)

    def at(self, subscripts: Sequence[Expr], extents: Sequence[int]) -> Expr:
        """The element at ``subscripts``, which are written in axes of the given extents."""
        return compose(self.element, subscripts, extents)

    @property
    def reads(self) -> str:
        """The name of the tensor behind a value that is one access, else the empty string."""
        return self.element.tensor.name if isinstance(self.element, Access) else ""


def whole(tensor: Tensor, shape: Shape) -> Value:
    """A tensor of the given shape, read as it is."""
    return Value(shape, tensor.dtype, Access(tensor, tuple(Index(axis) if e > 1 else Int(0) for axis, e in enumerate(shape))))


def view(value: Value, shape: Shape, subscripts: Sequence[Expr]) -> Value:
    """A value of the given shape whose element at ``(Index(0), ...)`` is that of ``value`` at ``subscripts``."""
    return Value(shape, value.dtype, value.at(subscripts, shape))


def permute(value: Value, order: Sequence[int]) -> Value:
    """Dimension ``k`` of the result is dimension ``order[k]`` of ``value``."""
    place = [0] * value.rank
    for new, old in enumerate(order):
        place[old % value.rank] = new
    return view(value, tuple(value.shape[old] for old in order), [Index(new) for new in place])


def reshape(value: Value, shape: Shape) -> Value:
    """The same elements in row-major order."""
    assert prod(shape) == prod(value.shape), (shape, value.shape)
    position: Expr = Int(0)
    for axis, extent in enumerate(shape):
        position = Binary("+", Binary("*", position, Int(extent)), Index(axis))
    subscripts: list[Expr] = []
    stride = 1
    for extent in reversed(value.shape):
        subscripts.insert(0, Binary("%", Binary("//", position, Int(stride)), Int(extent)))
        stride *= extent
    return view(value, shape, subscripts)


def expand(value: Value, shape: Shape) -> Value:
    """Broadcast to ``shape``, aligned at the last dimension: a dimension of extent 1 is read at 0."""
    lead = len(shape) - value.rank
    assert lead >= 0, (shape, value.shape)
    assert all(own in (1, shape[lead + axis]) for axis, own in enumerate(value.shape)), (shape, value.shape)
    return view(value, shape, [Index(lead + axis) if own > 1 else Int(0) for axis, own in enumerate(value.shape)])


def cast(element: Expr, source: str, target: str) -> Expr:
    """``element`` of dtype ``source`` in dtype ``target``. Literals have no dtype of their own."""
    if source == target or isinstance(element, Int | Real):
        return element
    return Compare((element, Int(0)), ("!=",)) if target == "bool" else Call(f"cast_{target}", (element,))
