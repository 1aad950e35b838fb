"""The command verify: two programs, run and compared."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leir.cli.inputs import load_program
from leir.cli.report import AsJson, BadInput, emit, emit_json, end_no

if TYPE_CHECKING:
    from leir.ir import Program
    from lower.verify import Verdict

Workers = Annotated[int, typer.Option(min=1, help="Worker processes.")]
Seed = Annotated[int, typer.Option(help="Seed of the inputs that are drawn.")]
TimeLimit = Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds for one job of a worker.")]


class Rounding(StrEnum):
    """How far rounding may take the second program from the first."""

    bitwise = "bitwise"
    reassociates = "reassociates"
    real = "real"
    domain = "real+domain"
    range = "real+range"


def verify(
    first: Annotated[Path, typer.Argument(metavar="A", help="A program: .leir or .json.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another one with the same known tensors.")],
    rounding: Annotated[Rounding, typer.Option(help="bitwise: all bits agree; else: within the error bound.")] = Rounding.real,
    draws: Annotated[int, typer.Option(min=1, help="How many inputs are tried; the third has adversarial magnitudes.")] = 3,
    seed: Seed = 0,
    workers: Workers = 2,
    timeout: TimeLimit = 60.0,
    json: AsJson = False,
) -> None:
    """Run two programs and tell whether they compute the same.

    The verdict is equal, different or undecided (nothing could be compared); only equal ends with 0.

    Example: leir verify --rounding reassociates before.leir after.leir
    """
    from lower.verify import verify as compare
    from lower.workers import WorkerPool

    a, b = sound_program(first), sound_program(second)
    with WorkerPool(workers=workers, timeout_s=timeout) as pool:
        verdict = compare(a, b, pool=pool, seed=seed, draws=draws, rounding=rounding.value)
    if json:
        emit_json({"a": str(first), "b": str(second), **verdict.to_json()})
    else:
        emit(_told(verdict))
    if verdict.answer != "equal":
        end_no()


def sound_program(path: Path) -> Program:
    """A program that may be run: `leir check` finds no error in it. Raises BadInput otherwise; compiled code checks no bounds."""
    from leir.check import check, has_errors

    program = load_program(path)
    found = check(program)
    if has_errors(found):
        first = next(d for d in found if d.severity == "error")
        raise BadInput(f"{path}: {first.message} [{first.code}]", help=f"leir check {path} tells all that is wrong")
    return program


def _told(verdict: Verdict) -> str:
    lines = [verdict.answer + (f": {verdict.reason}" if verdict.reason else "")]
    lines.append(f"  compared    {verdict.compared} of {verdict.elements} elements, draws {', '.join(verdict.draws)}")
    lines.append(f"  rounding    {verdict.rounding}; largest error {verdict.max_ulp:.3g} ulp, {verdict.max_abs:.3g} absolute")
    if verdict.worst is not None and verdict.answer != "equal":
        w = verdict.worst
        place = f"{w.tensor}[{','.join(map(str, w.index))}]"
        lines.append(f"  worst       {place} of the {w.draw} draw: {w.got:.9g}, expected {w.expected:.9g} within {w.tolerance:.3g}")
    return "\n".join(lines)
