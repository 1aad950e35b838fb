"""The command import: from a PyTorch module, or from LEIR that another tool wrote, to a program."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leir.cli.checking import diagnostic_text
from leir.cli.inputs import OutputFile, deliver, load_program, program_text_in
from leir.cli.report import AsJson, BadInput, Json, emit_json, end_no, note

if TYPE_CHECKING:
    from leir.import_torch import Import
    from leir.import_torch.report import ImportRefused


class Bind(StrEnum):
    """Which loops a GPU index takes from the start."""

    none = "none"
    first = "first"


def import_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="FILE.py with class Model and get_inputs(); or .leir, .json.")],
    output: OutputFile = None,
    bind: Annotated[Bind, typer.Option(help="FILE.py; first: bind the first spatial loop of every expression to tx.")] = Bind.none,
    demote: Annotated[bool, typer.Option("--demote", help="Foreign LEIR: make bound loops that carry a reduction serial.")] = False,
    json: AsJson = False,
) -> None:
    """Translate a PyTorch module or foreign LEIR into a program.

    FILE.py defines class Model, get_inputs() and, if Model takes arguments, get_init_inputs(). Its code runs in this process:
    import only files that you trust. Ends with 1 if an operator has no translation, and names each with its place.

    LEIR that another tool wrote (.leir, .json) gets the casts that it lacks; every change is reported, with what else the checker
    finds. Ends with 1 if an error remains.

    Example: leir import examples/softmax_matmul.py -o softmax_matmul.leir
    """
    if file.suffix == ".py":
        _import_model(file, output, bind, json)
    else:
        _import_foreign(file, output, demote, json)


def _import_model(file: Path, output: Path | None, bind: Bind, json: bool) -> None:
    from leir.import_torch import ImportRefused, ModelFileError
    from leir.import_torch import import_file as translate

    try:
        imported = translate(file, bind=bind.value)
    except ModelFileError as error:
        raise BadInput(str(error)) from error
    except ImportRefused as refusal:
        if json:
            emit_json(_refused(refusal))
        else:
            note(f"refused: {refusal}")
        end_no()
    if json:
        emit_json(_imported(imported))
    if output is not None or not json:
        deliver(imported.program, output)


def _import_foreign(file: Path, output: Path | None, demote: bool, json: bool) -> None:
    from leir.diagnostics import has_errors
    from leir.files import to_json
    from leir.repair import import_text

    foreign = load_program(file)
    program, found = import_text(program_text_in(file, foreign), foreign.signature, demote=demote, source=str(file))
    failed = has_errors(found)
    if json:
        emit_json({"imported": not failed, "program": to_json(program), "diagnostics": [d.to_json() for d in found]})
    else:
        for diagnostic in found:
            note(diagnostic_text(diagnostic, file))
    if not failed and (output is not None or not json):
        deliver(program, output)
    if failed:
        end_no()


def _imported(imported: Import) -> Json:
    from leir.files import to_json

    return {
        "imported": True,
        "program": to_json(imported.program),
        "inputs": list(imported.inputs),
        "outputs": list(imported.outputs),
        "bindings": dict(imported.bindings),
    }


def _refused(refusal: ImportRefused) -> Json:
    reasons = [
        {"op": r.op, "module_path": r.module_path, "shapes": list(r.shapes), "reason": r.reason, "line": r.line}
        for r in refusal.reasons
    ]
    return {"imported": False, "module": refusal.module, "reasons": reasons}
