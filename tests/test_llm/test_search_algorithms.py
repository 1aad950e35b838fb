"""Greedy and beam search: what they find, how they count, what they never do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from leir.ir import Program
from leir.key import key
from llm.search.algorithms import ALGORITHMS
from llm.search.budget import Budget
from llm.search.evaluator import Modelled
from llm.search.policy import Policy, RooflineGreedy, Uniform
from llm.search.search import RootFailed, Search, Unwritten
from rewrite.apply import replay
from rewrite.enumerate import enumerate_steps
from rewrite.step import step_from_text
from rules.rounding import loosest
from tests.test_llm.searching import CHAIN, SOFTMAX, length, model, search_into, timeless

ROOT = Path(__file__).resolve().parents[2]


def reachable(program: Program, depth: int) -> dict[str, float]:
    """The cost of every program at most ``depth`` legal steps away, by key."""
    costs = {key(program): length(program)}
    front = [program]
    for _ in range(depth):
        found = {f.key: f.program for p in front for f in enumerate_steps(p) if f.key not in costs}
        costs |= {k: length(p) for k, p in found.items()}
        front = list(found.values())
    return costs


@pytest.mark.parametrize("policy", [Uniform(1), RooflineGreedy(model())])
def test_a_beam_of_any_width_without_limits_is_exhaustive(policy: Policy) -> None:
    expected = reachable(CHAIN, 2)
    search = Search(CHAIN, policy, model(), Budget(10**6, depth=2), width=10**6, branch=None)
    assert search.run(ALGORITHMS["beam"]) == "exhausted"
    assert {node.key: node.seconds for node in search.nodes} == expected
    assert search.best.seconds == min(expected.values())
    assert search.evaluations == len(expected) - 1


def test_greedy_takes_the_fastest_neighbour_first() -> None:
    costs = [length(found.program) for found in enumerate_steps(SOFTMAX)]
    search = Search(SOFTMAX, Uniform(), model(), Budget(len(costs) + 1), branch=None)
    search.run(ALGORITHMS["greedy"])
    second = search.nodes[len(costs) + 1]
    assert second.parent is not None
    assert second.parent.seconds == min(costs) < search.root.seconds
    assert second.parent.parent is search.root


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_greedy_by_the_model_itself_finds_the_optimum_of_the_chain(algorithm: str) -> None:
    search = Search(CHAIN, RooflineGreedy(model()), model(), Budget(40))
    search.run(ALGORITHMS[algorithm])
    assert search.best.seconds == min(reachable(CHAIN, 3).values())
    assert search.policy.work["modelled"] > 40


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_no_program_is_evaluated_twice_and_the_budget_is_kept(algorithm: str) -> None:
    asked: list[str] = []
    evaluator = Modelled(lambda p: asked.append(key(p)) or length(p), "length")  # type: ignore[func-returns-value]
    log = Unwritten()
    search = Search(SOFTMAX, Uniform(5), evaluator, Budget(60, depth=4), width=3, branch=4, log=log)
    assert search.run(ALGORITHMS[algorithm]) == "evaluations"
    assert len(asked) == len(set(asked)) == 61
    assert all(node.depth <= 4 for node in search.nodes)
    assert [event["evaluation"] for event in log.events if event["event"] == "candidate"] == list(range(1, 61))


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_the_steps_of_the_best_program_replay(algorithm: str) -> None:
    search = Search(SOFTMAX, Uniform(2), model(), Budget(80), width=2)
    search.run(ALGORITHMS[algorithm])
    assert search.best.depth > 0
    steps = [step_from_text(move) for move in search.best.moves if isinstance(move, str)]
    done = replay(SOFTMAX, steps)
    assert done.refusal is None
    assert done.program == search.best.program
    rounding = done.applied[0].rounding
    for applied in done.applied:
        rounding = loosest((rounding, applied.rounding))
    assert search.best.rounding == rounding


def test_time_is_a_limit_too() -> None:
    search = Search(SOFTMAX, Uniform(), model(), Budget(10**6, seconds=0.0))
    assert search.run(ALGORITHMS["greedy"]) == "seconds"
    assert search.evaluations == 0


def test_what_has_no_cost_is_counted_and_goes_nowhere() -> None:
    def cost(program: Program) -> float:
        if program is not SOFTMAX:
            raise ValueError("too new")
        return 1.0

    search = Search(SOFTMAX, Uniform(), Modelled(cost, "picky"), Budget(20))
    search.run(ALGORITHMS["beam"])
    assert search.evaluations == 20
    assert search.nodes == [search.root]
    assert {attempt.score.status for attempt in search.root.attempts if attempt.score} == {"failed"}


def test_an_original_without_a_score_is_an_error() -> None:
    with pytest.raises(RootFailed, match=r"no score: failed: the model says nan"):
        Search(SOFTMAX, Uniform(), Modelled(lambda _: float("nan"), "lost"), Budget(1))


def test_the_seed_and_nothing_else_decides(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        search_into(tmp_path / name, policy=Uniform(seed), algorithm="beam")
    assert timeless(tmp_path / "a") == timeless(tmp_path / "b")
    assert timeless(tmp_path / "a") != timeless(tmp_path / "c")


def test_hash_seeds_change_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.test_llm.searching import search_into\n"
        "search_into(Path(sys.argv[1]), algorithm='beam')"
    )
    for seed in ("1", "2"):
        command = [sys.executable, "-c", code, str(tmp_path / seed)]
        subprocess.run(command, cwd=ROOT, env={"PYTHONHASHSEED": seed}, check=True)
    assert timeless(tmp_path / "1") == timeless(tmp_path / "2")
