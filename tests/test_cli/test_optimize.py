"""leir optimize: what it tells, what it writes, how it ends."""

from __future__ import annotations

from pathlib import Path

from leir.files import load
from rewrite.apply import replay
from rewrite.step import step_from_json
from tests.test_cli.running import Leir

PROGRAM = (
    "# leir 1 scaled\n# A f32[64,48] input\n# G f32[64,48] output\n"
    "L^{48}_{c=0}L^{64}_{a=0}[D^{f32,g}_{a,c}=A^{f32,g}_{a,c}*2;];L^{48}_{c=0}L^{64}_{a=0}[G^{f32,g}_{a,c}=D^{f32,g}_{a,c}+1;];\n"
)
FEW = ("-s", "operator_fusion", "-s", "loop_reorder", "-s", "compute_inline")


def test_the_best_program_is_written_and_its_steps_replay(leir: Leir, tmp_path: Path) -> None:
    file, best, log = tmp_path / "p.leir", tmp_path / "best.leir", tmp_path / "run.jsonl"
    file.write_text(PROGRAM)
    done = leir("optimize", str(file), "--budget", "5", *FEW, "-o", str(best), "--run", str(log), "--json")
    assert done.code == 0, done.err
    told = done.json()
    assert told["saturation"]["outcome"] == "saturated"
    assert told["extracted_s"] < told["original_s"]
    again = replay(load(file), [step_from_json(step) for step in told["steps"]])
    assert again.refusal is None
    assert again.program == load(best)
    compared = leir("compare", str(log), "--json")
    assert compared.code == 0, compared.err
    assert "extracted" in compared.out


def test_measured_candidates_are_verified_and_ranked(leir: Leir, tmp_path: Path) -> None:
    file = tmp_path / "p.leir"
    file.write_text(PROGRAM)
    done = leir("optimize", str(file), "--budget", "5", *FEW, "--measure")
    assert done.code == 0, done.err
    assert "speedup over the original" in done.out
    assert "Spearman correlation of model and measurement" in done.out
    assert "different" not in done.out


def test_unusable_input_ends_with_2(leir: Leir, tmp_path: Path) -> None:
    file = tmp_path / "p.leir"
    file.write_text(PROGRAM)
    done = leir("optimize", str(file), "-s", "loop_magic")
    assert done.code == 2
    assert "loop_magic" in done.err
