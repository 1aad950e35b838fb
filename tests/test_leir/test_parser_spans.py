"""Places of items and of their parts in the text."""

from __future__ import annotations

import pytest

from leir.ir import Equation, Item, Nest, children
from leir.parser import parse_nests

TEXT = """L^{4}_{a=0}[
  D^{f32,g}_{a,3-a}=-(A^{f32,g}_{a}+2.5)*max(inf,a--1);
  P^{3}_{c=0} [ E^{f32,g}=1<=c!=(2); [];];
];
[F^{f32,g}=!(1<2)&E^{f32,g}>-1;];
"""


def test_places_of_items() -> None:
    spans = parse_nests(TEXT).spans
    assert spans.item((0,)) == (1, 1)
    assert spans.item((0, 0)) == (2, 3)
    assert spans.item((0, 1)) == (3, 3)
    assert spans.item((0, 1, 0)) == (3, 17)
    assert spans.item((0, 1, 1)) == (3, 38)
    assert spans.item((1,)) == (5, 1)
    assert spans.item((1, 0)) == (5, 2)


def test_places_inside_an_equation() -> None:
    spans = parse_nests(TEXT).spans
    line = TEXT.splitlines()[1]

    def column(part: str, occurrence: int = 0) -> tuple[int, int]:
        at = -1
        for _ in range(occurrence + 1):
            at = line.index(part, at + 1)
        return 2, at + 1

    assert spans.target((0, 0)) == column("D")
    assert spans.target((0, 0), (1,)) == spans.target((0, 0), (1, 0)) == column("3-a")
    assert spans.value((0, 0)) == spans.value((0, 0), (0,)) == column("-(")
    assert spans.value((0, 0), (0, 0)) == spans.value((0, 0), (0, 0, 0)) == column("A^")
    assert spans.value((0, 0), (0, 0, 0, 0)) == column("a}+")
    assert spans.value((0, 0), (0, 0, 1)) == column("2.5")
    assert spans.value((0, 0), (1,)) == column("max")
    assert spans.value((0, 0), (1, 0)) == column("inf")
    assert spans.value((0, 0), (1, 1)) == column("a--1")
    assert spans.value((0, 0), (1, 1, 1)) == column("-1")
    assert spans.value((0, 0), (1, 1, 1, 0)) == column("1)")


def test_operators_of_two_characters_are_no_unary_operators() -> None:
    spans = parse_nests(TEXT).spans
    assert spans.value((0, 1, 0), (1,)) == (3, 30)
    assert spans.value((0, 1, 0), (2,)) == (3, 34)
    assert spans.value((1, 0), (1, 1)) == (5, 29)
    assert spans.value((1, 0), (1, 1, 0)) == (5, 30)


def test_every_path_has_a_place() -> None:
    parsed = parse_nests(TEXT)
    found = 0

    def visit(item: Item, path: tuple[int, ...]) -> None:
        nonlocal found
        assert parsed.spans.item(path)
        if isinstance(item, Nest):
            for k, child in enumerate(item.body):
                visit(child, (*path, k))
            return
        assert isinstance(item, Equation)
        pending = [(item.value, tuple[int, ...]())]
        while pending:
            expr, scalar = pending.pop()
            line, column = parsed.spans.value(path, scalar)
            assert TEXT.splitlines()[line - 1][column - 1].strip()
            found += 1
            pending += [(child, (*scalar, k)) for k, child in enumerate(children(expr))]

    for k, nest in enumerate(parsed.nests):
        visit(nest, (k,))
    assert found == 25


def test_what_is_not_there_has_no_place() -> None:
    spans = parse_nests(TEXT).spans
    for path in ((7,), (0, 9), (0, 0, 0)):
        with pytest.raises(LookupError):
            spans.item(path)
    with pytest.raises(LookupError):
        spans.value((0, 1))
    with pytest.raises(LookupError):
        spans.value((0, 0), (0, 0, 0, 7))
