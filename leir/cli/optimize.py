"""The command optimize: the best program that an e-graph holds, by a model, and on request by measurement."""

from __future__ import annotations

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
    from llm.candidates import Measurement
    from rewrite.egraph.report import Report


class DeviceName(StrEnum):
    """What the roofline describes."""

    cpu = "cpu"
    h200 = "h200"


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
    from llm.candidates import fastest, measured, write_run
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
    measurements = measured(program, found, workers, timeout, _measured) if measure else []
    best = fastest(found, measurements)
    if output is not None:
        write_text(output, program_text(best.program, output))
    if run is not None:
        write_run(run, program, found, measurements, target.value)
    if json:
        emit_json(_json(found, measurements, best))
    else:
        emit(_told(found, measurements, best))
    if any(m.verdict == "different" for m in measurements):
        end_no()


def _progress(report: Report) -> None:
    phase = report.phases[-1]
    note(f"{phase.name}: {phase.kernels} kernels, {phase.stop}")


def _measured(done: int, of: int) -> None:
    note(f"measured {done} of {of}")


# ---------------------------------------------------------------------------------------------------------------------- telling


def _json(found: Optimized, measurements: list[Measurement], best: Measurement | Extraction) -> dict[str, Json]:
    from llm.candidates import correlation, speedup

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
    from llm.candidates import correlation, speedup

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
