"""Enumeration: complete, in one order, each program once."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import pytest

from leir.ir import Program
from leir.key import key
from leir.printer import print_program
from rewrite.apply import Applied, apply
from rewrite.enumerate import Found, enumerate_steps
from rewrite.step import BadStep
from rules.catalogue import STRATEGIES
from tests.generators import SMALL, random_program
from tests.test_rewrite.checked import assert_sound, program

SOURCE = """
# A f32[4,6] input
# E f32[4,6] output
L^{4}_{a=0}L^{6}_{c=0}[M^{f32,g}_{a}=max(M^{f32,g}_{a},A^{f32,g}_{a,c});];
L^{4}_{a=0}L^{6}_{c=0}[E^{f32,g}_{a,c}=(A^{f32,g}_{a,c}-M^{f32,g}_{a})*2+(A^{f32,g}_{a,c}-M^{f32,g}_{a})*3;];
"""
LOOPS = [
    "operator_fusion",
    "loop_reorder",
    "loop_tiling",
    "loop_split",
    "loop_fusion",
    "loop_unrolling",
    "loop_parallelization",
    "loop_vectorization",
    "loop_binding",
]


def test_every_found_step_applies_to_the_same_program() -> None:
    start = program(SOURCE)
    found = list(enumerate_steps(start))
    expected = {*LOOPS, "reduction_factorization", "factorization", "expand_factorization"} - {"loop_vectorization"}
    assert {f.step.strategy for f in found} == expected
    for f in found:
        outcome = apply(start, f.step)
        assert isinstance(outcome, Applied)
        assert (outcome.program, outcome.rounding, outcome.proofs) == (f.program, f.rounding, f.proofs)
        assert f.key == key(f.program)
        assert_sound(f.program)


def test_steps_come_in_catalogue_order_and_each_program_once() -> None:
    found = list(enumerate_steps(program(SOURCE)))
    order = [strategy.name for strategy in STRATEGIES]
    assert [f.step.strategy for f in found] == sorted((f.step.strategy for f in found), key=order.index)
    assert len({f.program.nests for f in found}) == len(found)


def test_refusals_are_given_on_request_in_their_places() -> None:
    plain = list(enumerate_steps(program(SOURCE)))
    everything = list(enumerate_steps(program(SOURCE), refusals=True))
    assert [o for o in everything if isinstance(o, Found)] == plain
    assert len(everything) > len(plain)


def test_chosen_strategies_only() -> None:
    assert {f.step.strategy for f in enumerate_steps(program(SOURCE), strategies=["loop_split"])} == {"loop_split"}
    with pytest.raises(BadStep, match="is no strategy"):
        list(enumerate_steps(program(SOURCE), strategies=["split"]))


def walk(rng: Random, start: Program, length: int) -> Program:
    for _ in range(length):
        by_strategy: dict[str, list[Found]] = {}
        for found in enumerate_steps(start, strategies=LOOPS):
            by_strategy.setdefault(found.step.strategy, []).append(found)
        if not by_strategy:
            break
        start = rng.choice(by_strategy[rng.choice(sorted(by_strategy))]).program
    return start


@pytest.mark.parametrize("seed", range(40))
def test_random_walks_stay_sound_and_in_normal_form(seed: int) -> None:
    rng = Random(seed)
    end = walk(rng, random_program(rng, SMALL), 5)
    assert_sound(end)
    for found in list(enumerate_steps(end, strategies=LOOPS))[:3]:
        assert_sound(found.program)


def listing() -> str:
    lines = []
    for seed in range(6):
        start = random_program(Random(seed), SMALL)
        for outcome in enumerate_steps(start, refusals=True):
            end = print_program(outcome.program) + outcome.key if isinstance(outcome, Found) else str(outcome.refusal)
            lines.append(f"{outcome.step} {end}")
    return "\n".join(lines)


def test_the_same_bytes_for_any_hash_seed() -> None:
    code = "from tests.test_rewrite.test_enumerate import listing; print(listing())"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert outputs == {listing() + "\n"}
