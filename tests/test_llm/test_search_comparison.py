"""Runs side by side: equal numbers of evaluated programs, and only what can be compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm.search.budget import Budget
from llm.search.comparison import NotComparable, compare, read_run
from llm.search.evaluator import Modelled
from llm.search.node import Score
from llm.search.plot import plot_curves
from llm.search.policy import RooflineGreedy, Uniform
from llm.search.result import Reached, write_result
from rewrite.enumerate import enumerate_steps
from tests.test_llm.searching import CHAIN, SOFTMAX, length, model, search_into


def test_best_so_far_at_equal_numbers_of_evaluated_programs(tmp_path: Path) -> None:
    uniform = search_into(tmp_path / "uniform", policy=Uniform(1), budget=Budget(30))
    search_into(tmp_path / "roofline", policy=RooflineGreedy(model()), budget=Budget(7))
    runs = [read_run(tmp_path / "uniform"), read_run(tmp_path / "roofline")]
    comparison = compare(runs)
    assert comparison.marks == (1, 2, 5, 10, 20)
    for mark in comparison.marks:
        reached = [node.seconds for node in uniform.nodes if node.number <= mark]
        assert runs[0].best_after(mark) == min(reached)
    assert [runs[1].best_after(mark) is None for mark in comparison.marks] == [False, False, False, True, True]
    head, first, second = comparison.table()
    assert head == ["run", "1", "2", "5", "10", "20", "final", "evaluated", "speedup", "ended"]
    assert first[0] == "greedy (uniform)"
    assert second[4:6] == ["-", "-"]
    assert [row[-3] for row in (first, second)] == ["30", "7"]
    entry = comparison.to_json()["runs"][0]
    assert entry["curve"][0] == [0, length(SOFTMAX)]
    assert entry["curve"][-1] == [30, uniform.best.seconds]


def test_an_extracted_program_stands_beside_searches(tmp_path: Path) -> None:
    found = list(enumerate_steps(SOFTMAX))[:3]
    reached = [Reached(f.program, (f.step,), f.rounding, Score(length(f.program))) for f in found]
    reached.append(Reached(found[0].program, (), "bitwise", Score(None, "failed", "no")))
    path = tmp_path / "extracted"
    for _ in range(2):  # a result may be written again
        write_result(path, SOFTMAX, length(SOFTMAX), reached, label="extracted", evaluator="model length", work={"modelled": 99})
    search_into(tmp_path / "search", budget=Budget(20))
    comparison = compare([read_run(tmp_path / "search"), read_run(path)])
    run = comparison.runs[1]
    assert comparison.labels == ("greedy", "extracted")
    assert (run.evaluations, run.complete, run.work) == (4, True, {"modelled": 99})
    assert run.best_after(20) == run.best_seconds == min([length(SOFTMAX), *(length(f.program) for f in found)])


def test_a_result_no_better_than_the_original_is_the_original(tmp_path: Path) -> None:
    write_result(tmp_path / "none", SOFTMAX, 1.0, [], label="extracted", evaluator="model length")
    run = read_run(tmp_path / "none")
    assert (run.evaluations, run.best_seconds, run.steps) == (0, 1.0, ())
    assert compare([run]).table()[1][-3:] == ["0", "1.00x", "finished"]


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    search_into(tmp_path / "a")
    search_into(tmp_path / "b", CHAIN)
    search_into(tmp_path / "c", evaluator=Modelled(length, "width"))
    with pytest.raises(NotComparable, match="different programs"):
        compare([read_run(tmp_path / "a"), read_run(tmp_path / "b")])
    with pytest.raises(NotComparable, match=r"a by model length for llvm, .*c by model width for llvm"):
        compare([read_run(tmp_path / "a"), read_run(tmp_path / "c")])


@pytest.mark.parametrize(("name", "magic"), [("a.svg", b"<?xml"), ("a.png", b"\x89PNG")])
def test_the_plot_is_the_same_every_time(tmp_path: Path, name: str, magic: bytes) -> None:
    curves = {"greedy": ((0, 3e-6), (4, 1e-6), (9, 1e-6)), "extracted": ((0, 3e-6), (1, 2e-6))}
    texts = []
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        plot_curves(curves, tmp_path / folder / name, "softmax")
        texts.append((tmp_path / folder / name).read_bytes())
    assert texts[0] == texts[1]
    assert texts[0].startswith(magic)
