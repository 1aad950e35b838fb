"""Runs side by side, at equal numbers of evaluated programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from leir.files import FileFormatError, from_json
from leir.ir import Program
from leir.key import key
from leir.syntax.syntax_error import LeirSyntaxError
from llm.search.run_file import BadRun, read_events


class NotComparable(ValueError):
    """Runs of different programs, or scored by different evaluators."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a comparison needs of a run file. ``curve`` holds (evaluated programs, best seconds so far): the original at 0, each
    improvement, and the last evaluation. ``complete``: the run had nothing left to try, so more evaluations change nothing."""

    path: str
    label: str
    program: Program
    evaluator: str
    target: str
    root_seconds: float
    curve: tuple[tuple[int, float], ...]
    reason: str
    verdicts: Mapping[str, int]
    work: Mapping[str, int]
    steps: tuple[str | Mapping[str, str], ...]

    @property
    def evaluations(self) -> int:
        return self.curve[-1][0]

    @property
    def best_seconds(self) -> float:
        return self.curve[-1][1]

    @property
    def complete(self) -> bool:
        return self.reason in ("exhausted", "finished")

    def best_after(self, evaluations: int) -> float | None:
        """The best seconds after so many evaluated programs; None where the run did not come so far."""
        if evaluations > self.evaluations and not self.complete:
            return None
        return [seconds for n, seconds in self.curve if n <= evaluations][-1]


def read_run(path: str | PathLike[str]) -> Run:
    """The run in a file, finished or not. Raises BadRun, OSError."""
    events = read_events(path)
    try:
        return _run(Path(path), events)
    except (KeyError, TypeError, IndexError, FileFormatError, LeirSyntaxError) as problem:
        raise BadRun(f"{path}: an event lacks what it needs: {type(problem).__name__}: {problem}") from None


def _run(path: Path, events: Sequence[Mapping[str, Any]]) -> Run:
    start, rest = events[0], events[1:]
    if not rest or rest[0]["event"] != "root":
        raise BadRun(f"{path}: the run stopped before the original program was evaluated")
    candidates = [event for event in rest if event["event"] == "candidate"]
    end = rest[-1] if rest[-1]["event"] == "end" else {}
    root = float(rest[0]["seconds"])
    curve = _curve(root, candidates)
    settings = start["settings"]
    return Run(
        str(path),
        settings["label"],
        from_json(start["program"], str(path)),
        settings["evaluator"],
        settings["target"],
        root,
        curve,
        end.get("reason", "interrupted"),
        Counter(event["verdict"] for event in candidates),
        end.get("work", {}),
        tuple(end.get("steps", ())),
    )


def _curve(root: float, candidates: Sequence[Mapping[str, Any]]) -> tuple[tuple[int, float], ...]:
    curve = [(0, root)]
    last = 0
    for event in candidates:
        if event["evaluation"] is None:
            continue
        last, seconds = int(event["evaluation"]), event["seconds"]
        if seconds is not None and seconds < curve[-1][1]:
            curve.append((last, float(seconds)))
    if last > curve[-1][0]:
        curve.append((last, curve[-1][1]))
    return tuple(curve)


@dataclass(frozen=True, slots=True)
class Comparison:
    """``marks`` are numbers of evaluated programs: 1, 2, 5, 10, ... up to the longest run."""

    runs: tuple[Run, ...]
    marks: tuple[int, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The runs' labels; where two are the same, with their files."""
        counts = Counter(run.label for run in self.runs)
        names = [run.label if counts[run.label] == 1 else f"{run.label} ({Path(run.path).name})" for run in self.runs]
        again = Counter(names)
        return tuple(name if again[name] == 1 else f"{name} #{k}" for k, name in enumerate(names, 1))

    def table(self) -> list[list[str]]:
        """Rows of text: a heading, then one per run: best-so-far in microseconds at each mark, at its end, and the speedup."""
        rows = [["run", *map(str, self.marks), "final", "evaluated", "speedup", "ended"]]
        for label, run in zip(self.labels, self.runs, strict=True):
            cells = [_micro(run.best_after(mark)) for mark in self.marks]
            speedup = f"{run.root_seconds / run.best_seconds:.2f}x"
            rows.append([label, *cells, _micro(run.best_seconds), str(run.evaluations), speedup, run.reason])
        return rows

    def to_json(self) -> dict[str, Any]:
        return {
            "program": self.runs[0].program.name,
            "key": key(self.runs[0].program),
            "evaluator": self.runs[0].evaluator,
            "target": self.runs[0].target,
            "runs": [self._entry(label, run) for label, run in zip(self.labels, self.runs, strict=True)],
        }

    def _entry(self, label: str, run: Run) -> dict[str, Any]:
        return {
            "file": run.path,
            "label": label,
            "root_seconds": run.root_seconds,
            "best_seconds": run.best_seconds,
            "speedup": run.root_seconds / run.best_seconds,
            "evaluations": run.evaluations,
            "ended": run.reason,
            "best_after": {str(mark): run.best_after(mark) for mark in self.marks},
            "curve": [list(point) for point in run.curve],
            "verdicts": dict(sorted(run.verdicts.items())),
            "work": dict(run.work),
            "steps": list(run.steps),
        }


def compare(runs: Sequence[Run]) -> Comparison:
    """The comparison of one or more runs. Raises NotComparable."""
    first = runs[0]
    for other in runs[1:]:
        if key(other.program) != key(first.program):
            raise NotComparable(f"{first.path} and {other.path} are runs of different programs")
        if (other.evaluator, other.target) != (first.evaluator, first.target):
            ways = [f"{run.path} by {run.evaluator} for {run.target}" for run in (first, other)]
            raise NotComparable(f"the runs are scored in different ways: {', '.join(ways)}")
    return Comparison(tuple(runs), _marks(max(run.evaluations for run in runs)))


def _marks(last: int) -> tuple[int, ...]:
    marks = [digit * 10**power for power in range(len(str(last))) for digit in (1, 2, 5)]
    return tuple(mark for mark in marks if mark <= last)


def _micro(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e6:.4g}"
