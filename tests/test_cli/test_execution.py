"""verify and strategies."""

from __future__ import annotations

from pathlib import Path

from tests.test_cli.conftest import MATMUL
from tests.test_cli.running import Leir


def test_verify_compares_by_running(leir: Leir, matmul: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.leir"
    other.write_text(MATMUL.replace("max", "min"), encoding="utf-8")
    document = leir("verify", matmul, matmul, "--rounding", "bitwise", "--json").json()
    assert (document["answer"], document["compared"]) == ("equal", 96)
    outcome = leir("verify", matmul, other)
    assert outcome.code == 1
    assert outcome.out.startswith("different: ")


def test_verify_runs_nothing_that_the_checker_rejects(leir: Leir, matmul: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.leir"
    wrong.write_text(MATMUL.replace("A^{f32,g}_{a,d}", "A^{f32,g}_{a,d+1}"), encoding="utf-8")
    outcome = leir("verify", matmul, wrong)
    assert outcome.code == 2
    assert "[out-of-bounds]" in outcome.err
    assert f"help: leir check {wrong}" in outcome.err


def test_strategies_lists_all_43_in_order(leir: Leir) -> None:
    rows = leir("strategies", "--json").json()
    assert len(rows) == 43
    assert rows[0]["name"] == "operator_fusion"
    lines = leir("strategies").out.splitlines()
    assert len(lines) == 43
    assert lines[10].startswith(" 11* loop_split ")


def test_one_strategy(leir: Leir) -> None:
    assert leir("strategies", "loop_split").out.splitlines()[0] == "loop_split: one loop becomes an outer and an inner one"
    outcome = leir("strategies", "loop_splt")
    assert outcome.code == 2
    assert "did you mean loop_split" in outcome.err
