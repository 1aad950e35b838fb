"""The command ``leir``.

A command is a function with annotated parameters in one of the modules of this package, and `COMMANDS` is their list. Those
modules import typer and `leir.cli.report` at the top, and everything else inside their functions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from leir.cli import catalogue, checking, dataset, demo, execution, importing, machine, optimize, program, search, steps
from leir.cli.report import BAD_INPUT, BadInput

Command = Callable[..., None]

# In the order of the data flow, which is the order of `leir --help`.
COMMANDS: tuple[tuple[str, Command], ...] = (
    ("import", importing.import_file),
    ("show", program.show),
    ("check", checking.check),
    ("fmt", program.fmt),
    ("diff", program.diff),
    ("steps", steps.steps),
    ("apply", steps.apply),
    ("replay", steps.replay),
    ("verify", execution.verify),
    ("optimize", optimize.optimize),
    ("search", search.search),
    ("compare", search.compare),
    ("dataset", dataset.dataset),
    ("strategies", catalogue.strategies),
    ("doctor", machine.doctor),
    ("demo", demo.demo),
)


def build() -> typer.Typer:
    """The application with all commands."""
    app = typer.Typer(
        name="leir",
        help="LEIR, the loop-equation IR: from PyTorch to verified, timed, single-step rewrites.",
        epilog="Files end in .leir (text) or .json. Exit codes: 0 done or yes, 1 checked and no, 2 unusable input.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,  # plain help: rich would cost half of the start-up budget
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    app.callback()(_leir)
    for name, command in COMMANDS:
        app.command(name, no_args_is_help=False)(command)
    return app


def main() -> None:
    """Entry point of the console script. A user's mistake ends with one message and exit code 2, never with a traceback."""
    try:
        build()()
    except BadInput as error:
        typer.echo(str(error), err=True)
        sys.exit(BAD_INPUT)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"leir {version('leir')}")
        raise typer.Exit


def _leir(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Options of `leir` itself."""
