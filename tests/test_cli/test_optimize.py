"""leir optimize: what it tells, what it writes, how it ends."""

from __future__ import annotations

import json
from pathlib import Path

from leir.files import load
from rewrite.apply import replay
from rewrite.step import step_from_json
from tests.test_cli.running import run

PROGRAM = (
    "# leir 1 scaled\n# A f32[64,48] input\n# G f32[64,48] output\n"
    "L^{48}_{c=0}L^{64}_{a=0}[D^{f32,g}_{a,c}=A^{f32,g}_{a,c}*2;];L^{48}_{c=0}L^{64}_{a=0}[G^{f32,g}_{a,c}=D^{f32,g}_{a,c}+1;];\n"
)
FEW = ("-s", "operator_fusion", "-s", "loop_reorder", "-s", "compute_inline")


def test_the_best_program_is_written_and_its_steps_replay(tmp_path: Path) -> None:
    file, best, log = tmp_path / "p.leir", tmp_path / "best.leir", tmp_path / "run.jsonl"
    file.write_text(PROGRAM)
    done = run("optimize", str(file), "--budget", "5", *FEW, "-o", str(best), "--run", str(log), "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["saturation"]["outcome"] == "saturated"
    assert told["extracted_s"] < told["original_s"]
    again = replay(load(file), [step_from_json(step) for step in told["steps"]])
    assert again.refusal is None
    assert again.program == load(best)
    compared = run("compare", str(log), "--json")
    assert compared.exit_code == 0, compared.stderr
    assert "extracted" in compared.stdout


def test_measured_candidates_are_verified_and_ranked(tmp_path: Path) -> None:
    file = tmp_path / "p.leir"
    file.write_text(PROGRAM)
    done = run("optimize", str(file), "--budget", "5", *FEW, "--measure")
    assert done.exit_code == 0, done.stderr
    assert "speedup over the original" in done.stdout
    assert "Spearman correlation of model and measurement" in done.stdout
    assert "different" not in done.stdout


def test_unusable_input_ends_with_2(tmp_path: Path) -> None:
    file = tmp_path / "p.leir"
    file.write_text(PROGRAM)
    done = run("optimize", str(file), "-s", "loop_magic")
    assert done.exit_code == 2
    assert "loop_magic" in done.stderr
