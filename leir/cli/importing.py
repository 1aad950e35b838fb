"""The command import: from a PyTorch module to a program."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leir.cli.inputs import OutputFile, deliver
from leir.cli.report import AsJson, BadInput, Json, emit_json, end_no, note

if TYPE_CHECKING:
    from leir.import_torch import Import
    from leir.import_torch.report import ImportRefused


class Bind(StrEnum):
    """Which loops a GPU index takes from the start."""

    none = "none"
    first = "first"


def import_model(
    file: Annotated[Path, typer.Argument(metavar="FILE.py", help="A Python file with class Model and get_inputs().")],
    output: OutputFile = None,
    bind: Annotated[Bind, typer.Option(help="first: bind the first spatial loop of every expression to tx.")] = Bind.none,
    json: AsJson = False,
) -> None:
    """Translate a PyTorch module into a program.

    The file defines class Model, get_inputs() and, if Model takes arguments, get_init_inputs(). Its code runs in this process:
    import only files that you trust. Ends with 1 if an operator has no translation, and names each with its place.

    Example: leir import examples/softmax_matmul.py -o softmax_matmul.leir
    """
    from leir.import_torch import ImportRefused, ModelFileError, import_file

    try:
        imported = import_file(file, bind=bind.value)
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
