"""Every program read back from the root class computes what the original computes; mistakes are hunted among random members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from leir.interpret import interpret
from leir.ir import Program
from leir.printer import print_program
from leir.repair import import_text
from rewrite.egraph.child import Saturator
from rewrite.egraph.explain import Explainer, Explanation
from rewrite.egraph.options import PHASES, Limits, Options
from rewrite.egraph.result import EGraphResult, Sample, programs
from tests.generators import SMALL, random_inputs, random_program
from tests.test_leir.reference_programs import reference_programs
from tests.test_rewrite.checked import assert_sound

QUICK = Options(limits=dict.fromkeys(PHASES, Limits(iterations=2, rows=2_500, seconds=3.0)), beam=3, groups=30, cycles=1)
STOPS = {"saturated", "iteration-limit", "row-limit", "time-limit"}


@pytest.fixture(scope="module")
def saturator() -> Iterator[Saturator]:
    with Saturator() as process:
        yield process


def assert_members_equal(result: EGraphResult, seed: int, count: int, sample: Sample) -> int:
    """Random members are sound and equal to the original up to rounding; how many there were."""
    inputs = random_inputs(result.program, seed)
    wanted = interpret(result.program, inputs, mode="f64")
    found = 0
    for member in programs(result, Random(seed), count, sample):
        assert_sound(member.program)
        with np.errstate(all="ignore"):
            got = interpret(member.program, inputs, mode="f64")
        for name, value in wanted.items():
            np.testing.assert_allclose(
                got[name], value, rtol=1e-6, atol=1e-6, err_msg=f"{print_program(result.program)}\n{print_program(member.program)}"
            )
        found += 1
    return found


def test_random_programs_keep_their_meaning(saturator: Saturator) -> None:
    sample = Sample()
    members = 0
    outcomes: Counter[str] = Counter()
    for seed in range(100):
        result = saturator.saturate(random_program(Random(seed), SMALL), QUICK)
        outcomes[result.report.outcome] += 1
        members += assert_members_equal(result, seed, 5, sample)
    assert set(outcomes) <= STOPS
    assert members > 400
    assert set(sample.skipped) <= {"seen"}, sample


def small(program: Program) -> bool:
    return all(np.prod(nest.axes, dtype=float) <= 70_000 for nest in program.nests) and len(program.nests) <= 5


def importable() -> list[Program]:
    found = []
    for signature, text in reference_programs():
        program, diagnostics = import_text(text, signature, demote=True)
        if not any(d.severity == "error" for d in diagnostics):
            found.append(program)
    return found


def test_reference_programs_keep_their_meaning(saturator: Saturator) -> None:
    chosen = [program for program in importable() if small(program)]
    assert len(chosen) >= 5
    sample = Sample()
    for number, program in enumerate(chosen[:6]):
        result = saturator.saturate(program, QUICK)
        assert result.report.outcome in STOPS
        assert assert_members_equal(result, number, 3, sample) > 0


@pytest.mark.slow
def test_all_reference_programs(saturator: Saturator) -> None:
    for number, program in enumerate(importable()):
        result = saturator.saturate(program, QUICK)
        assert result.report.outcome in STOPS
        assert assert_members_equal(result, number, 3, Sample()) > 0


@pytest.mark.slow
def test_random_programs_with_more_time(saturator: Saturator) -> None:
    for seed in range(100, 120):
        result = saturator.saturate(random_program(Random(seed)), Options())
        assert_members_equal(result, seed, 12, Sample())


def test_members_are_explained_by_steps(saturator: Saturator) -> None:
    replayed = 0
    for seed in (3, 9, 26):
        result = saturator.saturate(random_program(Random(seed), SMALL), QUICK)
        explainer = Explainer(result)
        for member in programs(result, Random(seed), 10):
            explanation = explainer.explain(member.kernels)
            if isinstance(explanation, Explanation):
                replayed += 1
                assert set(member.kernels) <= set(explainer.kernels(explanation.program))
                before = result.program
                for applied in explanation.steps:
                    assert applied.before == before
                    before = applied.program
                assert before == explanation.program
    assert replayed >= 12


def test_the_result_does_not_depend_on_the_process(saturator: Saturator) -> None:
    program = random_program(Random(7), SMALL)
    first = saturator.saturate(program, QUICK)
    with Saturator() as other:
        second = other.saturate(program, QUICK)
    assert first.leader == second.leader
    assert first.flow.kernels == second.flow.kernels
    texts = [[print_program(m.program) for m in programs(r, Random(0), 5)] for r in (first, second)]
    assert texts[0] == texts[1]
