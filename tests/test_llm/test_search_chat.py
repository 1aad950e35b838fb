"""Searches that ask a model: every answer has a verdict and is recorded, and a resumed run asks for no answer twice."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from leir.ir import Program
from leir.key import key
from leir.printer import print_program
from llm.search.budget import Budget
from llm.search.chat_policy import PATIENCE, ChatPolicy
from llm.search.comparison import read_run
from llm.search.endpoint import Endpoint
from llm.search.guard import Guard
from llm.search.judge import Judge
from llm.search.node import VERDICTS, Attempt, Node, Proposal, Score, legal_step
from llm.search.prompt import SHOWN_STEPS, build_prompt, shown_steps
from llm.search.search import Search
from lower.verify import Verdict
from rewrite.enumerate import enumerate_steps
from tests.test_llm.chat_server import Chat, Script, Sent, fails, says, serving
from tests.test_llm.searching import CHAIN, SOFTMAX, search_into, timeless

TWICE = "L^{4}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a}+A^{f32,g}_{a};E^{f32,g}_{a}=D^{f32,g}_{a}+1;];"


def verdict_by_text(program: Program) -> Verdict:
    """Stands for execution, which other tests do."""
    answer = "equal" if print_program(program) == TWICE else "different" if "+2" in print_program(program) else "undecided"
    return Verdict(answer, "real", (), 0, reason="so it is")  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def guard() -> Iterator[Guard]:
    with Guard(CHAIN, "llvm") as guard:
        yield guard


def chat_search(
    path: Path, guard: Guard, chat: Chat, *, evaluations: int = 3, answers: int | None = None, resume: bool = False, **rest: Any
) -> Search:
    endpoint = Endpoint("http://127.0.0.1:1/v1" if not chat.url else chat.url, "m", "sk-secret", timeout_s=0.5, retries=1)
    policy = ChatPolicy(endpoint, Judge(CHAIN, "llvm", verdict_by_text, guard), lambda _: None)
    policy.settings = {"name": "endpoint"}  # the port is another one in every test
    budget = Budget(evaluations, answers=answers)
    return search_into(path, CHAIN, policy=policy, budget=budget, branch=2, resume=resume, **rest)


def candidates(path: Path) -> list[dict[str, Any]]:
    return [event for event in timeless(path) if event["event"] == "candidate"]


EVERYTHING: Sequence[tuple[Sent, str]] = (
    (says({"step": 1}), "legal-step"),
    (says({"leir": TWICE}), "equal-by-execution"),
    (says({"leir": TWICE.replace("+1", "+2")}), "different"),
    (says({"leir": TWICE.replace("+1", "+3")}), "undecided"),
    (says({"leir": TWICE.replace("D^{f32,g}_{a}+1", "D^{f32,g}_{a+1}")}), "ill-formed"),
    (says({"leir": "print(1)"}), "parse-error"),
    (says({"leir": TWICE.replace("E^{f32", "E^{f16")}), "wrong-signature"),
    (says({"leir": print_program(CHAIN)}), "no-change"),
    (says("I cannot"), "malformed-answer"),
    (fails(400), "http-error"),
    (Sent(hang=True), "timeout"),
)


def test_every_verdict_there_is(guard: Guard, tmp_path: Path) -> None:
    assert {verdict for _, verdict in EVERYTHING} == set(VERDICTS)
    for number, (sent, verdict) in enumerate(EVERYTHING):
        path = tmp_path / f"{number}.jsonl"
        with serving([sent]) as chat:
            search = chat_search(path, guard, chat, answers=1)
        (event,) = candidates(path)
        assert event["verdict"] == verdict
        assert (event["evaluation"] == 1) == (verdict in ("legal-step", "equal-by-execution"))
        assert event["answer"]["text"] == sent.body.decode()
        assert search.verdicts == {verdict: 1}
        assert read_run(path).verdicts == {verdict: 1}
        assert "sk-secret" not in path.read_text()


def conversation() -> Script:
    """Good answers and bad ones; the third request after them repeats for ever what was said before."""
    sent = [fails(429, "1"), says({"step": 1}), says("?"), says({"leir": TWICE}), says({"step": 2}), says({"step": 1}), says("??")]
    return [*sent, says({"step": 3}), says({"step": 1})]


@pytest.mark.parametrize("algorithm", ["greedy", "beam"])
def test_a_resumed_run_asks_nothing_twice(guard: Guard, tmp_path: Path, algorithm: str) -> None:
    whole = tmp_path / "whole.jsonl"
    with serving(conversation()) as chat:
        chat_search(whole, guard, chat, evaluations=4, answers=9, algorithm=algorithm)
        total = len(chat.requests)
    lines = whole.read_text().splitlines(keepends=True)
    for kept in range(1, len(lines)):
        cut = tmp_path / f"cut{kept}.jsonl"
        cut.write_text("".join(lines[:kept]) + '{"event": "cand')
        recorded = sum(len(json.loads(line).get("answer", {}).get("tries", ())) for line in lines[1:kept] if "answer" in line)
        script = list(conversation())[recorded:] or [says("never")]  # type: ignore[arg-type]
        with serving(script) as chat:
            search = chat_search(cut, guard, chat, evaluations=4, answers=9, algorithm=algorithm, resume=True)
            assert len(chat.requests) == total - recorded
        assert timeless(cut) == timeless(whole)
        assert search.policy.work["requests"] == total


def test_a_model_that_says_nothing_new_is_left_alone(guard: Guard, tmp_path: Path) -> None:
    with serving([says({"step": 1}), says("no")]) as chat:
        search = chat_search(tmp_path / "run", guard, chat, evaluations=50, algorithm="beam")
    assert search.stop is None  # nothing was left to try
    assert len(chat.requests) == 1 + 2 * PATIENCE
    assert search.verdicts == {"legal-step": 1, "malformed-answer": 2 * PATIENCE}


def test_a_written_program_is_part_of_the_way_to_the_best(guard: Guard, tmp_path: Path) -> None:
    with serving([says({"leir": TWICE}), says({"step": 1})]) as chat:
        search = chat_search(tmp_path / "run", guard, chat, evaluations=2)
    assert search.nodes[1].moves == [{"leir": TWICE}]
    assert search.nodes[1].rounding == "real"


# --------------------------------------------------------------------------------------------------------------------- the prompt


def test_the_prompt_tells_the_program_its_standing_and_its_steps() -> None:
    legal = tuple(enumerate_steps(SOFTMAX))
    root = Node(0, SOFTMAX, key(SOFTMAX), 4e-6)
    prompt = build_prompt(root, legal, "cuda")
    text = prompt.messages[1]["content"]
    assert print_program(SOFTMAX) in text
    assert "- A: input, f32[6,8]" in text
    assert "It is the original program, and takes 4 us." in text
    assert "their product at most 1024" in text
    assert all(f"{k}. {found.step}\n" in text for k, found in enumerate(prompt.shown, 1))
    assert "- loop_split: one loop becomes an outer and an inner one" in text
    assert "Tried from" not in text

    step = legal_step(legal[0])
    child = Node(1, legal[0].program, legal[0].key, 2e-6, root, 1, step)
    child.attempts += [
        Attempt(step, repeat=True),
        Attempt(Proposal("parse-error", "x" * 1000)),
        Attempt(legal_step(legal[1]), Score(3e-6)),
        Attempt(legal_step(legal[2]), Score(None, "different", "3 elements differ")),
    ]
    text = build_prompt(child, legal, "llvm").messages[1]["content"]
    assert "It takes 2 us, 2 times the original's speed, after 1 step." in text
    assert f"It came by the step {legal[0].step} from its parent, which takes 4 us:\n{print_program(SOFTMAX)}" in text
    assert "Tried from this program: 4, of which 3 failed." in text
    assert f"- {legal[0].step}: this program was reached before" in text
    assert f"- parse-error: {'x' * 200}\n" in text
    assert f"- {legal[1].step}: takes 3 us" in text
    assert f"- {legal[2].step}: different: 3 elements differ" in text


def test_when_there_are_many_steps_every_strategy_gets_its_turn() -> None:
    legal = tuple(enumerate_steps(SOFTMAX)) * 3
    shown = shown_steps(legal)
    assert len(shown) == SHOWN_STEPS
    assert {found.step.strategy for found in shown} == {found.step.strategy for found in legal}
