"""Extraction against a walk of the step graph, and what it returns replayed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from extract.extraction import Extraction, candidates, extract
from leir.interpret import interpret
from leir.ir import Item, Nest, Program, subexpressions
from leir.printer import print_program
from rewrite.apply import replay
from rewrite.egraph.child import Saturator
from rewrite.egraph.options import PHASES, Limits, Options
from rewrite.enumerate import enumerate_steps
from tests.generators import Options as Shape
from tests.generators import random_inputs, random_program
from tests.test_rewrite.checked import assert_sound, program

STRATEGIES = ("operator_fusion", "compute_inline", "expression_reorder", "loop_reorder", "loop_fusion", "loop_vectorization")
STRATEGIES = (*STRATEGIES, "factorization")
TINY = Shape(extents=(2, 3, 4), expressions=2, depth=2)
WEIGHT = {"L": 1.0, "U": 0.75, "P": 0.5, "V": 0.25, "B": 1.0}


def price(nest: Nest, shapes: Mapping[str, tuple[int, ...]]) -> float:
    """Operations times iterations, cheaper in unrolled, parallel and vector loops; something for every kernel and loop."""
    return 5.0 + _price(nest, 1.0)


def _price(item: Item, times: float) -> float:
    if not isinstance(item, Nest):
        return times * sum(1 for side in (item.target, item.value) for _ in subexpressions(side))
    for loop in item.schedule:
        times *= loop.extent * WEIGHT[loop.kind]
    return sum(_price(child, times) for child in item.body) + len(item.schedule)


WIDE = Options(
    strategies=STRATEGIES,
    limits=dict.fromkeys(PHASES, Limits(iterations=6, rows=15_000, seconds=6.0)),
    beam=1000,
    groups=100_000,
    cycles=2,
    cost=price,
)


@pytest.fixture(scope="module")
def saturator() -> Iterator[Saturator]:
    with Saturator() as process:
        yield process


def total(program: Program) -> float:
    return sum(price(nest, {}) for nest in program.nests)


def walked(program: Program, depth: int) -> float:
    """The least cost within ``depth`` steps."""
    best, seen, front = total(program), {program.nests}, [program]
    for _ in range(depth):
        new = []
        for at in front:
            for found in enumerate_steps(at, strategies=STRATEGIES):
                if found.program.nests not in seen:
                    seen.add(found.program.nests)
                    new.append(found.program)
                    best = min(best, total(found.program))
        front = new
    return best


def check_extraction(source: Program, found: Extraction, seed: int) -> None:
    again = replay(source, [applied.step for applied in found.steps])
    assert again.refusal is None
    assert len(again.program.nests) == len(found.program.nests) + found.left_out
    assert set(found.program.nests) <= set(again.program.nests)
    assert found.cost == pytest.approx(total(found.program))
    assert_sound(found.program)
    inputs = random_inputs(source, seed)
    wanted = interpret(source, inputs, mode="f64")
    with np.errstate(all="ignore"):
        got = interpret(found.program, inputs, mode="f64")
    for name, value in wanted.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-6, atol=1e-6, err_msg=print_program(found.program))


def test_as_cheap_as_the_best_within_three_steps(saturator: Saturator) -> None:
    better = replayed = 0
    for seed in range(30):
        source = random_program(Random(seed), TINY)
        result = saturator.saturate(source, WIDE)
        found = extract(source, result, price, exact=True)
        check_extraction(source, found, seed)
        best = walked(source, 3)
        assert found.cost <= best + 1e-9, f"{seed}: {found.cost} and {best}\n{result.report.text()}"
        better += found.cost < best - 1e-9
        replayed += bool(found.steps)
    assert replayed >= 15


CHAIN = """
    # A f32[8,6] input
    # E f32[8,6] output
    L^{8}_{a=0}L^{6}_{c=0}[C^{f32,g}_{a,c}=exp(A^{f32,g}_{a,c});];
    L^{8}_{a=0}L^{6}_{c=0}[D^{f32,g}_{a,c}=C^{f32,g}_{a,c}+1.0;];
    L^{8}_{a=0}L^{6}_{c=0}[E^{f32,g}_{a,c}=D^{f32,g}_{a,c}*D^{f32,g}_{a,c};];
"""


def test_several_candidates_cheapest_first(saturator: Saturator) -> None:
    source = program(CHAIN)
    result = saturator.saturate(source, replace(WIDE, strategies=("compute_inline", "operator_fusion")))
    found = candidates(source, result, price, count=4)
    assert len(found) >= 3
    assert [one.cost for one in found] == sorted(one.cost for one in found)
    for one in found:
        check_extraction(source, one, 1)


def test_a_shared_value_is_paid_once(saturator: Saturator) -> None:
    """Inlining D into both of its reads would be cheap in a tree: exp twice costs less than a kernel here, and is not needed."""
    source = program(CHAIN)
    result = saturator.saturate(source, replace(WIDE, strategies=("compute_inline",)))
    greedy, exact = (extract(source, result, price, exact=e) for e in (False, True))
    assert greedy.cost == pytest.approx(exact.cost)
    assert exact.optimal


def test_nothing_to_gain_is_the_original(saturator: Saturator) -> None:
    source = program(CHAIN)
    result = saturator.saturate(source, replace(WIDE, strategies=("loop_unrolling",), cost=price))
    found = extract(source, result, lambda nest, shapes: 1.0)
    assert found.program == source
    assert found.steps == ()


def test_another_program_is_refused(saturator: Saturator) -> None:
    result = saturator.saturate(program(CHAIN), replace(WIDE, strategies=()))
    with pytest.raises(ValueError, match="another program"):
        extract(random_program(Random(0), TINY), result, price)
