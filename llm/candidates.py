"""What an extraction found, measured: verified against the original and timed, the fastest given out, a run file written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from extract.correlation import spearman
from extract.extraction import Extraction
from extract.optimize import Optimized
from extract.roofline import cost
from leir.ir import Program
from llm.search.node import Score
from llm.search.result import Reached, write_result
from lower.outcome import Timing
from lower.verify import Verifier, measure
from lower.workers import WorkerPool
from rewrite.apply import Applied
from rules.rounding import loosest
from rules.strategy import Target

MEASURED = 12
"""How many programs are measured at most."""


def _silent(done: int, of: int) -> None:
    """Progress that nobody hears."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A candidate beside its measured time; ``verdict`` is that of the execution against the original."""

    program: Program
    steps: tuple[Applied, ...]
    modelled_s: float
    measured_s: float | None
    verdict: str


def candidates(found: Optimized) -> list[tuple[tuple[Applied, ...], Program]]:
    """What is worth measuring: the extracted programs, and those on the way to the best one, without repetition."""
    best = found.best
    chosen: list[tuple[tuple[Applied, ...], Program]] = [(c.steps, c.program) for c in found.candidates]
    chosen += [(best.steps[: k + 1], applied.program) for k, applied in enumerate(best.steps)]
    seen: dict[tuple[object, ...], tuple[tuple[Applied, ...], Program]] = {}
    for steps, program in chosen:
        seen.setdefault(program.nests, (steps, program))
    return list(seen.values())[:MEASURED]


def measured(
    program: Program, found: Optimized, workers: int, timeout: float, progress: Callable[[int, int], None] = _silent
) -> list[Measurement]:
    """The candidates of ``found``, verified against ``program`` and timed, in the order of `candidates`.

    ``timeout`` is in seconds, per job; ``progress`` hears how many of how many are measured.
    """
    chosen = candidates(found)
    measurements = []
    with WorkerPool(workers=workers, timeout_s=timeout) as pool:
        verifier = Verifier(pool)
        verdicts = verifier.verify_many(program, [(p, loosest(a.rounding for a in steps)) for steps, p in chosen])
        for (steps, candidate), verdict in zip(chosen, verdicts, strict=True):
            timing = measure(candidate, pool=pool)
            seconds = timing.median_s if isinstance(timing, Timing) else None
            measurements.append(Measurement(candidate, steps, cost(candidate, found.device).seconds, seconds, verdict.answer))
            progress(len(measurements), len(chosen))
    return measurements


def fastest(found: Optimized, measurements: Sequence[Measurement]) -> Measurement | Extraction:
    """What is given out: by measurement, where only what was found equal counts; else by the model."""
    sound = [m for m in measurements if m.measured_s is not None and m.verdict == "equal"]
    if sound:
        return min(sound, key=lambda m: m.measured_s or 0.0)
    return found.original if measurements else found.best


def correlation(measurements: Sequence[Measurement]) -> float | None:
    """Spearman's rank correlation of model and measurement."""
    timed = [(m.modelled_s, m.measured_s) for m in measurements if m.measured_s is not None]
    return spearman([a for a, _ in timed], [b for _, b in timed])


def speedup(measurements: Sequence[Measurement]) -> float | None:
    """The original's measured time over that of the fastest program found equal."""
    original = next((m.measured_s for m in measurements if not m.steps), None)
    fastest = min((m.measured_s for m in measurements if m.measured_s and m.verdict == "equal"), default=None)
    return original / fastest if original and fastest else None


def write_run(path: Path, program: Program, found: Optimized, measurements: Sequence[Measurement], target: Target) -> None:
    """A run file of what was extracted, scored by measurement where there are any, else by the model of whole programs, as
    searches are."""
    reached = []
    evaluator, root = f"model roofline {found.device.name}", cost(program, found.device).seconds
    if measurements:
        evaluator = f"measure {target}"
        root = next((m.measured_s for m in measurements if not m.steps and m.measured_s), root)
        entries = [(m.program, m.steps, m.measured_s) for m in measurements if m.steps and m.verdict == "equal" and m.measured_s]
    else:
        entries = [(c.program, c.steps, cost(c.program, found.device).seconds) for c in found.candidates if c.steps]
    for candidate, steps, seconds in entries:
        rounding = loosest(a.rounding for a in steps)
        reached.append(Reached(candidate, tuple(a.step for a in steps), rounding, Score(seconds)))
    write_result(
        path,
        program,
        root,
        reached,
        label="extracted",
        evaluator=evaluator,
        target=target,
        seconds=found.report.seconds,
        work={"modelled": found.original.considered},
    )
