"""Frames: the sets of points that the vectorised walk evaluates together, as arrays that broadcast against each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Piece: TypeAlias = tuple[int, int]
"""Values ``[low, high)`` of one axis."""


def blocks(extents: Sequence[int], budget: int) -> Iterator[tuple[Piece, ...]]:
    """Cut a box into blocks of at most ``budget`` points (at least one), so that the blocks, and the points inside each, follow
    one another in lexicographic order."""
    sizes: list[int] = []
    room = max(budget, 1)
    for extent in reversed(extents):
        sizes.insert(0, min(extent, max(room, 1)))
        room = room // sizes[0] if sizes[0] == extent else 0
    starts = (range(0, extent, size) for extent, size in zip(extents, sizes, strict=True))
    for corner in product(*starts):
        yield tuple((low, min(low + size, extent)) for low, size, extent in zip(corner, sizes, extents, strict=True))


@dataclass(slots=True)
class Frame:
    """``values[k]`` is axis k: one int for all points, or an i64 array of the rank of ``shape`` that broadcasts to it.

    Stepping an axis is assigning its int.
    """

    values: list[Any]
    shape: tuple[int, ...]

    def opened(self, axes: int) -> Frame:
        """With ``axes`` more axes, each at 0."""
        return Frame([*self.values, *([0] * axes)], self.shape)

    def spread(self, axes: Sequence[int], pieces: Sequence[Piece], *, outermost: bool = False) -> Frame:
        """With ``axes`` ranging over ``pieces``, as new dimensions on the right, or on the left if ``outermost``."""
        if not axes:
            return Frame(list(self.values), self.shape)
        own, count = tuple(high - low for low, high in pieces), len(axes)
        rank = len(self.shape) + count
        before = 0 if outermost else len(self.shape)
        ones = (1,) * count
        values = [
            value if isinstance(value, int) else value.reshape((*ones, *value.shape) if outermost else (*value.shape, *ones))
            for value in self.values
        ]
        for position, (axis, (low, high)) in enumerate(zip(axes, pieces, strict=True), before):
            values[axis] = np.arange(low, high).reshape((1,) * position + (high - low,) + (1,) * (rank - position - 1))
        return Frame(values, own + self.shape if outermost else self.shape + own)

    def over(self, axes: Sequence[int]) -> Frame:
        """The same points, told apart by ``axes`` only."""
        shapes = (np.shape(self.values[axis]) for axis in axes)
        return Frame(self.values, np.broadcast_shapes(*shapes))

    def point(self, bad: NDArray[np.bool_]) -> tuple[int, ...]:
        """One point at which ``bad`` holds; ``bad`` broadcasts to the frame."""
        corner = np.unravel_index(int(np.argmax(bad)), bad.shape) if bad.ndim else ()
        return tuple(at(value, corner) for value in self.values)


def at(value: Any, corner: Sequence[Any]) -> int:
    """The element of a broadcast ``value`` at ``corner``; the first one for the corner of a 0-d array."""
    if np.ndim(value) == 0:
        return int(value)
    corner = corner or (0,) * np.ndim(value)
    return int(value[tuple(k if size > 1 else 0 for k, size in zip(corner, value.shape, strict=True))])


class Selection:
    """Some points of a frame: those where ``mask``, of the frame's rank, holds. The dimensions along which the mask varies
    become one, the outermost."""

    def __init__(self, mask: NDArray[np.bool_]) -> None:
        varying = [d for d, size in enumerate(mask.shape) if size > 1]
        self.order = (*varying, *(d for d, size in enumerate(mask.shape) if size == 1))
        self.count = len(varying)
        self.sizes = tuple(mask.shape[d] for d in varying)
        self.picked = np.nonzero(mask.reshape(self.sizes))

    def frame(self, frame: Frame) -> Frame:
        """The selected points of ``frame``."""
        values = [value if isinstance(value, int) else self._taken(value) for value in frame.values]
        rest = tuple(frame.shape[d] for d in self.order[self.count :])
        return Frame(values, (self.picked[0].size, *rest))

    def _taken(self, value: NDArray[Any]) -> NDArray[Any]:
        value = value.transpose(self.order)
        rest = value.shape[self.count :]
        if value.size == np.prod(rest, dtype=np.int64):  # does not vary where the mask does
            return value.reshape((1, *rest))
        return np.broadcast_to(value, (*self.sizes, *rest))[self.picked]

    def put(self, result: NDArray[Any], value: Any) -> None:
        """Store ``value``, computed on the selected points, where those are in ``result``."""
        result.transpose(self.order)[self.picked] = value
