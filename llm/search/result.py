"""A result that no search found, such as an extracted program, as a run file, so that it can be compared with searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike

from leir.files import to_json
from leir.ir import Program
from leir.key import key
from leir.printer import print_program
from llm.search.budget import Budget
from llm.search.node import Score
from llm.search.run_file import RunLog, header
from rewrite.step import Step
from rules.strategy import Rounding, Target


@dataclass(frozen=True, slots=True)
class Reached:
    """A program, the legal steps that lead to it from the original, their widest rounding class, and its score."""

    program: Program
    steps: tuple[Step, ...]
    rounding: Rounding
    score: Score


def write_result(
    path: str | PathLike[str],
    program: Program,
    root_seconds: float,
    reached: Sequence[Reached],
    *,
    label: str,
    evaluator: str,
    target: Target = "llvm",
    seconds: float = 0.0,
    work: Mapping[str, int] | None = None,
) -> None:
    """Writes a finished run whose evaluated programs are ``reached``, in that order, and whose result is the fastest of them.

    ``evaluator`` is the name of the one that gave all scores (`llm.search.evaluator`); ``seconds`` is how long it all took. An
    existing file is replaced.
    """
    settings = {"label": label, "algorithm": label, "evaluator": evaluator, "target": target}
    best = min((r for r in reached if r.score.seconds is not None), key=lambda r: r.score.seconds or 0.0, default=None)
    if best is None or (best.score.seconds or 0.0) >= root_seconds:
        best = Reached(program, (), "bitwise", Score(root_seconds))
    with RunLog(path, header(program, settings, Budget(len(reached))), replace=True) as log:
        log.append({"event": "root", "seconds": root_seconds, "elapsed_s": 0.0})
        for number, entry in enumerate(reached, 1):
            log.append(_candidate(number, entry))
        log.append(
            {
                "event": "end",
                "reason": "finished",
                "evaluations": len(reached),
                "work": dict(work or {}),
                "root_seconds": root_seconds,
                "seconds": best.score.seconds,
                "steps": [str(step) for step in best.steps],
                "rounding": best.rounding,
                "key": key(best.program),
                "program": to_json(best.program),
                "elapsed_s": round(seconds, 3),
            }
        )


def _candidate(number: int, entry: Reached) -> dict[str, object]:
    return {
        "event": "candidate",
        "evaluation": number,
        "verdict": "legal-step",
        "steps": [str(step) for step in entry.steps],
        "leir": print_program(entry.program),
        "key": key(entry.program),
        "rounding": entry.rounding,
        "seconds": entry.score.seconds,
        "status": entry.score.status,
        "score_detail": entry.score.detail,
    }
