"""steps, apply, replay: what one prints the next one takes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.test_cli.conftest import MATMUL
from tests.test_cli.running import Leir

SPLIT = "loop_split 0 loop=0 factor=4"


def test_steps_tells_what_proved_each(leir: Leir, matmul: Path) -> None:
    outcome = leir("steps", matmul, "--strategy", "loop_split", "--limit", 3)
    lines = outcome.out.splitlines()
    assert [line.split()[1:5] for line in lines[:2]] == [
        ["loop_split", "0", "loop=0", "factor=2"],
        ["loop_split", "0", "loop=0", "factor=4"],
    ]
    assert "(construction)" in lines[0]
    assert lines[-1] == "3 legal"


def test_refusals_come_with_code_and_witness(leir: Leir, matmul: Path) -> None:
    document = leir("steps", matmul, "--strategy", "loop_binding", "--refusals", "--json").json()
    refused = [entry["refused"] for entry in document["steps"] if "refused" in entry]
    bound = next(r for r in refused if r["code"] == "reduction-bound")
    assert bound["witness"]["tensor"] == "D"
    text = leir("steps", matmul, "-s", "loop_binding", "--refusals").out
    assert "[reduction-bound]" in text
    assert text.splitlines()[-1].endswith(f"{len(refused)} refused")


def test_every_listed_step_can_be_applied_and_leads_to_its_key(leir: Leir, matmul: Path) -> None:
    entries = leir("steps", matmul, "--json").json()["steps"]
    assert len(entries) > 10
    for entry in entries[:: max(1, len(entries) // 10)]:
        as_text = leir("apply", matmul, *entry["text"].split(), "--json").json()
        as_json = leir("apply", matmul, json.dumps(entry["step"]), "--json").json()
        assert as_text == as_json
        assert as_text["certificate"]["after"] == entry["key"]


def test_apply_writes_the_program_and_the_certificate(leir: Leir, matmul: Path, tmp_path: Path) -> None:
    program, certificate = tmp_path / "new.leir", tmp_path / "certificate.json"
    outcome = leir("apply", matmul, *SPLIT.split(), "-o", program, "--certificate", certificate)
    assert (outcome.code, outcome.out) == (0, "")
    assert "L^{2}_{f=0}L^{4}_{a=0}" in program.read_text(encoding="utf-8")
    assert json.loads(certificate.read_text(encoding="utf-8"))["certificate_version"] == 1
    assert leir("diff", matmul, program).code == 1


def test_risky_steps_are_offered_and_applied_on_request(leir: Leir, tmp_path: Path) -> None:
    program = tmp_path / "product.leir"
    known = "# leir 1 product\n# A f32[4] input\n# C f32[4] output\n"
    program.write_text(known + "L^{4}_{a=0}[C^{f32,g}_{a}=exp(A^{f32,g}_{a})*exp(1-A^{f32,g}_{a});];\n", encoding="utf-8")
    assert leir("steps", program, "-s", "powsimp").out == "0 legal\n"
    assert "real+range" in leir("steps", program, "-s", "powsimp", "--risky").out
    step = ["powsimp", "0.0:", "rule=exponential", "at=,"]
    assert "[needs-range]" in leir("apply", program, *step).err
    assert leir("apply", program, *step, "--risky").code == 0


def test_an_illegal_step_ends_with_1(leir: Leir, matmul: Path) -> None:
    outcome = leir("apply", matmul, "loop_binding", "0", "loop=2", "axis=tx")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("refused: ")
    assert "[reduction-bound]" in outcome.err


def test_a_step_that_does_not_exist_ends_with_2_and_says_what_does(leir: Leir, matmul: Path) -> None:
    unknown = leir("apply", matmul, "loop_split", "0", "loop=0", "factor=3")
    assert unknown.code == 2
    assert "it takes: loop=0 factor=2" in unknown.err
    assert "`leir strategies` lists them" in leir("apply", matmul, "loop_spilt", "0", "loop=0").err
    assert leir("apply", matmul, '{"step_version": 7}').err.startswith("error: the step's format version is 7")
    assert leir("steps", matmul, "-s", "nothing").code == 2


def test_replay_takes_text_json_and_certificates(leir: Leir, matmul: Path, tmp_path: Path) -> None:
    first = leir("apply", matmul, *SPLIT.split(), "--json").json()
    second = {"step_version": 1, "strategy": "loop_split", "site": {"path": [1], "scalar": None}, "args": {"loop": 0, "factor": 2}}
    files = [tmp_path / f"{k}.steps" for k in range(2)]
    files[0].write_text(f"# two steps\n{SPLIT}\n\n{json.dumps(second)}\n", encoding="utf-8")
    files[1].write_text(f"{json.dumps(first['certificate'])}\nloop_split 1 loop=0 factor=2\n", encoding="utf-8")
    outcomes = [leir("replay", matmul, file) for file in files]
    assert [o.code for o in outcomes] == [0, 0]
    assert outcomes[0].err == "2 steps applied\n"
    assert outcomes[0].out == outcomes[1].out


def test_replay_stops_where_the_certificate_belongs_to_another_program(leir: Leir, matmul: Path, tmp_path: Path) -> None:
    certificate = leir("apply", matmul, *SPLIT.split(), "--json").json()["certificate"]
    other, steps = tmp_path / "other.leir", tmp_path / "steps.jsonl"
    other.write_text(MATMUL.replace("max", "min"), encoding="utf-8")
    steps.write_text(json.dumps(certificate), encoding="utf-8")
    outcome = leir("replay", other, steps)
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: {steps}:1: the certificate starts from ")


def test_replay_names_the_line_that_it_cannot_read(leir: Leir, matmul: Path, tmp_path: Path) -> None:
    steps = tmp_path / "steps.txt"
    steps.write_text(f"{SPLIT}\nloop_split\n", encoding="utf-8")
    outcome = leir("replay", matmul, steps)
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: {steps}:2: ")
