"""show, fmt, diff, check."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_cli.conftest import MATMUL
from tests.test_cli.running import Leir


def test_show_for_a_reader(leir: Leir, matmul: Path) -> None:
    outcome = leir("show", matmul)
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0].startswith("matmul  key ")
    assert lines[2:] == [
        "tensors",
        "  A f32[8,6] input",
        "  C f32[6,4] input",
        "  E f32[8,4] output",
        "temporaries",
        "  D f32[8,4] g",
        "expressions",
        "  0  L^{8}_{a=0}L^{4}_{c=0}L^{6}_{d=0}[",
        "       D^{f32,g}_{a,c}=D^{f32,g}_{a,c}+A^{f32,g}_{a,d}*C^{f32,g}_{d,c};",
        "     ];",
        "  1  L^{8}_{a=0}L^{4}_{c=0}[",
        "       E^{f32,g}_{a,c}=max(D^{f32,g}_{a,c},0);",
        "     ];",
    ]


def test_show_as_json_is_a_program_file_and_more(leir: Leir, matmul: Path) -> None:
    document = leir("show", matmul, "--json").json()
    assert document["leir_version"] == 1
    assert document["temporaries"] == ["D f32[8,4] g"]
    assert [e["iterations"] for e in document["expressions"]] == [192, 32]
    assert document["expressions"][1]["loops"][0] == {"kind": "L", "name": "a", "extent": 8}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.leir", "L^{8}", "p.leir:1:1: the first line is no `# leir 1 NAME`"),
        ("p.leir", "# leir 9 x\n", "p.leir:1:1: the format version is 9, and this LEIR reads version 1"),
        ("p.json", '{"leir_version": 2}', "p.json: the format version is 2, and this LEIR reads version 1"),
        ("p.txt", "", "p.txt: the suffix '.txt' is none of .leir and .json"),
        ("p.leir", "# leir 1 x\n# A f32[4] input\nL^{4}_{a=0}[A", "p.leir:3:12: this `[` is never closed"),
    ],
)
def test_unusable_input_ends_with_2_and_one_message(
    name: str, text: str, message: str, leir: Leir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text, encoding="utf-8")
    outcome = leir("show", name)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith(f"error: {message}")
    assert "Traceback" not in outcome.err


def test_a_file_that_is_not_there(leir: Leir, tmp_path: Path) -> None:
    outcome = leir("show", tmp_path / "no.leir")
    assert (outcome.code, outcome.err) == (2, f"error: {tmp_path / 'no.leir'}: No such file or directory\n")


def test_fmt_prints_what_it_would_write(leir: Leir, matmul: Path) -> None:
    matmul.write_text(MATMUL.replace(";];", ";] ; \n"), encoding="utf-8")
    assert leir("fmt", matmul).out == MATMUL
    assert leir("fmt", "--check", matmul).code == 1
    assert leir("fmt", "--write", matmul).code == 0
    assert matmul.read_text(encoding="utf-8") == MATMUL
    assert leir("fmt", "--check", matmul).code == 0
    assert leir("fmt", "--json", matmul).json() == {"file": str(matmul), "changed": False, "text": MATMUL}


def test_diff_of_equal_programs(leir: Leir, matmul: Path) -> None:
    outcome = leir("diff", matmul, matmul)
    assert (outcome.code, outcome.out) == (0, "equal\n")


def test_diff_of_different_programs(leir: Leir, matmul: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.leir"
    other.write_text(MATMUL.replace("max", "min"), encoding="utf-8")
    outcome = leir("diff", matmul, other)
    assert outcome.code == 1
    assert outcome.out.splitlines() == [
        "item 1.0",
        "- E^{f32,g}_{a,c}=max(D^{f32,g}_{a,c},0)",
        "+ E^{f32,g}_{a,c}=min(D^{f32,g}_{a,c},0)",
        "1 change",
    ]
    document = leir("diff", matmul, other, "--json").json()
    assert (document["equal"], document["same_key"]) == (False, False)
    assert document["changes"][0]["change"] == "EquationChanged"


def test_diff_says_when_only_names_differ(leir: Leir, matmul: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.leir"
    other.write_text(MATMUL.replace("D^", "F^"), encoding="utf-8")
    assert leir("diff", matmul, other).out.splitlines()[-1] == "same key: only names differ"
