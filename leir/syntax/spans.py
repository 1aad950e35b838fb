"""Where in the text each item and each subexpression stands.

The parser notes only where items start. Places inside an equation are found when somebody asks, from one fact: leaves, calls,
accesses and unary operators each show one token of their own, and these tokens come in the order of a preorder walk of the tree.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leir.ir import Binary, Compare, Equation, Expr, Item, Nest, children

Position = tuple[int, int]
"""Line and column, from 1."""

_TOKEN = re.compile(r"(?P<access>[A-Z][a-z]*\s*\^\s*\{[^}]*\})|(?P<atom>[a-z][a-z_0-9]*|(?:[0-9.]+(?:[eE][+-]?[0-9]+)?))|\S")


@dataclass(frozen=True, slots=True)
class Starts:
    """Character offset of an item, and the same for the items in it."""

    offset: int
    items: tuple[Starts, ...]


class SpanTable:
    """Positions by path. An item's path is the expression's number, then item numbers; a scalar path goes down `ir.children`."""

    def __init__(self, text: str, nests: Sequence[Nest], starts: Sequence[Starts]) -> None:
        self._text = text
        self._nests = nests
        self._starts = starts
        self._lines: list[int] = []
        self._equations: dict[tuple[int, ...], dict[tuple[int, ...], int]] = {}

    def item(self, path: Sequence[int]) -> Position:
        """Where the item at ``path`` starts: its first loop, or its target. Raises LookupError if there is no such item."""
        return self._position(self._find(path)[1].offset)

    def value(self, path: Sequence[int], scalar: Sequence[int] = ()) -> Position:
        """Where a subexpression of the right-hand side starts. Raises LookupError if there is none."""
        return self._position(self._offsets(tuple(path))[1, *scalar])

    def target(self, path: Sequence[int], scalar: Sequence[int] = ()) -> Position:
        """Where the target, or a subexpression of it, starts. Raises LookupError if there is none."""
        return self._position(self._offsets(tuple(path))[0, *scalar])

    def _find(self, path: Sequence[int]) -> tuple[Item, Starts]:
        item: Item = self._nests[path[0]]
        starts = self._starts[path[0]]
        for step in path[1:]:
            if not isinstance(item, Nest):
                raise LookupError(f"no item at {tuple(path)}")
            item, starts = item.body[step], starts.items[step]
        return item, starts

    def _offsets(self, path: tuple[int, ...]) -> dict[tuple[int, ...], int]:
        if path not in self._equations:
            equation, starts = self._find(path)
            if not isinstance(equation, Equation):
                raise LookupError(f"no equation at {path}")
            heads = _heads(self._text, starts.offset)
            found: dict[tuple[int, ...], int] = {}
            _place(equation.target, (0,), heads, found)
            _place(equation.value, (1,), heads, found)
            self._equations[path] = found
        return self._equations[path]

    def _position(self, offset: int) -> Position:
        if not self._lines:
            self._lines = [0, *(match.end() for match in re.finditer("\n", self._text))]
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1


def _place(expr: Expr, path: tuple[int, ...], heads: Iterator[int], found: dict[tuple[int, ...], int]) -> int:
    """Record where ``expr`` and everything below it starts."""
    own = None if isinstance(expr, (Binary, Compare)) else next(heads)
    below = [_place(child, (*path, k), heads, found) for k, child in enumerate(children(expr))]
    found[path] = below[0] if own is None else own
    return found[path]


def _heads(text: str, start: int) -> Iterator[int]:
    """Offsets of the tokens that stand for a node of their own, from the equation's start on."""
    operand_next = True
    for token in _TOKEN.finditer(text, start):
        if token.lastgroup:
            yield token.start()
            operand_next = False
        elif operand_next and token.group() in "-!":
            yield token.start()
        else:
            operand_next = token.group() not in ")}"
