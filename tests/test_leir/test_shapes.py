"""Intervals of subscripts, and the shapes of temporaries that follow."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leir.ir import Binary, Expr, Index, Int, Known, Signature, Unary
from leir.parser import parse_nests
from leir.shapes import ShapeError, interval, temporary_shapes

EXTENTS = (3, 4)


def value(expr: Expr, point: tuple[int, ...]) -> int:
    match expr:
        case Int():
            return expr.value
        case Index():
            return point[expr.axis]
        case Unary():
            return -value(expr.operand, point)
        case Binary():
            x, y = value(expr.left, point), value(expr.right, point)
            return {"+": x + y, "-": x - y, "*": x * y, "//": y and x // y, "%": y and x % y}[expr.op]
    raise AssertionError(expr)


def binary(children: st.SearchStrategy[Expr]) -> Any:
    return st.builds(Binary, st.sampled_from(["+", "-", "*", "//", "%"]), children, children) | st.builds(
        Unary, st.just("-"), children
    )


expressions = st.recursive(st.builds(Int, st.integers(0, 9)) | st.builds(Index, st.integers(0, 1)), binary, max_leaves=8)


@given(expressions)
def test_an_interval_holds_every_value(expr: Expr) -> None:
    try:
        low, high = interval(expr, EXTENTS)
    except ShapeError:
        return
    values = [value(expr, point) for point in product(*map(range, EXTENTS))]
    assert low <= min(values)
    assert max(values) <= high


@pytest.mark.parametrize(
    ("subscript", "reach"),
    [
        ("a*4+c", (0, 11)),
        ("2-a", (0, 2)),
        ("(a*4+c)//4", (0, 2)),
        ("(a*4+c)%4", (0, 3)),
        ("c%7", (0, 3)),
        ("(c+3)%5", (0, 4)),
        ("-c-1", (-4, -1)),
    ],
)
def test_intervals_of_ordinary_subscripts_are_exact(subscript: str, reach: tuple[int, int]) -> None:
    nest = parse_nests(f"L^{{3}}_{{a=0}}L^{{4}}_{{c=0}}[X^{{f32,g}}_{{{subscript}}}=0;];").nests[0]
    (equation,) = nest.body
    assert interval(equation.target.subscripts[0], nest.axes) == reach  # type: ignore[union-attr]


def shapes(text: str) -> dict[str, tuple[int, ...]]:
    return temporary_shapes(Signature("t", (Known("D", "f32", (9,), "output"),)), parse_nests(text).nests)


def test_a_temporary_reaches_as_far_as_its_writes() -> None:
    text = "L^{3}_{a=0}[X^{f32,g}_{a,1}=0;L^{4}_{c=0}[X^{f32,g}_{c,a*2}=1;Y^{f32,l}=2;];];L^{9}_{a=0}[D^{f32,g}_{a}=0;];"
    assert shapes(text) == {"X": (4, 5), "Y": ()}


def test_two_ranks_are_no_shape() -> None:
    with pytest.raises(ShapeError, match="X: written with 1 subscripts and with 2"):
        shapes("[X^{f32,g}_{0}=0;X^{f32,g}_{0,0}=0;];")


def test_a_divisor_that_may_be_zero_is_no_shape() -> None:
    with pytest.raises(ShapeError, match="X: the divisor of // may be zero"):
        shapes("L^{3}_{a=0}[X^{f32,g}_{4//a}=0;];")
