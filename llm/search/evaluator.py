"""How fast is a program? By a cost model, or by the clock after verification. Both remember what they were asked."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Protocol

from leir.ir import Program
from llm.search.node import Score
from rules.strategy import Rounding, Target

if TYPE_CHECKING:
    from lower.verify import Verifier


class Evaluator(Protocol):
    """Scores programs; ``name`` says by what, and two runs can be compared only when it is the same."""

    @property
    def name(self) -> str: ...

    def evaluate(self, program: Program, key: str, rounding: Rounding) -> Score:
        """The score of ``program``, whose key is ``key`` and which is equal to the original up to ``rounding``."""
        ...


class Modelled:
    """Seconds by a cost model, which raises ValueError for a program that it has no cost for."""

    def __init__(self, cost: Callable[[Program], float], name: str) -> None:
        self.name = f"model {name}"
        self._cost = cost
        self._scores: dict[str, Score] = {}

    @property
    def asked(self) -> int:
        """How many different programs the model was asked about."""
        return len(self._scores)

    def evaluate(self, program: Program, key: str, rounding: Rounding = "bitwise") -> Score:
        score = self._scores.get(key)
        if score is None:
            score = self._scores[key] = self._score(program)
        return score

    def _score(self, program: Program) -> Score:
        try:
            seconds = self._cost(program)
        except ValueError as problem:
            return Score(None, "failed", str(problem))
        return Score(seconds) if isfinite(seconds) else Score(None, "failed", f"the model says {seconds}")


class Measured:
    """Seconds on this machine, of programs that execution found equal to ``root``."""

    def __init__(self, root: Program, verifier: Verifier) -> None:
        self.name = "measure llvm"
        self.root = root
        self.verifier = verifier
        self._scores: dict[str, Score] = {}

    def evaluate(self, program: Program, key: str, rounding: Rounding) -> Score:
        score = self._scores.get(key)
        if score is None:
            score = self._scores[key] = self._score(program, rounding)
        return score

    def _score(self, program: Program, rounding: Rounding) -> Score:
        from lower.outcome import Timing
        from lower.verify import measure

        verdict = self.verifier.verify(self.root, program, rounding)
        if verdict.answer != "equal":
            return Score(None, verdict.answer, verdict.reason)
        timing = measure(program, pool=self.verifier.pool, seed=self.verifier.seed)
        if isinstance(timing, Timing):
            return Score(timing.median_s)
        return Score(None, "failed", f"{timing.status}: {timing.message}")


def roofline(target: Target, device: str | None = None) -> Modelled:
    """The roofline model of `extract`: for ``device``, a name or a path of a description; by default for this CPU, or for an H200
    where the target is cuda. Raises DeviceError of `extract.device`."""
    from extract.device import load, this_cpu
    from extract.roofline import cost

    machine = load(device or "h200") if device is not None or target == "cuda" else this_cpu()
    return Modelled(lambda program: cost(program, machine).seconds, f"roofline {machine.name}")
