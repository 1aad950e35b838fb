"""The fixture ``leir``: the command line as a function."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_cli.running import Leir

MATMUL = """\
# leir 1 matmul
# A f32[8,6] input
# C f32[6,4] input
# E f32[8,4] output
L^{8}_{a=0}L^{4}_{c=0}L^{6}_{d=0}[D^{f32,g}_{a,c}=D^{f32,g}_{a,c}+A^{f32,g}_{a,d}*C^{f32,g}_{d,c};];\
L^{8}_{a=0}L^{4}_{c=0}[E^{f32,g}_{a,c}=max(D^{f32,g}_{a,c},0);];
"""


@pytest.fixture
def leir(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Leir:
    return Leir(monkeypatch, capsys)


@pytest.fixture
def matmul(tmp_path: Path) -> Path:
    """A small program in a file, formatted."""
    file = tmp_path / "matmul.leir"
    file.write_text(MATMUL, encoding="utf-8")
    return file
