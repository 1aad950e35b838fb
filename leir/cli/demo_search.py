"""The second half of the demo: the best program of the e-graph, and searches beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leir.cli.inputs import program_text, write_text

if TYPE_CHECKING:
    from leir.ir import Program

SATURATION_S = 6.0
EVALUATIONS = 40


@dataclass(frozen=True, slots=True)
class Sought:
    """The files that were written, and the speedups by the model: of the extracted program, and of each search."""

    files: tuple[Path, ...]
    speedups: dict[str, float]
    measured_speedup: float | None
    sound: bool


def seek(program: Program, folder: Path, workers: int, tell: Callable[[str], None]) -> Sought:
    """Extract, search, compare; everything goes to ``folder``."""
    from extract.optimize import optimize
    from llm.candidates import correlation, fastest, measured, speedup, write_run

    folder.mkdir(parents=True, exist_ok=True)
    tell("\n6. The best program that the e-graph holds, by the roofline of this CPU; candidates verified and timed")
    found = optimize(program, budget_s=SATURATION_S)
    tell(f"   saturation ended: {found.report.outcome}, {found.report.phases[-1].kernels} kernels")
    measurements = measured(program, found, workers, 60.0)
    best = fastest(found, measurements)
    for m in sorted(measurements, key=lambda m: m.measured_s or float("inf")):
        seconds = "not run" if m.measured_s is None else f"{m.measured_s * 1e6:8.1f} us"
        tell(f"   model {m.modelled_s * 1e6:8.1f} us, measured {seconds}, {m.verdict}, {len(m.steps)} steps")
    gained, rank = speedup(measurements), correlation(measurements)
    tell(f"   {'unknown' if gained is None else f'{gained:.2f}x'} faster than the original, by these steps:")
    for applied in best.steps:
        tell(f"      {applied.step}")
    tell(f"   rank correlation of model and measurement: {'undefined' if rank is None else f'{rank:.2f}'}")

    files = [folder / "best.leir", folder / "extracted.jsonl"]
    write_text(files[0], program_text(best.program, files[0]))
    write_run(files[1], program, found, [], "llvm")
    tell(f"\n7. Searches by the same model, {EVALUATIONS} programs evaluated each, beside the extracted program")
    files += _searches(program, folder)
    speedups = _compared(files[1:], folder / "search.svg", tell)
    sound = all(m.verdict == "equal" for m in measurements)
    return Sought((*files, folder / "search.svg"), speedups, gained, sound)


def _searches(program: Program, folder: Path) -> list[Path]:
    from llm.search.algorithms import ALGORITHMS
    from llm.search.budget import Budget
    from llm.search.evaluator import roofline
    from llm.search.policy import Policy, RooflineGreedy, Uniform
    from llm.search.run_file import RunLog, header
    from llm.search.search import Search

    files = []
    model = roofline("llvm")
    policies: tuple[tuple[str, str, Policy], ...] = (
        ("greedy-uniform", "greedy", Uniform(0)),
        ("beam-roofline", "beam", RooflineGreedy(roofline("llvm"))),
    )
    budget = Budget(EVALUATIONS)
    for label, algorithm, policy in policies:
        path = folder / f"{label}.jsonl"
        settings = {"label": label, "algorithm": algorithm, "policy": policy.settings, "evaluator": model.name, "target": "llvm"}
        with RunLog(path, header(program, settings, budget), replace=True) as log:
            Search(program, policy, model, budget, target="llvm", width=2, branch=8, log=log).run(ALGORITHMS[algorithm])
        files.append(path)
    return files


def _compared(runs: list[Path], plot: Path, tell: Callable[[str], None]) -> dict[str, float]:
    from leir.cli.search import columns
    from llm.search.comparison import compare, read_run
    from llm.search.plot import plot_curves

    read = [read_run(path) for path in runs]
    comparison = compare(read)
    tell("   best so far in microseconds, after so many evaluated programs (for the extracted one: that were replayed and kept;")
    tell("   the e-graph priced its kernels by the same model before that)")
    for line in columns(comparison.table()):
        tell(f"   {line}")
    curves = {label: run.curve for label, run in zip(comparison.labels, read, strict=True)}
    plot_curves(curves, plot, f"{read[0].program.name}: best so far by the roofline of this CPU")
    return {label: curve[0][1] / curve[-1][1] for label, curve in curves.items()}
