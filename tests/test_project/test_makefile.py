"""The Makefile explains itself, refuses an old Python with a way out, and installs again only when the pins change."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_help_explains_every_target() -> None:
    lines = _make(ROOT, "help").stdout.splitlines()
    explained = {line.split()[0:2][1] for line in lines}
    assert {"venv", "demo", "test", "fuzz", "bench", "lint", "docs", "clean"} <= explained
    assert all(len(line.split()) > 2 for line in lines)


def test_an_old_python_is_refused_with_a_way_out(tmp_path: Path) -> None:
    _project(tmp_path)
    old = tmp_path / "python3.8"
    old.write_text('#!/bin/sh\ncase "$1" in --version) echo Python 3.8.2;; *) exit 1;; esac\n', encoding="utf-8")
    old.chmod(0o755)
    run = _make(tmp_path, "venv", f"PYTHON={old}")
    assert run.returncode
    assert f"error: leir needs Python 3.11 or newer; '{old}' is Python 3.8.2." in run.stderr
    assert "make venv PYTHON=python3.12" in run.stderr
    assert not (tmp_path / ".venv").exists()


def test_nothing_is_installed_again_until_the_pins_change(tmp_path: Path) -> None:
    _project(tmp_path)
    stamp = tmp_path / ".venv" / ".installed"
    stamp.parent.mkdir()
    stamp.touch()
    for name in ("pyproject.toml", "constraints.txt"):
        os.utime(tmp_path / name, (1, 1))
    assert "pip install" not in _make(tmp_path, "--dry-run", "venv").stdout
    (tmp_path / "constraints.txt").touch()
    os.utime(stamp, (2, 2))
    assert "pip install" in _make(tmp_path, "--dry-run", "venv").stdout


def test_every_dependency_is_pinned_and_torch_fits_both_builds() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all("==" in pin for pin in pins)
    assert "torch==2.13.0" in pins
    assert "apache-tvm-ffi==0.1.14.post1" in pins


def _project(root: Path) -> None:
    (root / "Makefile").write_text((ROOT / "Makefile").read_text(encoding="utf-8"), encoding="utf-8")
    for name in ("pyproject.toml", "constraints.txt"):
        (root / name).touch()


def _make(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Without the variables of an outer `make test`, which would change what make prints.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", "--no-print-directory", *arguments], cwd=root, capture_output=True, text=True, check=False, env=environment
    )
