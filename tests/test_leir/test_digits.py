"""The laws of the digit algebra (leir.md, section 4)."""

from __future__ import annotations

from itertools import pairwise, permutations, product
from math import prod

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from leir.digits import (
    axis_values,
    digit_value,
    digits_of,
    divisors,
    extent,
    fuse,
    is_flat,
    loop_point,
    partitions,
    split,
    split_points,
    whole,
)
from leir.ir import Binary, Digit, Expr, Index, Int, Loop, Nest

radices = st.lists(st.sampled_from([1, 2, 2, 3, 4, 5, 6]), min_size=1, max_size=4)


def mixed_radix(axis: int, extents: list[int]) -> tuple[Digit, ...]:
    """The digits of an axis with these extents, outermost first."""
    return tuple(Digit(axis, size, prod(extents[k + 1 :])) for k, size in enumerate(extents))


@st.composite
def digit_lists(draw: st.DrawFn) -> tuple[Digit, ...]:
    """A loop: some digits of one to three axes in any order."""
    digits = [d for axis in range(draw(st.integers(1, 3))) for d in mixed_radix(axis, draw(radices))]
    shuffled = draw(st.permutations(digits))
    return tuple(shuffled[: draw(st.integers(1, min(4, len(shuffled))))])


@st.composite
def nests(draw: st.DrawFn, least: int = 1) -> Nest:
    """A nest without a body: every axis cut into digits, the digits dealt to loops in any order. Up to 1,000 points."""
    axes = [draw(radices) for _ in range(draw(st.integers(1, 3)))]
    assume(prod(prod(extents) for extents in axes) <= 1000)
    digits = draw(st.permutations([d for axis, extents in enumerate(axes) for d in mixed_radix(axis, extents)]))
    loops: list[Loop] = []
    while digits:
        size = draw(st.integers(least, 3))
        loops.append(Loop("L", f"a{len(loops)}", tuple(digits[:size])))
        digits = digits[size:]
    return Nest(tuple(map(prod, axes)), tuple(loops), ())


def evaluate(expr: Expr, point: tuple[int, ...]) -> int:
    match expr:
        case Int():
            return expr.value
        case Index():
            return point[expr.axis]
        case Binary(op="+"):
            return evaluate(expr.left, point) + evaluate(expr.right, point)
        case Binary(op="*"):
            return evaluate(expr.left, point) * evaluate(expr.right, point)
        case Binary(op="//"):
            return evaluate(expr.left, point) // evaluate(expr.right, point)
        case Binary(op="%"):
            return evaluate(expr.left, point) % evaluate(expr.right, point)
    raise AssertionError(expr)


def counts(digits: tuple[Digit, ...], value: int) -> dict[int, int]:
    """What a loop at ``value`` contributes to each axis: its digits read off from the right."""
    axes: dict[int, int] = {}
    for digit in reversed(digits):
        value, here = divmod(value, digit.extent)
        axes[digit.axis] = axes.get(digit.axis, 0) + here * digit.stride
    assert value == 0
    return axes


def total(*contributions: dict[int, int]) -> dict[int, int]:
    return {axis: sum(c.get(axis, 0) for c in contributions) for axis in sorted({axis for c in contributions for axis in c})}


def nonzero(contribution: dict[int, int]) -> dict[int, int]:
    return {axis: value for axis, value in contribution.items() if value}


# ----------------------------------------------------------------------------------------------------------- split and fuse


