"""Start-up budgets. Measured in processor seconds of the child, best of several runs, so that a busy machine does not matter."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

HELP_SECONDS = 0.3
SHOW_SECONDS = 0.4
RUNS = 5

MATMUL = """\
# leir 1 matmul
# A f32[96,64] input
# C f32[64,40] input
# D f32[96,40] output
L^{96}_{a=0}L^{40}_{c=0}L^{64}_{d=0}[D^{f32,g}_{a,c}=D^{f32,g}_{a,c}+A^{f32,g}_{a,d}*C^{f32,g}_{d,c};];
"""


def test_help_starts_within_its_budget() -> None:
    assert best_seconds("--help") < HELP_SECONDS


def test_show_starts_within_its_budget(tmp_path: Path) -> None:
    file = tmp_path / "matmul.leir"
    file.write_text(MATMUL, encoding="utf-8")
    assert best_seconds("show", str(file)) < SHOW_SECONDS


def best_seconds(*arguments: str) -> float:
    """User plus system time of `leir ARGUMENTS`, the least of `RUNS` runs. The first run also writes the bytecode cache."""
    return min(_seconds(arguments) for _ in range(RUNS))


def _seconds(arguments: tuple[str, ...]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "leir.cli", *arguments], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
