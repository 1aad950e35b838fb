"""What a search may use. The unit of comparison is the evaluated program; the other limits keep a search from running on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

Stop: TypeAlias = Literal["evaluations", "seconds", "answers", "exhausted", "finished"]
"""Why a search ended: a limit of that name, nothing left to try, or (`finished`) it is the result of no search."""

ANSWERS_PER_EVALUATION = 4


@dataclass(frozen=True, slots=True)
class Used:
    """``evaluations`` counts programs whose speed was asked for, the original not among them; ``answers`` counts what a model said,
    whatever it was worth; ``seconds`` of wall-clock time."""

    evaluations: int = 0
    answers: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits. ``answers`` None means four per evaluation; ``depth`` is the greatest number of steps from the original, None any."""

    evaluations: int
    seconds: float | None = None
    answers: int | None = None
    depth: int | None = None

    @property
    def answer_limit(self) -> int:
        return ANSWERS_PER_EVALUATION * self.evaluations if self.answers is None else self.answers

    def spent(self, used: Used) -> Stop | None:
        """The first limit that ``used`` has reached."""
        if used.evaluations >= self.evaluations:
            return "evaluations"
        if used.answers >= self.answer_limit:
            return "answers"
        if self.seconds is not None and used.seconds >= self.seconds:
            return "seconds"
        return None

    def __str__(self) -> str:
        """As command-line text."""
        given = [("evaluations", self.evaluations), ("seconds", self.seconds), ("answers", self.answers), ("depth", self.depth)]
        return " ".join(f"--{name} {value}" for name, value in given if value is not None)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
