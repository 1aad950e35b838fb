"""From a model's text to a program with the same known tensors that the checker accepts, or to the verdict on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from leir.check import check_flat
from leir.files import FileFormatError, load_text
from leir.ir import Access, Nest, Program, Signature, accesses, equations
from leir.key import key
from leir.lift import flatten_program, make_program
from leir.parser import parse_nests
from leir.shapes import temporary_shapes, walk_equations
from leir.syntax.syntax_error import LeirSyntaxError
from llm.search.node import Verdict
from rules.strategy import Target


@dataclass(frozen=True, slots=True)
class Sound:
    """A program that may be run. ``work``: equations executed, and elements of temporaries."""

    program: Program
    key: str
    work: int


@dataclass(frozen=True, slots=True)
class Unsound:
    verdict: Verdict
    detail: str


def examine(text: str, signature: Signature, target: Target) -> Sound | Unsound:
    """What ``text`` writes. Can take minutes for text that is made to be hard; `llm.search.guard` bounds it."""
    nests = read_nests(text, signature)
    if isinstance(nests, Unsound):
        return nests
    problem = _signature_problem(signature, nests)
    if problem:
        return Unsound("wrong-signature", problem)
    found = check_flat(signature, nests, target=target)
    error = next((d for d in found if d.severity == "error"), None)
    if error is not None:
        return Unsound("ill-formed", f"{error.place}: {error.message} [{error.code}]")
    return sound(make_program(signature, nests))


def admit(text: str, signature: Signature) -> Sound | Unsound:
    """As `examine`, for a text that was found sound before."""
    nests = read_nests(text, signature)
    return nests if isinstance(nests, Unsound) else sound(make_program(signature, nests))


def sound(program: Program) -> Sound:
    """A program that is known to be sound, with its size."""
    flat = flatten_program(program)
    executed = sum(prod(extents) for _, extents, _ in walk_equations(flat))
    elements = sum(prod(shape) for shape in temporary_shapes(program.signature, flat).values())
    return Sound(program, key(program), executed + elements)


def read_nests(text: str, signature: Signature) -> tuple[Nest, ...] | Unsound:
    """The flat nests of a text, with or without the comment lines of a `.leir` file above it."""
    text = text.strip()
    try:
        if not text.startswith("#"):
            return parse_nests(text, name="answer").nests
        program = load_text(text, "answer.leir")
    except (LeirSyntaxError, FileFormatError) as problem:
        return Unsound("parse-error", str(problem))
    if program.signature.tensors != signature.tensors:
        return Unsound("wrong-signature", "its comment lines declare other known tensors")
    return flatten_program(program)


def _signature_problem(signature: Signature, nests: Sequence[Nest]) -> str:
    """How the text treats a known tensor as another one than it is; empty if it does not."""
    known = {t.name: t for t in signature.tensors}
    written: set[str] = set()
    for nest in nests:
        for equation in equations(nest):
            written.add(equation.target.tensor.name)
            for access in (*accesses(equation.target), *accesses(equation.value)):
                tensor = known.get(access.tensor.name)
                if tensor is not None and (problem := _access_problem(access, tensor.dtype, len(tensor.shape))):
                    return problem
    changed = [t.name for t in signature.tensors if t.role != "output" and t.name in written]
    if changed:
        return f"it writes {changed[0]}, which is no output"
    missing = [t.name for t in signature.outputs if t.name not in written]
    return f"it never writes the output {missing[0]}" if missing else ""


def _access_problem(access: Access, dtype: str, rank: int) -> str:
    tensor = access.tensor
    if tensor.dtype != dtype:
        return f"{tensor.name} is {dtype}, not {tensor.dtype}"
    if tensor.scope != "g":
        return f"{tensor.name} is in global memory, not in scope {tensor.scope}"
    if len(access.subscripts) != rank:
        return f"{tensor.name} has {rank} dimensions, not {len(access.subscripts)}"
    return ""
