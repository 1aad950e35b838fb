"""Reading what a command's arguments name, and writing what it makes. What cannot be read or written is `BadInput`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leir.cli.report import BadInput

if TYPE_CHECKING:
    from leir.ir import Program
    from leir.syntax.spans import SpanTable

ProgramFile = Annotated[Path, typer.Argument(metavar="FILE", help="A program: .leir or .json.")]
OutputFile = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write there instead of the terminal.")]


def read_text(path: Path) -> str:
    """The text of a file. Raises BadInput where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 text (byte {error.start})") from error


def write_text(path: Path, text: str) -> None:
    """Writes a file. Raises BadInput where that is impossible."""
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error


def load_program(path: Path) -> Program:
    """The program in a file. Raises BadInput where it cannot be read."""
    from leir.files import FileFormatError, load
    from leir.syntax.syntax_error import LeirSyntaxError

    try:
        return load(path)
    except (FileFormatError, LeirSyntaxError) as error:
        raise BadInput(str(error)) from error
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error


def program_text(program: Program, path: Path) -> str:
    """The content of a file for ``program``; the suffix of ``path`` decides the format. Raises BadInput for another one."""
    from leir.files import to_json, to_leir

    match path.suffix:
        case ".leir":
            return to_leir(program)
        case ".json":
            return json.dumps(to_json(program), indent=1) + "\n"
        case suffix:
            raise BadInput(f"{path}: the suffix {suffix!r} is none of .leir and .json", help="name the file so")


def deliver(program: Program, output: Path | None) -> None:
    """A program that a command made: to the file that ``--output`` names, else to the terminal as `.leir`."""
    if output is None:
        typer.echo(program_text(program, Path("-.leir")), nl=False)
    else:
        write_text(output, program_text(program, output))
        typer.echo(f"{output}: written", err=True)


def program_text_in(path: Path, program: Program) -> str:
    """The program's own text as it stands in ``path``: in a `.leir` file at the file's line numbers, of a `.json` file line 1."""
    from leir.printer import print_program

    if path.suffix != ".leir":
        return print_program(program)
    return "\n".join("" if line.startswith("#") else line for line in read_text(path).split("\n"))


def spans_of(path: Path, program: Program) -> SpanTable:
    """Where the parts of the program in ``path`` stand; see `program_text_in`."""
    from leir.parser import parse_nests

    return parse_nests(program_text_in(path, program), name=str(path)).spans
