"""A body read in reference order means what the text means (leir.md, section 4): the one promise that lifting must keep.

Integers make the comparison exact: their sums, products, maxima and minima do not depend on the order of an accumulation.
"""

from __future__ import annotations

from itertools import permutations
from random import Random

import numpy as np
import pytest

from leir.digits import split, split_points, whole
from leir.interpret import run_flat
from leir.ir import Item, Known, Loop, Nest, Program, Signature
from leir.lift import flatten, flatten_program, lift, make_program
from leir.parser import parse
from tests.generators import Options, random_inputs, random_program

INTEGERS = Options(dtypes=("i64",), extents=(2, 3, 4, 6), recurrences=3, transcendental=False)


def in_reference_order(item: Item, first: int = 0) -> Item:
    """The nest with its axes walked as plain loops, in the order of their numbers."""
    if not isinstance(item, Nest):
        return item
    loops = tuple(Loop("L", f"{'acdfghijklmnopqrsuw'[first + k]}", whole(first + k, size)) for k, size in enumerate(item.axes))
    return Nest(item.axes, loops, tuple(in_reference_order(child, first + len(item.axes)) for child in item.body))


def reference(program: Program) -> tuple[Nest, ...]:
    found = []
    for nest in program.nests:
        ordered = in_reference_order(nest)
        assert isinstance(ordered, Nest)
        found.append(flatten(ordered))
    return tuple(found)


def same(program: Program, seed: int) -> None:
    inputs = random_inputs(program, seed)
    written = run_flat(program.signature, flatten_program(program), inputs, walk="points")
    base = run_flat(program.signature, reference(program), inputs, walk="points")
    for name, array in written.items():
        np.testing.assert_array_equal(array, base[name])


def test_the_text_and_the_reference_order_compute_the_same() -> None:
    for seed in range(250):
        same(random_program(Random(seed), INTEGERS), seed)


def scrambled(rng: Random, nest: Nest) -> Nest:
    """The flat nest with some loops split and all of them permuted: mostly another program, and that is the point."""
    loops: list[Loop] = []
    for loop in nest.schedule:
        points = split_points(loop.digits)
        if points and rng.random() < 0.7:
            outer, inner = split(loop.digits, rng.choice(points)) or ((), ())
            loops += [Loop("L", loop.name + "q", outer), Loop("L", loop.name, inner)]
        else:
            loops.append(Loop("L", loop.name, loop.digits))
    rng.shuffle(loops)
    return Nest(nest.axes, tuple(loops), nest.body)


def test_text_in_any_order_lifts_to_what_it_means() -> None:
    """Loops split and permuted without asking whether that is legal: the text is another program, and lifting must not turn it back
    into the old one. Only texts whose reads are all defined can be run."""
    kept_apart = 0
    for seed in range(400):
        rng = Random(seed)
        program = random_program(rng, INTEGERS)
        flat = tuple(flatten(scrambled(rng, nest)) for nest in flatten_program(program))
        again = make_program(program.signature, flat)
        assert flatten_program(make_program(program.signature, again.nests)) == flatten_program(again)
        inputs = random_inputs(program, seed)
        try:
            written = run_flat(program.signature, flat, inputs, walk="points")
        except ValueError:
            continue
        base = run_flat(program.signature, reference(again), inputs, walk="points")
        for name, array in written.items():
            np.testing.assert_array_equal(array, base[name])
        kept_apart += any(len(lift(f).axes) > len(n.axes) for f, n in zip(flat, program.nests, strict=True))
    assert kept_apart >= 10


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_every_order_of_a_split_recurrence(order: tuple[int, ...]) -> None:
    """X_a reads X_{a-1} and is overwritten over c; a split in two: six orders, each meaning what its text says."""
    loops = ["L^{3}_{d=0}", "L^{2}_{a=0}", "L^{3}_{c=0}"]
    text = "".join(loops[k] for k in order)
    equation = "X^{i64,g}_{d*2+a}=if_then_else(d*2+a<1,1,X^{i64,g}_{d*2+a-1})*2+A^{i64,g}_{d*2+a,c};"
    start = "L^{6}_{a=0}[X^{i64,g}_{a}=5;];"
    signature = Signature("t", (Known("A", "i64", (6, 3), "input"), Known("X", "i64", (6,), "output")))
    program = parse(f"{start}{text}[{equation}];", signature)
    same(program, 1)
