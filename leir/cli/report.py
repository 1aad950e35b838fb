"""What all commands share: exit codes, the error message, JSON output.

Exit codes: 0 done, and the answer is yes; 1 checked, and the answer is no; 2 the input cannot be used.
Results go to standard output, everything else to standard error. With ``--json`` standard output holds one JSON document.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, NoReturn, TypeAlias

import typer

NO = 1
BAD_INPUT = 2

Json: TypeAlias = Mapping[str, "Json"] | Sequence["Json"] | str | int | float | bool | None

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


class BadInput(Exception):
    """The input cannot be used. The message starts with the place: a file, perhaps a line and a column."""

    def __init__(self, message: str, *, help: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.help = help

    def __str__(self) -> str:
        return f"error: {self.message}" + (f"\n  help: {self.help}" if self.help else "")


def emit(text: str) -> None:
    """One line or block of the result."""
    typer.echo(text)


def emit_json(document: Json) -> None:
    """The result as one JSON document, keys in the order given."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def note(text: str) -> None:
    """Something for the person at the terminal, not part of the result."""
    typer.echo(text, err=True)


def end_no() -> NoReturn:
    """Ends the command with exit code 1: the work was done, and the answer is no."""
    raise typer.Exit(NO)
