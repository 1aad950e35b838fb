"""Commands about one program, or two: show, check, fmt, diff."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leir.cli.inputs import ProgramFile, load_program, program_text, read_text, write_text
from leir.cli.report import AsJson, Json, emit, emit_json, end_no, note

if TYPE_CHECKING:
    from leir.ir import Item, Nest, Program


def show(file: ProgramFile, json: AsJson = False) -> None:
    """Show a program: its tensors and its expressions.

    Example: leir show prog.leir
    """
    program = load_program(file)
    if json:
        emit_json(_described(program))
    else:
        emit("\n".join(_readable(program)))


def fmt(
    file: ProgramFile,
    write: Annotated[bool, typer.Option("--write", "-w", help="Write the file in place.")] = False,
    check: Annotated[bool, typer.Option("--check", help="End with 1 if the file is not formatted.")] = False,
    json: AsJson = False,
) -> None:
    """Write a program the one way it is written.

    Example: leir fmt --write prog.leir
    """
    after = program_text(load_program(file), file)
    changed = read_text(file) != after
    if json:
        emit_json({"file": str(file), "changed": changed, "text": after})
    elif not check and not write:
        typer.echo(after, nl=False)
    if write and changed:
        write_text(file, after)
        note(f"{file}: rewritten")
    elif check and changed:
        note(f"{file}: not formatted; leir fmt --write {file}")
        end_no()


def diff(
    old: Annotated[Path, typer.Argument(metavar="A", help="A program: .leir or .json.")],
    new: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
    json: AsJson = False,
) -> None:
    """Tell what differs between two programs, item by item.

    Ends with 1 if they differ.

    Example: leir diff before.leir after.leir
    """
    from leir.diff import diff as changes_between
    from leir.diff import render, to_json
    from leir.key import key

    a, b = load_program(old), load_program(new)
    changes = changes_between(a, b)
    same_key = key(a) == key(b)
    if json:
        emit_json({"equal": not changes, "same_key": same_key, "changes": to_json(changes)})
    elif not changes:
        emit("equal")
    else:
        typer.echo(render(changes), nl=False)
        emit("same key: only names differ" if same_key else f"{len(changes)} change{'' if len(changes) == 1 else 's'}")
    if changes:
        end_no()


# ------------------------------------------------------------------------------------------------------------------------- show


def _readable(program: Program) -> list[str]:
    """The program for a reader: one line per tensor, one per loop nest and equation."""
    from leir.files import describe_tensor
    from leir.key import key

    lines = [f"{program.name or '(no name)'}  key {key(program)}", "", "tensors"]
    lines += [f"  {describe_tensor(tensor)}" for tensor in program.signature.tensors]
    temporaries = _temporaries(program)
    if temporaries:
        lines += ["temporaries", *(f"  {text}" for text in temporaries)]
    lines.append("expressions")
    for number, nest in enumerate(_flat(program)):
        lines += _item_lines(nest, (), f"{number:3}  ", "     ")
    return lines


def _item_lines(item: Item, names: tuple[str, ...], first: str, indent: str) -> list[str]:
    from leir.ir import Equation
    from leir.printer import print_equation

    if isinstance(item, Equation):
        return [f"{first}{print_equation(item, names)};"]
    loops = "".join(f"{loop.kind}^{{{loop.extent}}}_{{{loop.name}=0}}" for loop in item.schedule)
    inner = names + tuple(loop.name for loop in item.schedule)
    lines = [f"{first}{loops}["]
    for child in item.body:
        lines += _item_lines(child, inner, indent + "  ", indent + "  ")
    return [*lines, f"{indent}];"]


def _described(program: Program) -> Json:
    """The program's JSON form with what can be read off it: the key, the temporaries, the loops and sizes of each expression."""
    from math import prod

    from leir.files import to_json
    from leir.ir import equations
    from leir.key import key
    from leir.printer import print_nest

    expressions = [
        {
            "leir": print_nest(nest),
            "loops": [{"kind": loop.kind, "name": loop.name, "extent": loop.extent} for loop in nest.schedule],
            "iterations": prod(loop.extent for loop in nest.schedule),
            "equations": sum(1 for _ in equations(nest)),
        }
        for nest in _flat(program)
    ]
    return {**to_json(program), "key": key(program), "temporaries": _temporaries(program), "expressions": expressions}


def _flat(program: Program) -> tuple[Nest, ...]:
    from leir.lift import flatten_program

    return flatten_program(program)


def _temporaries(program: Program) -> list[str]:
    """``name dtype[shape] scope`` of every temporary, in order of first write; one line that says why, if no shape can be told."""
    from leir.ir import equations
    from leir.shapes import ShapeError, temporary_shapes

    flat = _flat(program)
    try:
        shapes = temporary_shapes(program.signature, flat)
    except ShapeError as problem:
        return [f"unknown shapes: {problem}"]
    tensors = {e.target.tensor.name: e.target.tensor for nest in flat for e in equations(nest)}
    return [f"{name} {tensors[name].dtype}[{','.join(map(str, shape))}] {tensors[name].scope}" for name, shape in shapes.items()]
