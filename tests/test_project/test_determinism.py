"""The same output for any PYTHONHASHSEED."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_cli.conftest import MATMUL

SEEDS = ("0", "1", "4242")


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "a.leir", "--json"),
        ("check", "a.leir", "--json"),
        ("diff", "a.leir", "b.leir", "--json"),
        ("steps", "a.leir", "--refusals", "--json"),
        ("apply", "a.leir", "loop_split 0 loop=0 factor=4", "--json"),
        ("strategies", "--json"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_output_does_not_depend_on_the_hash_seed(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "a.leir").write_text(MATMUL, encoding="utf-8")
    (tmp_path / "b.leir").write_text(MATMUL.replace("L^{8}", "P^{8}").replace("max", "min"), encoding="utf-8")
    runs = [_run(seed, arguments, tmp_path) for seed in SEEDS]
    assert runs[0].stdout
    assert len({(run.returncode, run.stdout) for run in runs}) == 1


def _run(seed: str, arguments: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.run(
        [sys.executable, "-m", "leir.cli", *arguments], cwd=folder, capture_output=True, check=False, env=environment
    )
