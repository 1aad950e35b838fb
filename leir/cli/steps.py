"""Commands about rewrites: steps, apply, replay."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from leir.cli.inputs import OutputFile, ProgramFile, deliver, load_program, write_text
from leir.cli.report import AsJson, BadInput, Json, emit, emit_json, end_no, note
from leir.cli.step_files import read_steps, step_of

if TYPE_CHECKING:
    from rewrite.apply import Applied
    from rewrite.enumerate import Found, Refused
    from rules.strategy import Proof, Refusal


class Target(StrEnum):
    """The machine whose limits a step must respect."""

    llvm = "llvm"
    cuda = "cuda"


TargetOption = Annotated[Target, typer.Option(help="The machine whose limits a step must respect.")]
Risky = Annotated[bool, typer.Option("--risky", help="Allow real+range: an intermediate value may overflow, vanish or absorb.")]


def steps(
    file: ProgramFile,
    strategy: Annotated[list[str] | None, typer.Option("--strategy", "-s", help="Only this strategy; may be repeated.")] = None,
    refusals: Annotated[bool, typer.Option("--refusals", help="List the illegal steps too, each with its reason.")] = False,
    proofs: Annotated[bool, typer.Option("--proofs", help="Spell out what proved each step.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="List no more than this many.")] = None,
    target: TargetOption = Target.llvm,
    risky: Risky = False,
    json: AsJson = False,
) -> None:
    """List the legal single-step rewrites of a program.

    Each line is a step as `leir apply` takes it, its rounding class, and by what each of its conditions was proved.

    Example: leir steps --strategy loop_split --refusals prog.leir
    """
    from itertools import islice

    from rewrite.enumerate import Refused, enumerate_steps
    from rewrite.step import BadStep

    program = load_program(file)
    try:
        found = list(islice(enumerate_steps(program, target.value, strategy or None, refusals=refusals, risky=risky), limit))
    except BadStep as error:
        raise BadInput(str(error)) from error
    if json:
        emit_json({"file": str(file), "target": target.value, "steps": [_entry(entry) for entry in found]})
        return
    for number, entry in enumerate(found, 1):
        emit(f"{number:4}  {_refused_text(entry) if isinstance(entry, Refused) else _found_text(entry, proofs)}")
    refused = sum(isinstance(entry, Refused) for entry in found)
    emit(f"{len(found) - refused} legal" + (f", {refused} refused" if refusals else ""))


def apply(
    file: ProgramFile,
    step: Annotated[list[str], typer.Argument(metavar="STEP...", help="A step, as leir steps prints it, or in JSON.")],
    output: OutputFile = None,
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="Write what proved the step there, in JSON.")] = None,
    target: TargetOption = Target.llvm,
    risky: Risky = False,
    json: AsJson = False,
) -> None:
    """Rewrite a program by one step, if that is legal.

    Ends with 1 if it is not, and says why.

    Example: leir apply prog.leir loop_split 0 loop=0 factor=4 -o new.leir
    """
    from rewrite.apply import apply as carry_out
    from rewrite.certificate import certify
    from rewrite.step import BadStep
    from rules.strategy import Refusal

    program = load_program(file)
    try:
        outcome = carry_out(program, step_of(" ".join(step)), target.value, risky)
    except BadStep as error:
        raise BadInput(str(error)) from error
    if isinstance(outcome, Refusal):
        _end_refused(outcome, json)
    if certificate is not None:
        write_text(certificate, _json_text(certify(outcome).to_json()))
    if json:
        emit_json(_applied(outcome))
    if output is not None or not json:
        deliver(outcome.program, output)


def replay(
    file: ProgramFile,
    steps: Annotated[Path, typer.Argument(metavar="STEPS", help="Steps or certificates, one a line, in text or JSON.")],
    output: OutputFile = None,
    target: TargetOption = Target.llvm,
    risky: Risky = False,
    json: AsJson = False,
) -> None:
    """Rewrite a program by a file of steps, one after the other.

    Ends with 1 at the first step that is not legal, or that does not lead from and to the programs of its certificate.

    Example: leir replay prog.leir steps.jsonl -o new.leir
    """
    from leir.key import key
    from rewrite.apply import replay as carry_out
    from rewrite.step import BadStep

    program = load_program(file)
    stored = read_steps(steps)
    try:
        done = carry_out(program, [entry.step for entry in stored], target.value, risky)
    except BadStep as error:
        raise BadInput(f"{steps}: {error}") from error
    for entry, applied in zip(stored, done.applied, strict=False):
        for what, expected, made in (("starts from", entry.before, applied.before), ("leads to", entry.after, applied.program)):
            if expected is not None and expected != key(made):
                raise BadInput(f"{steps}:{entry.line}: the certificate {what} {expected}, and here it is {key(made)}")
    if done.refusal is not None:
        _end_refused(done.refusal, json)
    if json:
        emit_json({"key": key(done.program), "steps": [_applied(applied) for applied in done.applied]})
    else:
        note(f"{len(done.applied)} step{'' if len(done.applied) == 1 else 's'} applied")
    if output is not None or not json:
        deliver(done.program, output)


# ----------------------------------------------------------------------------------------------------------------------- output


def _found_text(found: Found, spelled_out: bool) -> str:
    line = f"{found.step!s:52}  {found.rounding:12}  {_by(found.proofs)}"
    details = [f"\n        {p.condition} ({p.by}): {p.detail}" for p in found.proofs] if spelled_out else []
    same = [f"\n        the same: {step}" for step in found.alternatives]
    return line + "".join((*details, *same))


def _by(proofs: tuple[Proof, ...]) -> str:
    """``condition (by what)`` of every proof."""
    return ", ".join(f"{p.condition} ({p.by})" for p in proofs)


def _refused_text(refused: Refused) -> str:
    return f"{refused.step!s:52}  refused: {refused.refusal.message} [{refused.refusal.code}]"


def _end_refused(refusal: Refusal, json: bool) -> NoReturn:
    from rewrite.certificate import refusal_to_json

    if json:
        emit_json({"refused": refusal_to_json(refusal)})
    else:
        note(f"refused: {refusal.message} [{refusal.code}]")
    end_no()


def _entry(entry: Found | Refused) -> Json:
    from rewrite.certificate import refusal_to_json
    from rewrite.enumerate import Refused

    head: dict[str, Any] = {"text": str(entry.step), "step": entry.step.to_json()}
    if isinstance(entry, Refused):
        return {**head, "refused": refusal_to_json(entry.refusal)}
    return {
        **head,
        "key": entry.key,
        "rounding": entry.rounding,
        "proofs": [{"condition": p.condition, "by": p.by, "detail": p.detail} for p in entry.proofs],
        "alternatives": [str(step) for step in entry.alternatives],
    }


def _applied(applied: Applied) -> dict[str, Any]:
    from leir.files import to_json
    from rewrite.certificate import certify

    return {"program": to_json(applied.program), "certificate": certify(applied).to_json()}


def _json_text(document: Json) -> str:
    from json import dumps

    return dumps(document, indent=1, ensure_ascii=False) + "\n"
