"""Extraction against the step graph: the cheapest program of an e-graph is the cheapest that steps reach."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose

import numpy as np
import pytest

from extract.correlation import spearman
from extract.extraction import Extraction, extract
from extract.kernel_costs import this_cpu_seconds
from extract.optimize import optimize
from extract.roofline import tensor_shapes
from leir.check import check, has_errors
from leir.interpret import bits, interpret
from leir.ir import Known, Program, Signature
from leir.key import key
from leir.parser import parse
from rewrite.apply import replay
from rewrite.egraph.child import Saturator
from rewrite.egraph.options import PHASES, Limits, Options
from rewrite.enumerate import enumerate_steps
from rules.rounding import loosest
from tests.generators import random_inputs

STRATEGIES = ("operator_fusion", "compute_inline", "loop_reorder", "loop_parallelization", "loop_unrolling")


def seconds(program: Program) -> float:
    shapes = tensor_shapes(program)
    return sum(this_cpu_seconds(nest, shapes) for nest in program.nests)


@pytest.fixture(scope="module")
def saturator() -> Iterator[Saturator]:
    with Saturator() as found:
        yield found


def small_programs() -> list[Program]:
    """30 programs of one to three expressions, small enough that their step graphs to depth 3 can be walked."""
    found = []
    for rows, columns in ((4, 6), (32, 48), (300, 8), (64, 64), (7, 500), (2, 900)):
        known = (
            Known("A", "f32", (rows, columns), "input"),
            Known("C", "f32", (columns, rows), "input"),
            Known("G", "f32", (rows,), "output"),
        )
        wide = (known[0], known[1], Known("G", "f32", (rows, columns), "output"))
        r, c = f"L^{{{rows}}}_{{a=0}}", f"L^{{{columns}}}_{{c=0}}"
        texts = [
            (known, f"{c}{r}[G^{{f32,g}}_{{a}}=G^{{f32,g}}_{{a}}+A^{{f32,g}}_{{a,c}}*C^{{f32,g}}_{{c,a}};];"),
            (wide, f"{c}{r}[G^{{f32,g}}_{{a,c}}=A^{{f32,g}}_{{a,c}}*2+C^{{f32,g}}_{{c,a}};];"),
            (
                wide,
                (
                    f"{r}{c}[D^{{f32,g}}_{{a,c}}=A^{{f32,g}}_{{a,c}}+1;];"
                    f"{r}{c}[G^{{f32,g}}_{{a,c}}=max(D^{{f32,g}}_{{a,c}},0)*C^{{f32,g}}_{{c,a}};];"
                ),
            ),
            (
                known,
                (
                    f"{r}{c}[D^{{f32,g}}_{{a}}=max(D^{{f32,g}}_{{a}},A^{{f32,g}}_{{a,c}});];"
                    f"{r}{c}[G^{{f32,g}}_{{a}}=G^{{f32,g}}_{{a}}+exp(A^{{f32,g}}_{{a,c}}-D^{{f32,g}}_{{a}});];"
                ),
            ),
            (
                wide,
                f"{r}[D^{{f32,g}}_{{a}}=A^{{f32,g}}_{{a,0}}*3;];{c}{r}[G^{{f32,g}}_{{a,c}}=A^{{f32,g}}_{{a,c}}-D^{{f32,g}}_{{a}};];",
            ),
        ]
        found += [parse(text, Signature(f"p{rows}_{k}", tensors)) for k, (tensors, text) in enumerate(texts)]
    return found


def walked(program: Program, depth: int) -> float:
    """The least cost in the step graph to ``depth``."""
    best = seconds(program)
    seen = {key(program)}
    level = [program]
    for _ in range(depth):
        following = []
        for current in level:
            for found in enumerate_steps(current, strategies=STRATEGIES):
                if found.key not in seen:
                    seen.add(found.key)
                    following.append(found.program)
                    best = min(best, seconds(found.program))
        level = following
    return best


def saturated(saturator: Saturator, program: Program) -> Extraction:
    limits = dict.fromkeys(PHASES, Limits(6, 50_000, 20.0))
    result = saturator.saturate(program, Options(strategies=STRATEGIES, limits=limits, cost=this_cpu_seconds, beam=50))
    assert result.report.outcome == "saturated", result.report.text()
    return extract(program, result, this_cpu_seconds, width=20, tries=500)


def test_the_extracted_cost_is_that_of_the_best_walk(saturator: Saturator) -> None:
    """30 small programs, the step graph to depth 3 under the same strategies."""
    programs = small_programs()
    assert len(programs) == 30
    improved = 0
    for program in programs:
        found = saturated(saturator, program)
        best = walked(program, 3)
        assert isclose(found.cost, best, rel_tol=1e-9) or (found.cost < best and len(found.steps) > 3), program.name
        improved += best < 0.9 * found.original_cost
    assert improved >= 10


def test_the_result_is_reached_by_checked_steps_and_computes_the_same(saturator: Saturator) -> None:
    for program in small_programs()[:15]:
        best = saturated(saturator, program)
        again = replay(program, [a.step for a in best.steps])
        assert again.refusal is None
        assert again.program == best.program
        assert not has_errors(check(best.program))
        inputs = random_inputs(program, 0)
        before, after = interpret(program, inputs), interpret(best.program, inputs)
        for name, array in before.items():
            if loosest(a.rounding for a in best.steps) == "bitwise":
                np.testing.assert_array_equal(bits(array), bits(after[name]))
            else:
                np.testing.assert_allclose(array, after[name], rtol=1e-4, atol=1e-4)


def test_exact_extraction_finds_nothing_better(saturator: Saturator) -> None:
    program = small_programs()[2]
    options = Options(strategies=("operator_fusion", "compute_inline", "loop_parallelization"), cost=this_cpu_seconds)
    result = saturator.saturate(program, options)
    greedy, exact = (extract(program, result, this_cpu_seconds, exact=e) for e in (False, True))
    assert exact.optimal
    assert isclose(greedy.cost, exact.cost, rel_tol=1e-9)


def test_optimize_says_why_it_stopped_and_keeps_the_original() -> None:
    program = small_programs()[3]
    found = optimize(program, budget_s=5, strategies=("operator_fusion",))
    assert found.report.outcome == "saturated"
    assert found.original.program == program
    assert found.best.cost <= found.original.cost
    assert [a.step.strategy for a in found.best.steps] in ([], ["operator_fusion"])


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 2, 3], [10, 20, 30], 1.0),
        ([1, 2, 3], [3, 2, 1], -1.0),
        ([1, 1, 2, 3], [5, 5, 6, 7], 1.0),
        ([1, 2], [1, 1], None),
        ([1], [1], None),
        ([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], 0.8),
    ],
)
def test_spearman(first: list[float], second: list[float], expected: float | None) -> None:
    found = spearman(first, second)
    assert found == expected if expected is None else found is not None and isclose(found, expected)
