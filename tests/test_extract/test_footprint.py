"""Footprints and cache traffic against counting: every element visited, every line kept in a simulated cache."""

from __future__ import annotations

from collections import OrderedDict
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.schedules import program
from extract.address import Addresses, Wheel, wheels_of
from extract.features import kernel
from extract.footprint import elements, first_run, lines, sets_met
from extract.roofline import tensor_shapes
from extract.traffic import traffic
from leir.ir import Access, Equation, Index, Int, Nest, accesses
from leir.lift import flatten
from leir.polyhedral import touches
from leir.shapes import interval

LINE = 64


def _visited(shape: tuple[tuple[int, int], ...]) -> set[int]:
    return {sum(k * stride for k, (stride, _) in zip(at, shape, strict=True)) for at in product(*(range(n) for _, n in shape))}


@st.composite
def nested_strides(draw: st.DrawFn) -> tuple[tuple[int, int], ...]:
    """Strides as tiles and rows have them: each a multiple of what the smaller ones span."""
    shape, span = [], 4
    for _ in range(draw(st.integers(1, 4))):
        stride = span * draw(st.sampled_from((1, 1, 2, 16)))
        count = draw(st.integers(2, 6))
        shape.append((stride, count))
        span = stride * count
    return tuple(draw(st.permutations(shape)))


@given(nested_strides())
@settings(max_examples=200)
def test_elements_of_nested_strides_are_exact(shape: tuple[tuple[int, int], ...]) -> None:
    assert elements(shape, 4) == len(_visited(shape))


