"""What comes back from building, running and timing. Plain data, without TVM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Status: TypeAlias = Literal["ok", "refused", "build-error", "run-error", "timeout", "out-of-memory", "crash"]


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds per call. ``spread`` is the distance between the quartiles over the median, ``calls`` how many were timed."""

    median_s: float
    spread: float
    fastest_s: float
    calls: int
    build_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended.

    ``ok``: ``value`` is the result. Otherwise ``message`` says what happened:
    ``refused`` (lowering has no form for the program), ``build-error`` and ``run-error`` (an exception while building, while
    running), ``timeout`` (the worker was killed), ``out-of-memory``, ``crash`` (the worker died: a signal, or LLVM gave up).
    """

    status: Status
    value: Any = None
    message: str = ""

    @property
    def ok(self) -> bool:
        return self.status == "ok"
