"""search and compare: a run from the command line, stopped and resumed, and runs side by side."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.test_cli.running import Leir
from tests.test_llm.chat_server import fails, says, serving
from tests.test_llm.searching import timeless


def test_a_search_writes_its_run_and_its_best_program(leir: Leir, matmul: Path, tmp_path: Path) -> None:
    run, best, steps = tmp_path / "run.jsonl", tmp_path / "best.leir", tmp_path / "steps.txt"
    options = ("--algorithm", "beam", "--policy", "roofline", "-n", 25, "-o", run)
    document = leir("search", matmul, *options, "--best", best, "--json").json()
    assert (document["evaluations"], document["reason"]) == (25, "evaluations")
    assert document["speedup"] > 1
    assert document["work"]["modelled"] > 25
    steps.write_text("\n".join(document["steps"]) + "\n", encoding="utf-8")
    assert leir("replay", matmul, steps).out == best.read_text(encoding="utf-8")
    end = json.loads(run.read_text(encoding="utf-8").splitlines()[-1])
    assert (end["key"], end["steps"]) == (document["key"], document["steps"])


def test_text_tells_progress_and_result(leir: Leir, matmul: Path, tmp_path: Path) -> None:
    outcome = leir("search", matmul, "-n", 5, "--policy", "roofline", "-o", tmp_path / "run.jsonl")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0] == f"5 programs evaluated (evaluations); the run is in {tmp_path / 'run.jsonl'}"
    assert lines[1].startswith("best ")
    assert "1 evaluated: " in outcome.err


def test_measured_search_verifies_what_it_times(leir: Leir, matmul: Path, tmp_path: Path) -> None:
    document = leir(
        "search", matmul, "-n", 3, "--branch", 3, "--evaluator", "measure", "--json", "-o", tmp_path / "run.jsonl"
    ).json()
    events = timeless(tmp_path / "run.jsonl")
    assert [event["status"] for event in events if event["event"] == "candidate"] == ["ok"] * 3
    assert events[0]["settings"]["evaluator"] == "measure llvm"
    assert 0 < document["seconds"] <= document["root_seconds"] < 0.01


def test_a_model_behind_an_endpoint(leir: Leir, matmul: Path, tmp_path: Path) -> None:
    run, key = tmp_path / "run.jsonl", tmp_path / "key"
    key.write_text("sk-secret\n", encoding="utf-8")
    script = [fails(429, "0"), says({"step": 1}), says("what?"), says('<think>so</think><answer>{"step": 2}</answer>')]
    with serving(script) as chat:
        options = ("--policy", "endpoint", "--endpoint", chat.url, "--model", "m", "--key-file", key, "-n", 2)
        outcome = leir("search", matmul, *options, "-o", run)
    assert outcome.code == 0, outcome.err
    assert "answers: 2 legal-step, 1 malformed-answer" in outcome.out
    assert chat.authorization[0] == "Bearer sk-secret"
    assert "sk-secret" not in run.read_text(encoding="utf-8") + outcome.out + outcome.err


def test_a_killed_search_is_resumed(leir: Leir, matmul: Path, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    options = ("-n", 1000, "--seed", 3)
    assert leir("search", matmul, *options, "-o", whole).code == 0
    command = [sys.executable, "-m", "leir.cli", "search", *map(str, (matmul, *options, "-o", cut))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        end = time.monotonic() + 20
        while time.monotonic() < end and process.poll() is None and _lines(cut) < 8:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    assert 8 <= _lines(cut) <= _lines(whole)
    refused = leir("search", matmul, *options, "-o", cut)
    assert (refused.code, refused.err) == (
        2,
        f"error: {cut}: the file exists\n  help: --resume goes on with it; -o names another\n",
    )
    assert leir("search", matmul, *options, "-o", cut, "--resume").code == 0
    assert timeless(cut) == timeless(whole)


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_another_search_does_not_resume_a_run(leir: Leir, matmul: Path, tmp_path: Path) -> None:
    run = tmp_path / "run.jsonl"
    leir("search", matmul, "-n", 3, "-o", run)
    outcome = leir("search", matmul, "-n", 5, "--seed", 1, "-o", run, "--resume")
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: {run}: the run had policy ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--policy", "endpoint"), "no address is given"),
        (("--policy", "endpoint", "--endpoint", "here"), "'here' is no address of an endpoint"),
        (("--policy", "endpoint", "--endpoint", "http://h", "--key-file", "/nowhere"), "/nowhere: No such file"),
        (("--evaluator", "measure", "--target", "cuda"), "only programs for llvm can be measured here"),
        (("--device", "/nowhere.toml"), "/nowhere.toml"),
        (("-o", "/nowhere/run.jsonl"), "/nowhere/run.jsonl: No such file"),
    ],
)
def test_what_cannot_be_searched(leir: Leir, matmul: Path, tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    outcome = leir("search", matmul, "-o", tmp_path / "run.jsonl", *options)
    assert outcome.code == 2
    assert message in outcome.err


def test_compare_tells_and_plots(leir: Leir, matmul: Path, tmp_path: Path) -> None:
    runs = [tmp_path / f"{name}.jsonl" for name in ("a", "b")]
    leir("search", matmul, "-n", 12, "-o", runs[0])
    leir("search", matmul, "-n", 6, "--algorithm", "beam", "--policy", "roofline", "-o", runs[1])
    plot = tmp_path / "plot.svg"
    outcome = leir("compare", *runs, "-o", plot)
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[1].split() == ["run", "1", "2", "5", "10", "final", "evaluated", "speedup", "ended"]
    assert [line.split()[0] for line in lines[2:]] == ["greedy-uniform", "beam-roofline-2"]
    assert lines[3].split()[4] == "-"
    assert plot.read_text(encoding="utf-8").startswith("<?xml")
    document: Any = leir("compare", *runs, "--json").json()
    assert [run["evaluations"] for run in document["runs"]] == [12, 6]
    after = document["runs"][0]["best_after"]
    assert after["10"] <= after["1"]


def test_what_cannot_be_compared(leir: Leir, matmul: Path, tmp_path: Path) -> None:
    run = tmp_path / "a.jsonl"
    leir("search", matmul, "-n", 2, "-o", run)
    assert leir("compare", run, "-o", tmp_path / "plot.gif").err.startswith("error: ")
    assert leir("compare", tmp_path / "none.jsonl").err == f"error: {tmp_path / 'none.jsonl'}: No such file or directory\n"
    outcome = leir("compare", run, matmul)
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: {matmul}:1: not a JSON object")