@given(nested_strides())
@settings(max_examples=200)
def test_lines_of_nested_strides_are_close(shape: tuple[tuple[int, int], ...]) -> None:
    true = len({address // LINE for address in _visited(shape)})
    assert true / 2 <= lines(shape, 4, LINE) <= 2 * true


@pytest.mark.parametrize(
    ("shape", "count"),
    [
        (((4, 16),), 1),
        (((4, 17),), 2),
        (((64, 10),), 10),
        (((4, 64), (256, 8)), 32),  # rows side by side are one run
        (((4, 16), (1024, 8)), 8),
        (((4, 3), (4, 100)), 7),  # a window sliding over a row
        (((1024, 3), (1024, 30)), 32),  # a window sliding over rows
        (((2048, 30), (1024, 3)), 61),  # the same in steps of two
    ],
)
def test_lines(shape: tuple[tuple[int, int], ...], count: int) -> None:
    assert lines(shape, 4, LINE) == count


def test_strides_of_powers_of_two_meet_few_sets() -> None:
    assert sets_met(((4096, 100),), 4, LINE, 64) == 1
    assert sets_met(((512, 100),), 4, LINE, 64) == 8
    assert sets_met(((2000, 100),), 4, LINE, 64) == 64
    assert sets_met(((4, 64),), 4, LINE, 64) == 4


def test_the_first_run_ends_at_the_first_jump() -> None:
    assert first_run(((4, 16), (1024, 8), (64, 8)), 4, LINE) == 64
    assert first_run(((1024, 8), (4, 16)), 4, LINE) == 4


# --------------------------------------------------------------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    ("tensors", "text"),
    [
        ("A[12,10] -> D[12,10]", "L12a L10c [ D(a,c)=A(a,9-c); ];"),
        ("A[12,12] -> D[12,12]", "L144a [ D(a//12,a%12)=A(a%12,a//12); ];"),
        ("A[12,12] -> D[12,12]", "L3a L2c L4d L6f [ D(a*4+d,c*6+f)=A(c*6+f,a*4+d); ];"),
        ("A[14,14] -> D[6,6]", "L6a L6c L3d L3f [ D(a,c)=D(a,c)+A(2*a+d,2*c+f); ];"),
        ("A[8,6] -> D[6]", "L6a [ L8c [ D(a)=D(a)+A(c,a); ]; ];"),
    ],
)
def test_an_address_is_linear_in_the_wheels(tensors: str, text: str) -> None:
    """Evaluated at every point, it is the row-major position that the flat text gives."""
    one = program(tensors, text)
    shapes = tensor_shapes(one)
    assert _addresses(one.nests[0], shapes) == _positions(flatten(one.nests[0]), shapes)


def _addresses(nest: Nest, shapes: dict[str, tuple[int, ...]], wheels: tuple[Wheel, ...] = (), loops: int = 0) -> list[list[int]]:
    wheels = (*wheels, *wheels_of(nest, loops))
    found = []
    for item in nest.body:
        if isinstance(item, Nest):
            found += _addresses(item, shapes, wheels, loops + len(nest.schedule))
            continue
        reader = Addresses(wheels, shapes)
        for access in _touched(item):
            address = reader.of(access)
            points = product(*(range(w.extent) for w in wheels))
            found.append([address.offset + sum(k * s for k, s in zip(at, address.strides, strict=True)) for at in points])
    return found


def _positions(nest: Nest, shapes: dict[str, tuple[int, ...]], extents: tuple[int, ...] = ()) -> list[list[int]]:
    extents = extents + nest.axes
    found = []
    for item in nest.body:
        if isinstance(item, Nest):
            found += _positions(item, shapes, extents)
            continue
        for access in _touched(item):
            values = []
            for at in product(*(range(n) for n in extents)):
                position = 0
                for subscript, size in zip(access.subscripts, shapes[access.tensor.name], strict=True):
                    position = position * size + _value(subscript, at)
                values.append(4 * position)
            found.append(values)
    return found


def _touched(equation: Equation) -> list[Access]:
    return [equation.target, *accesses(equation.value)]


def _value(subscript: object, at: tuple[int, ...]) -> int:
    from leir.ir import Binary

    match subscript:
        case Int(value=value):
            return value
        case Index(axis=axis):
            return at[axis]
        case Binary(op=op, left=left, right=right):
            x, y = _value(left, at), _value(right, at)
            return {"+": x + y, "-": x - y, "*": x * y, "//": x // y if y else 0, "%": x % y if y else 0}[op]
    raise AssertionError(subscript)


# ----------------------------------------------------------------------------------------------------------------------- traffic


@pytest.mark.parametrize("room", [8, 24, 80, 1000])
@pytest.mark.parametrize(
    "loops",
    [
        "L32a L32d L32c [ D(a,d)=D(a,d)+A(a,c)*C(c,d); ];",
        "L32a L32c L32d [ D(a,d)=D(a,d)+A(a,c)*C(c,d); ];",
        "L32c L32a L32d [ D(a,d)=D(a,d)+A(a,c)*C(c,d); ];",
        "L32d L32c L32a [ D(a,d)=D(a,d)+A(a,c)*C(c,d); ];",
        "L2a L2d L2c L16f L16g L16h [ D(a*16+f,d*16+h)=D(a*16+f,d*16+h)+A(a*16+f,c*16+g)*C(c*16+g,d*16+h); ];",
        "L32a [ L32d [ D(a,d)=A(a,d)*2.0; ]; L32d [ D(a,d)=D(a,d)+C(d,a); ]; ];",
    ],
)
def test_traffic_is_near_that_of_a_simulated_cache(loops: str, room: int) -> None:
    """A fully associative cache that replaces the least recently used line; what is written goes back when it leaves."""
    one = program("A[32,32] C[32,32] -> D[32,32]", loops)
    shapes = tensor_shapes(one)
    model = traffic(kernel(one.nests[0], shapes).region, room * LINE, LINE, None).lines
    true = _simulated(flatten(one.nests[0]), shapes, room)
    assert true / 2.1 <= model <= 2.1 * true


def _simulated(nest: Nest, shapes: dict[str, tuple[int, ...]], room: int) -> int:
    cache: OrderedDict[tuple[str, int], bool] = OrderedDict()
    crossings = 0

    def touch(access: Access, at: tuple[int, ...], written: bool) -> None:
        nonlocal crossings
        position = 0
        for subscript, size in zip(access.subscripts, shapes[access.tensor.name], strict=True):
            position = position * size + _value(subscript, at)
        line = (access.tensor.name, 4 * position // LINE)
        crossings += line not in cache
        cache[line] = cache.pop(line, False) or written
        if len(cache) > room:
            crossings += cache.popitem(last=False)[1]

    def walk(nest: Nest, at: tuple[int, ...]) -> None:
        for inner in product(*(range(n) for n in nest.axes)):
            for item in nest.body:
                if isinstance(item, Nest):
                    walk(item, (*at, *inner))
                else:
                    for one in touches(item):
                        touch(one.access, (*at, *inner), one.role != "read")

    walk(nest, ())
    return crossings + sum(cache.values())


def test_what_is_resident_does_not_cross() -> None:
    one = program("A[32,32] -> D[32,32]", "L32a L32c [ D(a,c)=A(a,c); ];")
    region = kernel(one.nests[0], tensor_shapes(one)).region
    assert traffic(region, 1 << 20, LINE, None, resident=True).lines == 0
    assert traffic(region, 1 << 20, LINE, None).lines == 3 * 32 * 32 * 4 / LINE
    assert traffic(region, 1 << 10, LINE, None, resident=True).lines == 3 * 32 * 32 * 4 / LINE


def test_the_oracle_reads_subscripts_as_the_language_does() -> None:
    nest = flatten(program("A[12,10] -> D[12,10]", "L12a L10c [ D(a,c)=A(a,9-c); ];").nests[0])
    equation = nest.body[0]
    assert isinstance(equation, Equation)
    for access in _touched(equation):
        for subscript in access.subscripts:
            low, high = interval(subscript, nest.axes)
            values = [_value(subscript, at) for at in product(*(range(n) for n in nest.axes))]
            assert (min(values), max(values)) == (low, high)
