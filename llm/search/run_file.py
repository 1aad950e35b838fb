"""Run files: what a search did, one JSON object a line, appended and flushed as it happens.

    {"event": "start", "run_version": 1, "program": ..., "settings": ..., "budget": ...}
    {"event": "root", "seconds": ...}
    {"event": "candidate", "verdict": "legal-step", "parent": 0, "step": ..., "key": ..., "seconds": ..., ...}
    {"event": "end", "reason": "evaluations", "best": ..., "steps": [...], "program": ...}

A file without its end, or with half a line at the end, is that of an interrupted run. To resume it the same search runs again from
the start, and takes from the file what it would have to ask for: answers, scores, the time that had passed. So what a resumed run
does cannot differ from an uninterrupted one, and where it would (other code, another program), `RunMismatch` says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from leir.files import to_json
from leir.ir import Program
from llm.search.budget import Budget

RUN_VERSION = 1


class BadRun(ValueError):
    """A file that is no run, or not of this version. The message starts with the file and the line."""


class RunMismatch(ValueError):
    """A run that cannot be resumed by this search."""


def header(program: Program, settings: Mapping[str, Any], budget: Budget) -> dict[str, Any]:
    """What the first line of a run says. ``settings`` holds at least label, evaluator and target, and whatever else decides what
    the run does; only runs with the same settings can be resumed."""
    return {"program": to_json(program), "settings": dict(settings), "budget": budget.to_json()}


class RunLog:
    """A run file that is being written. ``recorded`` are the candidates and the root of the run that it resumes, in order."""

    def __init__(
        self, path: str | PathLike[str], header: Mapping[str, Any], *, resume: bool = False, replace: bool = False
    ) -> None:
        """Opens ``path``. A new file must not exist yet (FileExistsError), unless ``replace``. With ``resume`` the run in it goes
        on; a file that does not exist is a new one. Raises BadRun, RunMismatch, OSError."""
        self.path = Path(path)
        self.recorded: list[Mapping[str, Any]] = []
        start = {"event": "start", "run_version": RUN_VERSION, **header}
        if resume and self.path.exists() and (events := _resumable(self.path)):
            _compare(self.path, events[0][0], start)
            self.recorded = [event for event, _ in events[1:]]
            self._file: TextIO = self.path.open("r+", encoding="utf-8", newline="\n")
            self._file.truncate(events[-1][1])
            self._file.seek(0, 2)
        else:
            self._file = self.path.open("w" if resume or replace else "x", encoding="utf-8", newline="\n")
            self.append(start)

    def append(self, event: Mapping[str, Any]) -> None:
        """Writes one event, all of it, now."""
        self._file.write(json.dumps(event, ensure_ascii=False, allow_nan=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> RunLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def read_events(path: str | PathLike[str]) -> list[Mapping[str, Any]]:
    """The events of a run file, half a line at its end left out. Raises BadRun, OSError."""
    return [event for event, _ in _events(Path(path))]


def _events(path: Path) -> list[tuple[Mapping[str, Any], int]]:
    """Every whole event, with the offset of the byte after its line."""
    data = path.read_bytes()
    found: list[tuple[Mapping[str, Any], int]] = []
    offset = 0
    for number, line in enumerate(data.splitlines(keepends=True), 1):
        offset += len(line)
        if not line.endswith(b"\n"):
            break  # the writer was stopped in the middle of it
        found.append((_event(path, number, line), offset))
    if not found:
        raise BadRun(f"{path}:1: the file holds no run")
    return found


def _event(path: Path, number: int, line: bytes) -> Mapping[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise BadRun(f"{path}:{number}: not a JSON object: {problem}") from None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        raise BadRun(f"{path}:{number}: not an event")
    if number == 1 and (event["event"] != "start" or event.get("run_version") != RUN_VERSION):
        version = event.get("run_version")
        raise BadRun(f"{path}:1: the run's format version is {version!r}, and this LEIR reads version {RUN_VERSION}")
    return event


def _resumable(path: Path) -> list[tuple[Mapping[str, Any], int]]:
    """The whole events of an interrupted or finished run, without its end; none if not even its start was written."""
    if b"\n" not in path.read_bytes():
        return []
    return [(event, offset) for event, offset in _events(path) if event["event"] != "end"]


def _compare(path: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """The limits of the budget may be others, all else must be as it was."""
    for name in sorted({*old, *new} - {"budget", "settings", "versions"}):
        if old.get(name) != new.get(name):
            raise RunMismatch(f"{path}: the run was of another {name}: {_short(old.get(name))}, not {_short(new.get(name))}")
    before, now = _flat(old), _flat(new)
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            raise RunMismatch(f"{path}: the run had {name} {before.get(name)!r}, not {now.get(name)!r}")


def _flat(header: Mapping[str, Any]) -> dict[str, Any]:
    settings, budget = header.get("settings"), header.get("budget")
    found = dict(settings) if isinstance(settings, dict) else {}
    found["depth"] = budget.get("depth") if isinstance(budget, dict) else None
    return found


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:80] + "..."
