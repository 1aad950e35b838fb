"""Implicit initialisation against the trace: who writes an element first, point by point."""

from __future__ import annotations

from collections import Counter
from random import Random

import islpy as isl
import pytest

from leir.ir import Equation, Item, Known, Nest, Program, Signature
from leir.lift import flatten_program
from leir.parser import parse
from tests.generators import Options, random_program
from tests.oracle.trace import Point, accumulator, elements, equations_of, points, sequential_time


def shape_unknown(_: str) -> Point:
    raise AssertionError("a target has no indirect subscript")


def first_writers(program: Program) -> dict[tuple[int, ...], tuple[set[Point], set[Point]]]:
    """For every accumulating equation: the elements that it writes, and those that it writes first."""
    flat = flatten_program(program)
    first: dict[tuple[str, Point], tuple[tuple[int, ...], tuple[int, ...]]] = {}
    written: dict[tuple[int, ...], set[Point]] = {}
    for eq in equations_of(flat):
        written[eq.path] = set()
        for point in points(eq):
            time = sequential_time(eq, point)
            for element in elements(eq.equation.target, point, shape_unknown):
                written[eq.path].add(element)
                place = (eq.equation.target.tensor.name, element)
                if place not in first or time < first[place][0]:
                    first[place] = (time, eq.path)
    result = {}
    for eq in equations_of(flat):
        if accumulator(eq.equation) is not None:
            name = eq.equation.target.tensor.name
            result[eq.path] = (written[eq.path], {e for e in written[eq.path] if first[name, e][1] == eq.path})
    return result


def carried(program: Program, path: tuple[int, ...], written: set[Point]) -> set[Point]:
    item: Item = program.nests[path[0]]
    for number in path[1:]:
        assert isinstance(item, Nest)
        item = item.body[number]
    assert isinstance(item, Equation)
    if item.init is None or item.init == "all":
        return written if item.init else set()
    starts = isl.Set(item.init)
    return {e for e in written if isl.Set("{ [" + ",".join(map(str, e)) + "] }").is_subset(starts)}


def test_init_is_what_the_trace_says_on_random_programs() -> None:
    seen: Counter[str] = Counter()
    for seed in range(500):
        program = random_program(Random(seed), Options(extents=(1, 2, 3, 4), expressions=5))
        for path, (written, first) in first_writers(program).items():
            assert carried(program, path, written) == first, (seed, path)
            seen["all" if first == written else "none" if not first else "some"] += 1
    assert seen["all"] > 300
    assert seen["none"] > 30


OUT = Signature("t", (Known("A", "f32", (4, 8), "input"), Known("X", "f32", (8,), "output")))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("L^{4}_{a=0}L^{8}_{c=0}[X^{f32,g}_{c}=X^{f32,g}_{c}+A^{f32,g}_{a,c};];", "all"),
        ("L^{8}_{c=0}[X^{f32,g}_{c}=0;];L^{4}_{a=0}L^{8}_{c=0}[X^{f32,g}_{c}=X^{f32,g}_{c}+A^{f32,g}_{a,c};];", "none"),
        ("L^{3}_{c=0}[X^{f32,g}_{c}=0;];L^{4}_{a=0}L^{8}_{c=0}[X^{f32,g}_{c}=X^{f32,g}_{c}+A^{f32,g}_{a,c};];", "some"),
        ("L^{4}_{c=0}[X^{f32,g}_{c*2}=0;];L^{4}_{a=0}L^{8}_{c=0}[X^{f32,g}_{c}=X^{f32,g}_{c}+A^{f32,g}_{a,c};];", "some"),
        ("L^{8}_{c=0}[X^{f32,g}_{c}=0;L^{4}_{a=0}[X^{f32,g}_{c}=X^{f32,g}_{c}+A^{f32,g}_{a,c};];];", "none"),
        ("L^{8}_{c=0}[L^{4}_{a=0}[X^{f32,g}_{c}=X^{f32,g}_{c}+A^{f32,g}_{a,c};];X^{f32,g}_{c}=X^{f32,g}_{c}*2;];", "all"),
        ("L^{4}_{a=0}[L^{8}_{c=0}[X^{f32,g}_{c}=X^{f32,g}_{c}+A^{f32,g}_{a,c};];X^{f32,g}_{a*2}=1;];", "all"),
        ("L^{4}_{a=0}[X^{f32,g}_{7}=a;L^{8}_{c=0}[X^{f32,g}_{c}=X^{f32,g}_{c}+A^{f32,g}_{a,c};];];", "some"),
    ],
)
def test_cases(text: str, kind: str) -> None:
    program = parse(text, OUT)
    accumulating = first_writers(program)
    path, (written, first) = next(iter(accumulating.items()))
    assert carried(program, path, written) == first
    assert kind == ("all" if first == written else "none" if not first else "some")
