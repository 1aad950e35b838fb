"""The command optimize: the best program that an e-graph holds, by a model, and on request by measurement."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leir.cli.execution import TimeLimit, Workers, sound_program
from leir.cli.inputs import ProgramFile, program_text, write_text
from leir.cli.report import AsJson, BadInput, Json, emit, emit_json, end_no, note
from leir.cli.steps import Target, TargetOption

if TYPE_CHECKING:
    from extract.extraction import Extraction
    from extract.optimize import Optimized
    from leir.ir import Program
    from rewrite.apply import Applied
    from rewrite.egraph.report import Report

MEASURED = 12
"""How many programs are measured at most."""


class DeviceName(StrEnum):
    """What the roofline describes."""

    cpu = "cpu"
    h200 = "h200"


@dataclass(frozen=True, slots=True)
class Measurement:
    """A candidate beside its measured time; ``verdict`` is that of the execution against the original."""

    program: Program
    steps: tuple[Applied, ...]
    modelled_s: float
    measured_s: float | None
    verdict: str


def optimize(
    file: ProgramFile,
    device: Annotated[DeviceName, typer.Option(help="Whose roofline counts; cpu is this machine.")] = DeviceName.cpu,
    target: TargetOption = Target.llvm,
    budget: Annotated[float, typer.Option(min=1, help="Seconds for saturation and extraction.")] = 30.0,
    strategy: Annotated[list[str] | None, typer.Option("--strategy", "-s", help="Only these (repeatable).")] = None,
    measure: Annotated[bool, typer.Option("--measure", help="Verify and time the candidates; the fastest measured wins.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the best program there.")] = None,
    run: Annotated[Path | None, typer.Option("--run", metavar="RUN", help="Write a run file for leir compare.")] = None,
    workers: Workers = 2,
    timeout: TimeLimit = 60.0,
    json: AsJson = False,
) -> None:
    """Extract the best program from the saturated e-graph.

    Saturation applies every strategy to the cheapest kernels of each class, in a process with limits on time and memory, and says
    why it stopped. The result is replayed as checked steps from the original. With --measure the candidates are run: each must
    compute the same, and the rank correlation of model and measurement is printed. Ends with 1 if one computes something else.

    Example: leir optimize prog.leir --budget 30 --measure -o best.leir
    """
    from extract.optimize import optimize as find
    from rewrite.apply import implemented
    from rewrite.step import BadStep

    program = sound_program(file)
    for name in strategy or ():
        try:
            implemented(name)
        except BadStep as error:
            raise BadInput(str(error)) from error
    found = find(program, device.value, target.value, budget_s=budget, strategies=strategy, progress=_progress)
    if found.report.outcome in ("crashed", "out-of-memory", "not-checked"):
        note(f"saturation: {found.report.outcome}: {found.report.detail}")
    measurements = measured(program, found, workers, timeout) if measure else []
    best = fastest(found, measurements)
    if output is not None:
        write_text(output, program_text(best.program, output))
    if run is not None:
        write_run(run, program, found, measurements, target)
    if json:
        emit_json(_json(found, measurements, best))
    else:
        emit(_told(found, measurements, best))
    if any(m.verdict == "different" for m in measurements):
        end_no()


def _progress(report: Report) -> None:
    phase = report.phases[-1]
    note(f"{phase.name}: {phase.kernels} kernels, {phase.stop}")


# --------------------------------------------------------------------------------------------------------------------- measuring


def candidates(found: Optimized) -> list[tuple[tuple[Applied, ...], Program]]:
    """What is worth measuring: the extracted programs, and those on the way to the best one, without repetition."""
    best = found.best
    chosen: list[tuple[tuple[Applied, ...], Program]] = [(c.steps, c.program) for c in found.candidates]
    chosen += [(best.steps[: k + 1], applied.program) for k, applied in enumerate(best.steps)]
    seen: dict[tuple[object, ...], tuple[tuple[Applied, ...], Program]] = {}
    for steps, program in chosen:
        seen.setdefault(program.nests, (steps, program))
    return list(seen.values())[:MEASURED]


def measured(program: Program, found: Optimized, workers: int, timeout: float) -> list[Measurement]:
    """The candidates of ``found``, verified against ``program`` and timed, in the order of `candidates`."""
    from extract.roofline import cost
    from lower.outcome import Timing
    from lower.verify import Verifier, measure
    from lower.workers import WorkerPool
    from rules.rounding import loosest

    chosen = candidates(found)
    measurements = []
    with WorkerPool(workers=workers, timeout_s=timeout) as pool:
        verifier = Verifier(pool)
        verdicts = verifier.verify_many(program, [(p, loosest(a.rounding for a in steps)) for steps, p in chosen])
        for (steps, candidate), verdict in zip(chosen, verdicts, strict=True):
            timing = measure(candidate, pool=pool)
            seconds = timing.median_s if isinstance(timing, Timing) else None
            measurements.append(Measurement(candidate, steps, cost(candidate, found.device).seconds, seconds, verdict.answer))
            note(f"measured {len(measurements)} of {len(chosen)}")
    return measurements


def fastest(found: Optimized, measurements: list[Measurement]) -> Measurement | Extraction:
    """What is given out: by measurement, where only what was found equal counts; else by the model."""
    sound = [m for m in measurements if m.measured_s is not None and m.verdict == "equal"]
    if sound:
        return min(sound, key=lambda m: m.measured_s or 0.0)
    return found.original if measurements else found.best


def correlation(measurements: list[Measurement]) -> float | None:
    """Spearman's rank correlation of model and measurement."""
    from extract.correlation import spearman

    timed = [(m.modelled_s, m.measured_s) for m in measurements if m.measured_s is not None]
    return spearman([a for a, _ in timed], [b for _, b in timed])


