"""Run files: complete, resumable at any point, and refused where they do not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leir.files import from_json
from leir.ir import Program
from leir.key import key
from llm.search.budget import Budget
from llm.search.comparison import read_run
from llm.search.evaluator import Modelled
from llm.search.policy import Uniform
from llm.search.run_file import BadRun, RunMismatch
from tests.test_llm.searching import CHAIN, length, model, search_into, timeless


class Stopping:
    """A cost that is interrupted when it is asked for the n-th time."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, program: Program) -> float:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        return length(program)


@pytest.mark.parametrize("algorithm", ["greedy", "beam"])
@pytest.mark.parametrize("after", [0, 1, 2, 7, 30])
@pytest.mark.parametrize("torn", ["", '{"event": "candidate", "ver'])
def test_an_interrupted_run_goes_on_as_if_nothing_had_happened(tmp_path: Path, algorithm: str, after: int, torn: str) -> None:
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    search_into(whole, algorithm=algorithm)
    with pytest.raises(KeyboardInterrupt):
        search_into(cut, algorithm=algorithm, evaluator=Modelled(Stopping(after), "length"))
    with cut.open("a", encoding="utf-8") as file:
        file.write(torn)
    asked = Stopping(31 - after)
    search_into(cut, algorithm=algorithm, evaluator=Modelled(asked, "length"), resume=True)
    assert timeless(cut) == timeless(whole)
    assert asked.left == 0


def test_a_finished_run_goes_on_under_a_larger_budget(tmp_path: Path) -> None:
    whole, short = tmp_path / "whole.jsonl", tmp_path / "short.jsonl"
    search_into(whole, budget=Budget(30))
    search_into(short, budget=Budget(9))
    search_into(short, budget=Budget(30), resume=True)
    assert timeless(short)[1:] == timeless(whole)[1:]
    search_into(short, budget=Budget(30), resume=True)
    assert timeless(short)[1:] == timeless(whole)[1:]


def test_time_that_passed_before_an_interruption_counts(tmp_path: Path) -> None:
    run = tmp_path / "run.jsonl"
    search_into(run, budget=Budget(5))
    events = [json.loads(line) for line in run.read_text().splitlines()]
    events[-2]["elapsed_s"] = 1000.0
    run.write_text("".join(json.dumps(event) + "\n" for event in events))
    search = search_into(run, budget=Budget(30, seconds=900), resume=True)
    assert (search.evaluations, search.stop) == (5, "seconds")


def test_the_last_event_holds_the_best_program(tmp_path: Path) -> None:
    run = tmp_path / "run.jsonl"
    search = search_into(run)
    end = json.loads(run.read_text().splitlines()[-1])
    assert key(from_json(end["program"])) == end["key"] == search.best.key
    assert end["steps"] == search.best.moves
    assert (end["reason"], end["evaluations"], end["seconds"]) == ("evaluations", 30, search.best.seconds)


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    search_into(tmp_path / "run.jsonl")
    with pytest.raises(FileExistsError):
        search_into(tmp_path / "run.jsonl")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"program": CHAIN}, "the run was of another program"),
        ({"policy": Uniform(4)}, "the run had policy"),
        ({"evaluator": Modelled(length, "width")}, "the run had evaluator 'model length', not 'model width'"),
        ({"budget": Budget(30, depth=1)}, "the run had depth None, not 1"),
        ({"budget": Budget(29)}, "has 1 candidates more than this search tries"),
        ({"branch": 6}, "went another way"),
    ],
)
def test_another_search_cannot_resume_a_run(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    run = tmp_path / "run.jsonl"
    search_into(run, policy=Uniform(3))
    before = run.read_text()
    with pytest.raises(RunMismatch, match=message):
        search_into(run, resume=True, **changes)  # type: ignore[arg-type]
    assert len(run.read_text().splitlines()) >= len(before.splitlines()) - 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r":1: the file holds no run"),
        ("{}\n", r":1: not an event"),
        ('{"event": "start", "run_version": 9}\n', r":1: the run's format version is 9, and this LEIR reads version 1"),
        ('{"event": "start", "run_version": 1}\n[\n', r":2: not a JSON object"),
        ("[" * 100_000 + "\n", r":1: not a JSON object"),
        ('{"event": "start", "run_version": 1}\n', r"stopped before the original program was evaluated"),
        ('{"event": "start", "run_version": 1}\n{"event": "root"}\n', r"an event lacks what it needs: KeyError: 'seconds'"),
    ],
)
def test_what_is_no_run_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "run").write_text(text)
    with pytest.raises(BadRun, match=message):
        read_run(tmp_path / "run")


def test_half_a_line_at_the_end_is_left_out(tmp_path: Path) -> None:
    run = tmp_path / "run.jsonl"
    search_into(run, evaluator=model())
    whole = read_run(run)
    text = run.read_text()
    run.write_text(text[: text.rindex('{"event": "end"') + 20])
    cut = read_run(run)
    assert (cut.curve, cut.reason) == (whole.curve, "interrupted")
