"""The command dataset: rows for training, from verified steps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leir.cli.execution import Seed, TimeLimit, Workers, sound_program
from leir.cli.report import AsJson, BadInput, emit, emit_json, note
from leir.cli.steps import Target, TargetOption


def dataset(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Programs: .leir or .json.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The rows, as JSON lines.")] = Path("rows.jsonl"),
    per_strategy: Annotated[int, typer.Option(min=0, help="Steps of each strategy and program; 0: all.")] = 4,
    seed: Seed = 0,
    workers: Workers = 2,
    timeout: TimeLimit = 60.0,
    target: TargetOption = Target.llvm,
    json: AsJson = False,
) -> None:
    """Write dataset rows: one chat per step that verified.

    Steps are sampled by the seed, verified by execution, and written in the order of enumeration, so that the same call gives the
    same bytes for any number of workers. Steps that did not verify are counted and named.

    Example: leir dataset prog.leir --per-strategy 2 -o rows.jsonl
    """
    from llm.dataset import Sampling, write_rows
    from lower.verify import Verifier
    from lower.workers import WorkerPool

    programs = [sound_program(file) for file in files]
    sampling = Sampling(seed, per_strategy or None)
    try:
        with WorkerPool(workers=workers, timeout_s=timeout) as pool:
            account = write_rows(output, programs, Verifier(pool, seed=seed), sampling, target.value)
    except OSError as error:
        raise BadInput(f"{output}: {error.strerror}") from error
    for reason in account.reasons:
        note(f"left out: {reason}")
    if json:
        emit_json(
            {
                "file": str(output),
                "rows": account.rows,
                "by_strategy": dict(account.by_strategy),
                "left_out": dict(account.left_out),
                "reasons": account.reasons,
            }
        )
    else:
        for strategy, count in account.by_strategy.items():
            emit(f"{count:6}  {strategy}")
        emit(f"{account.rows:6}  rows written to {output}")