def speedup(measurements: list[Measurement]) -> float | None:
    """The original's measured time over that of the fastest program found equal."""
    original = next((m.measured_s for m in measurements if not m.steps), None)
    fastest = min((m.measured_s for m in measurements if m.measured_s and m.verdict == "equal"), default=None)
    return original / fastest if original and fastest else None


# ---------------------------------------------------------------------------------------------------------------------- telling


def write_run(path: Path, program: Program, found: Optimized, measurements: list[Measurement], target: Target) -> None:
    """A run file of what was extracted, scored by measurement where there are any, else by the model of whole programs, as
    searches are."""
    from extract.roofline import cost
    from llm.search.node import Score
    from llm.search.result import Reached, write_result
    from rules.rounding import loosest

    reached = []
    evaluator, root = f"model roofline {found.device.name}", cost(program, found.device).seconds
    if measurements:
        evaluator = f"measure {target.value}"
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
        target=target.value,
        seconds=found.report.seconds,
        work={"modelled": found.original.considered},
    )


def _json(found: Optimized, measurements: list[Measurement], best: Measurement | Extraction) -> dict[str, Json]:
    rows: list[Json] = [
        {
            "steps": [str(a.step) for a in m.steps],
            "modelled_s": m.modelled_s,
            "measured_s": m.measured_s,
            "verdict": m.verdict,
        }
        for m in measurements
    ]
    return {
        "device": found.device.name,
        "saturation": found.report.to_json(),
        "original_s": found.original.cost,
        "extracted_s": found.best.cost,
        "considered": found.original.considered,
        "discarded": dict(found.original.discarded),
        "steps": [a.step.to_json() for a in best.steps],
        "measured": rows,
        "speedup": speedup(measurements),
        "spearman": correlation(measurements),
    }


def _told(found: Optimized, measurements: list[Measurement], best: Measurement | Extraction) -> str:
    from extract.roofline import time_text

    report, original = found.report, found.original
    lines = [f"saturation: {report.outcome} after {report.seconds:.1f} s{': ' if report.detail else ''}{report.detail}"]
    lines += [f"  {p.name:12} {p.stop:16} {p.kernels:6} kernels {p.seconds:6.1f} s" for p in report.phases]
    lines.append(
        f"extraction: {original.considered} choices costed, {original.discarded.total()} made no program or did not replay; by the "
        f"roofline of {found.device.name} {time_text(original.cost)} becomes {time_text(found.best.cost)}"
    )
    lines += [_row(c) for c in found.candidates]
    if measurements:
        lines.append("measured (model, measured, verdict, steps):")
        for m in sorted(measurements, key=lambda m: m.measured_s or float("inf")):
            measured = time_text(m.measured_s) if m.measured_s is not None else "not run"
            lines.append(f"  {time_text(m.modelled_s):>10} {measured:>10}  {m.verdict:10} {len(m.steps)} steps")
        gained, rank = speedup(measurements), correlation(measurements)
        lines.append(f"speedup over the original: {'unknown' if gained is None else f'{gained:.2f}x'}")
        lines.append(
            f"Spearman correlation of model and measurement over {len(measurements)} programs: "
            + ("undefined" if rank is None else f"{rank:.2f}")
        )
    lines.append(f"steps from the original ({len(best.steps)}):")
    lines += [f"  {a.step}" for a in best.steps] or ["  none: the original is the best"]
    return "\n".join(lines)


def _row(candidate: Extraction) -> str:
    from extract.roofline import time_text

    return f"  {time_text(candidate.cost):>10}  {len(candidate.steps)} steps"
