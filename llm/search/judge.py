"""What is an answer worth? Cheapest questions first: is it one of the legal steps, is it LEIR, does it keep the known tensors, does
the checker accept it, is it a program that a legal step gives, and last, does execution find it equal to the original."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

from leir.ir import Program
from leir.printer import print_program
from llm.search.answer import Picked, Unreadable, Written, read_answer
from llm.search.guard import Guard
from llm.search.node import Node, Proposal, legal_step
from llm.search.text import Sound, Unsound, sound
from rewrite.enumerate import Found
from rules.strategy import Target

if TYPE_CHECKING:
    from lower.verify import Verdict

Verify: TypeAlias = "Callable[[Program], Verdict]"
"""Compares a program with the original, within real rounding."""

GROWTH = 8
"""A step may make the text this many times as long, and `SLACK` characters longer."""
SLACK = 2048
WORK = 64
"""A program that does this many times the original's work, and `FREE` more, is not run."""
FREE = 1_000_000


class Judge:
    """Judges the answers of one search. Holds a process (`llm.search.guard`) until it is closed."""

    def __init__(self, root: Program, target: Target, verify: Verify, guard: Guard | None = None) -> None:
        self.root = root
        self.target: Target = target
        self._verify = verify
        self._limit = WORK * sound(root).work + FREE
        self._guard = Guard(root, target) if guard is None else guard

    def judge(self, content: str, node: Node, shown: Sequence[Found], legal: Sequence[Found]) -> Proposal:
        """The proposal in a model's text. ``shown`` are the steps that the prompt numbers, from 1; ``legal`` are all."""
        match read_answer(content):
            case Unreadable(reason):
                return Proposal("malformed-answer", reason)
            case Picked(number):
                if 1 <= number <= len(shown):
                    return legal_step(shown[number - 1])
                return Proposal("malformed-answer", f"there is no step {str(number)[:20]}: the steps are 1 to {len(shown)}")
            case Written(text):
                return self.judge_text(text, node, legal)

    def judge_text(self, text: str, node: Node, legal: Sequence[Found]) -> Proposal:
        """The proposal to go from ``node`` to the program that ``text`` writes."""
        limit = GROWTH * len(print_program(node.program)) + SLACK
        if len(text) > limit:
            return Proposal("parse-error", f"the text has {len(text)} characters, and the limit here is {limit}")
        found = self._guard.examine(text)
        if isinstance(found, Unsound):
            return Proposal(found.verdict, found.detail)
        if found.key == node.key:
            return Proposal("no-change", "it is the program that was given")
        neighbour = next((f for f in legal if f.key == found.key), None)
        return self._executed(found) if neighbour is None else legal_step(neighbour)

    def _executed(self, found: Sound) -> Proposal:
        if found.work > self._limit:
            size = f"{found.work} operations and elements, and the limit is {self._limit}"
            return Proposal("undecided", f"too large to run: {size}")
        verdict = self._verify(found.program)
        if verdict.answer != "equal":
            return Proposal(verdict.answer, verdict.reason)
        return Proposal("equal-by-execution", "", found.program, found.key, None, "real")

    def close(self) -> None:
        self._guard.close()

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
