"""The command check: what is wrong with a program, and where."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leir.cli.inputs import ProgramFile, load_program, spans_of
from leir.cli.report import AsJson, emit, emit_json, end_no

if TYPE_CHECKING:
    from leir.diagnostics import Diagnostic


class CheckTarget(StrEnum):
    """The machine that a program is checked for."""

    any = "any"
    llvm = "llvm"
    cuda = "cuda"


def check(
    file: ProgramFile,
    target: Annotated[CheckTarget, typer.Option(help="Check the limits of this target too.")] = CheckTarget.any,
    json: AsJson = False,
) -> None:
    """Check names, dtypes, bounds, definedness, scopes, limits.

    Ends with 1 if there is an error; warnings alone end with 0. docs/diagnostics.md explains every code.

    Example: leir check --target cuda prog.leir
    """
    from leir.check import check as diagnose
    from leir.diagnostics import has_errors

    program = load_program(file)
    found = diagnose(program, target=target.value, spans=spans_of(file, program))
    if json:
        emit_json({"file": str(file), "ok": not has_errors(found), "diagnostics": [d.to_json() for d in found]})
    else:
        for diagnostic in found:
            emit(diagnostic_text(diagnostic, file))
        errors = sum(d.severity == "error" for d in found)
        emit(f"{file}: {_count(errors, 'error')}, {_count(len(found) - errors, 'warning')}")
    if has_errors(found):
        end_no()


def diagnostic_text(diagnostic: Diagnostic, file: Path) -> str:
    """``file:line:column: severity[code]: message``, then the way out. The message names the point at which the fault shows."""
    separator = ":" if diagnostic.place.line is not None else ": "
    return f"{file}{separator}{diagnostic}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
