"""Runs the command line in this process."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from leir.cli.app import main


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command left: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Leir:
    """``leir(...)`` runs the command with these arguments."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: object) -> Outcome:
        self.monkeypatch.setattr(sys, "argv", ["leir", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        captured = self.capsys.readouterr()
        code = end.value.code
        assert code is None or isinstance(code, int)
        return Outcome(code or 0, captured.out, captured.err)