@given(digit_lists())
def test_split_counts_as_the_loop_did(digits: tuple[Digit, ...]) -> None:
    """outer * factor + inner takes the place of the loop's value."""
    for factor in split_points(digits):
        parts = split(digits, factor)
        assert parts is not None
        outer, inner = parts
        assert extent(inner) == factor
        assert extent(outer) * factor == extent(digits)
        for value in range(extent(digits)):
            apart = total(counts(outer, value // factor), counts(inner, value % factor))
            assert nonzero(apart) == nonzero(counts(digits, value))


@given(digit_lists())
def test_fuse_undoes_split(digits: tuple[Digit, ...]) -> None:
    """Up to neighbouring digits of one axis, which fuse joins: on a loop that has none it is the inverse."""
    joined = fuse((), digits)
    for factor in split_points(digits):
        parts = split(digits, factor)
        assert parts is not None
        assert fuse(*parts) == joined
    for factor in split_points(joined):
        parts = split(joined, factor)
        assert parts is not None
        assert fuse(*parts) == joined


@given(digit_lists(), st.integers(0, 4))
def test_split_undoes_fuse(digits: tuple[Digit, ...], cut: int) -> None:
    """A fused loop can be split where it was fused, and counts as before."""
    outer, inner = digits[:cut], digits[cut:]
    fused = fuse(outer, inner)
    assert extent(fused) == extent(outer) * extent(inner)
    parts = split(fused, extent(inner))
    assert parts is not None
    for value in range(extent(fused)):
        here = divmod(value, extent(inner))
        assert nonzero(counts(fused, value)) == nonzero(total(counts(outer, here[0]), counts(inner, here[1])))
        assert nonzero(counts(fused, value)) == nonzero(total(counts(parts[0], here[0]), counts(parts[1], here[1])))


@given(digit_lists())
def test_fuse_is_associative_and_idempotent(digits: tuple[Digit, ...]) -> None:
    once = fuse((), digits)
    assert fuse((), once) == once
    for cut in range(len(digits) + 1):
        assert fuse(fuse((), digits[:cut]), fuse((), digits[cut:])) == once


@given(digit_lists())
def test_split_points_are_all_there_are(digits: tuple[Digit, ...]) -> None:
    """A proper divisor is a split point if and only if split takes it."""
    points = split_points(digits)
    assert list(points) == sorted(set(points))
    proper = [f for f in divisors(extent(digits)) if 1 < f < extent(digits)]
    assert list(points) == [f for f in proper if split(digits, f) is not None]


@given(digit_lists(), st.integers(2, 50))
def test_what_does_not_divide_does_not_split(digits: tuple[Digit, ...], factor: int) -> None:
    if extent(digits) % factor:
        assert split(digits, factor) is None


@given(digit_lists())
def test_the_trivial_splits(digits: tuple[Digit, ...]) -> None:
    assert split(digits, 1) == (digits, ()) or extent(digits[-1:]) == 1
    outer_and_inner = split(digits, extent(digits))
    assert outer_and_inner is not None
    assert extent(outer_and_inner[0]) == 1


@given(st.integers(1, 5000))
def test_divisors(n: int) -> None:
    assert list(divisors(n)) == [d for d in range(1, n + 1) if n % d == 0]


# ------------------------------------------------------------------------------------------------- the invariant of a schedule


@given(nests())
def test_digits_dealt_to_loops_in_any_order_partition_the_axes(nest: Nest) -> None:
    assert partitions(nest.axes, nest.schedule, 0)


@given(nests(), st.randoms(use_true_random=False))
def test_split_fuse_and_reorder_keep_the_partition(nest: Nest, rng: object) -> None:
    schedule = list(nest.schedule)
    for number, loop in enumerate(schedule):
        for factor in split_points(loop.digits):
            parts = split(loop.digits, factor)
            assert parts is not None
            new = [Loop("L", "o", parts[0]), Loop("L", "i", parts[1])]
            assert partitions(nest.axes, schedule[:number] + new + schedule[number + 1 :], 0)
    for number in range(len(schedule) - 1):
        fused = Loop("L", "f", fuse(schedule[number].digits, schedule[number + 1].digits))
        assert partitions(nest.axes, [*schedule[:number], fused, *schedule[number + 2 :]], 0)
    if len(schedule) <= 4:
        assert all(partitions(nest.axes, order, 0) for order in permutations(schedule))


@given(nests(), st.data())
def test_a_missing_repeated_or_wrong_digit_is_no_partition(nest: Nest, data: st.DataObject) -> None:
    loops = list(nest.schedule)
    places = [(k, j) for k, loop in enumerate(loops) for j, d in enumerate(loop.digits) if d.extent > 1]
    assume(places)
    k, j = data.draw(st.sampled_from(places))
    digits = loops[k].digits
    digit = digits[j]
    broken = [
        digits[:j] + digits[j + 1 :],
        (*digits, digit),
        (*digits[:j], Digit(digit.axis, digit.extent + 1, digit.stride), *digits[j + 1 :]),
        (*digits[:j], Digit(digit.axis, digit.extent, digit.stride * 7), *digits[j + 1 :]),
        (*digits[:j], Digit(digit.axis + len(nest.axes), digit.extent, digit.stride), *digits[j + 1 :]),
    ]
    for new in broken:
        assert not partitions(nest.axes, [*loops[:k], Loop("L", "a", new), *loops[k + 1 :]], 0)


@given(nests())
def test_digits_of_lists_an_axis_from_large_to_small(nest: Nest) -> None:
    for axis, size in enumerate(nest.axes):
        digits = digits_of(axis, nest.schedule)
        assert prod(d.extent for d in digits) == size
        for outer, inner in pairwise(d for d in digits if d.extent > 1):
            assert outer.stride == inner.stride * inner.extent


# ---------------------------------------------------------------------------------------------------------------- index values


@given(digit_lists())
def test_digit_value_is_divmod(digits: tuple[Digit, ...]) -> None:
    for value in range(extent(digits)):
        rest = value
        for position in range(len(digits) - 1, -1, -1):
            rest, expected = divmod(rest, digits[position].extent)
            assert evaluate(digit_value(Index(0), digits, position), (value,)) == expected


@given(nests())
def test_loop_point_and_axis_values_are_inverse_bijections(nest: Nest) -> None:
    """From loop values to a point of the axes and back; every point of the axes is met once."""
    values = axis_values(nest, [Index(k) for k in range(len(nest.schedule))], 0)
    met = set()
    for loops in product(*(range(loop.extent) for loop in nest.schedule)):
        point = tuple(evaluate(value, loops) for value in values)
        assert all(0 <= v < size for v, size in zip(point, nest.axes, strict=True))
        assert tuple(loop_point(loop, point) for loop in nest.schedule) == loops
        met.add(point)
    assert len(met) == prod(nest.axes)


def test_values_are_printed_as_the_language_says() -> None:
    """h*61+a for an axis on two loops, (k//S)%E for a loop over two axes, the outermost without %."""
    tiled = Nest((549,), (Loop("L", "h", (Digit(0, 9, 61),)), Loop("L", "a", (Digit(0, 61, 1),))), ())
    h, a = Index(0), Index(1)
    assert axis_values(tiled, [h, a], 0) == [Binary("+", Binary("*", h, Int(61)), a)]
    fused = Nest((4, 6), (Loop("L", "k", (Digit(0, 4, 1), Digit(1, 6, 1))),), ())
    k = Index(0)
    assert axis_values(fused, [k], 0) == [Binary("//", k, Int(6)), Binary("%", k, Int(6))]


def test_an_axis_without_a_digit_is_an_error() -> None:
    with pytest.raises(ValueError, match="an axis without a digit"):
        axis_values(Nest((4,), (), ()), [], 0)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(0, 3))
def test_flat_means_one_whole_axis_per_loop_in_order(extents: list[int], first: int) -> None:
    loops = tuple(Loop("L", f"a{k}", whole(first + k, size)) for k, size in enumerate(extents))
    nest = Nest(tuple(extents), loops, ())
    assert is_flat(nest, first)
    assert not is_flat(nest, first + 1)
    if len(loops) > 1:
        assert not is_flat(Nest(nest.axes, loops[::-1], ()), first)
