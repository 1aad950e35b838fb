"""Steps in tests: every program that a step makes passes the checker, is in normal form, and carries the `init` of its text."""

from __future__ import annotations

from inspect import cleandoc

from leir.check import check
from leir.files import load_text
from leir.initial import derive
from leir.ir import Program
from leir.parser import parse
from leir.printer import print_program
from rewrite.apply import Applied, apply
from rewrite.step import step_from_text
from rules.strategy import Refusal, Target


def program(source: str) -> Program:
    """A program from the content of a `.leir` file without its first line."""
    return load_text(f"# leir 1 example\n{cleandoc(source)}", "example.leir")


def assert_sound(made: Program, target: Target = "llvm") -> None:
    assert [d for d in check(made, target=target) if d.severity == "error"] == []
    assert parse(print_program(made), made.signature) == made
    assert derive(made.signature, made.nests) == made.nests


def applied(source: Program | str, step: str, target: Target = "llvm") -> Applied:
    """The outcome of a step that must be legal."""
    outcome = apply(program(source) if isinstance(source, str) else source, step_from_text(step), target)
    assert isinstance(outcome, Applied), outcome
    assert_sound(outcome.program, target)
    return outcome


def refused(source: Program | str, step: str, target: Target = "llvm") -> Refusal:
    """The outcome of a step that must not be legal."""
    outcome = apply(program(source) if isinstance(source, str) else source, step_from_text(step), target)
    assert isinstance(outcome, Refusal), print_program(outcome.program)
    return outcome


def text(made: Applied | Program) -> str:
    return print_program(made.program if isinstance(made, Applied) else made)
