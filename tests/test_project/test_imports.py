"""The import rules hold for the tree, and the checker sees each kind of violation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_project.import_rules import HEAVY, PACKAGES, main, violations

ROOT = Path(__file__).resolve().parents[2]


def test_the_tree_obeys_the_rules() -> None:
    assert [str(v) for v in violations(ROOT)] == []


@pytest.mark.parametrize(
    ("path", "source", "line", "message"),
    [
        ("leir/a.py", "import rules.b\n", 1, "leir imports rules.b; leir sees no other package"),
        ("leir/a.py", "def f():\n    from rules import b\n", 2, "leir imports rules.b; leir sees no other package"),
        ("rules/a.py", "from rewrite.step import Step\n", 1, "rules imports rewrite.step.Step; rules sees leir"),
        ("lower/a.py", "import rules\n", 1, "lower imports rules; lower sees leir"),
        ("extract/a.py", "import lower\n", 1, "extract imports lower; extract sees leir, rewrite, rules"),
        ("rewrite/a.py", "import llm\n", 1, "rewrite imports llm; rewrite sees leir, rules"),
        ("rules/a.py", "from leir.cli import app\n", 1, "rules.a imports the command line (leir.cli.app)"),
        ("leir/a.py", "from tests import generators\n", 1, "leir imports tests.generators"),
        ("rules/a.py", "import islpy as isl\n", 1, "rules.a imports islpy; only leir.polyhedral may"),
        (
            "leir/a.py",
            "\nt = importlib.import_module('torch')\n",
            2,
            "leir.a imports torch; only leir.import_torch* may",
        ),
        (
            "leir/cli/app.py",
            "from leir import import_torch\n",
            1,
            "leir.cli.app -> leir.import_torch -> torch loads at start; import it inside the function that uses it",
        ),
        (
            "leir/files.py",
            "from .import_torch import x\n",
            1,
            "leir.files -> leir.import_torch -> torch loads at start; import it inside the function that uses it",
        ),
        (
            "rewrite/egraph.py",
            "import egglog\ncontext = get_context('fork')\n",
            2,
            "rewrite.egraph uses egglog and forks; egglog lives in spawned processes",
        ),
    ],
)
def test_a_violation_is_reported_with_its_place(tmp_path: Path, path: str, source: str, line: int, message: str) -> None:
    _tree(tmp_path)
    _write(tmp_path, path, source)
    assert [str(v) for v in violations(tmp_path)] == [f"{path}:{line}: {message}"]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("llm/a.py", "import leir, rules, rewrite, extract, lower\n"),
        ("leir/cli/app.py", "def f():\n    from leir import import_torch\n    import llm\n"),
        ("leir/files.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from leir import import_torch\n"),
        ("rewrite/egraph.py", "import egglog\ncontext = get_context('spawn')\n"),
    ],
)
def test_what_is_allowed_is_not_reported(tmp_path: Path, path: str, source: str) -> None:
    _tree(tmp_path)
    _write(tmp_path, path, source)
    assert violations(tmp_path) == []


def test_the_command_ends_with_status_1_on_a_violation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _tree(tmp_path)
    assert main([str(tmp_path)]) == 0
    _write(tmp_path, "leir/a.py", "import llm\n")
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().err == "leir/a.py:1: leir imports llm; leir sees no other package\n"


def test_importing_every_package_and_the_command_line_loads_nothing_heavy() -> None:
    """The same rule at run time, where third-party modules count too."""
    modules = [*PACKAGES, "leir.cli.app", "leir.files", "leir.parser", "leir.printer", "leir.check"]
    code = f"import json, sys, {', '.join(modules)}; print(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert HEAVY.isdisjoint(json.loads(run.stdout))


def _tree(root: Path) -> None:
    for package in (*PACKAGES, "leir/cli"):
        _write(root, f"{package}/__init__.py", "")
    _write(root, "leir/import_torch.py", "import torch\n")


def _write(root: Path, path: str, source: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(source, encoding="utf-8")
