"""The values that a search passes around: what a policy proposes, what became of it, and the programs that were reached."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal, TypeAlias, get_args

from leir.ir import Program
from leir.printer import print_program
from rewrite.enumerate import Found
from rewrite.step import Step
from rules.strategy import Rounding

Verdict: TypeAlias = Literal[
    "legal-step",
    "equal-by-execution",
    "different",
    "undecided",
    "ill-formed",
    "parse-error",
    "wrong-signature",
    "no-change",
    "malformed-answer",
    "http-error",
    "timeout",
]
"""What a proposal is. The first two carry a program; the others say what was wrong with an answer:

* ``different``, ``undecided``: execution found another result, or could not tell;
* ``ill-formed``: the checker finds an error; ``parse-error``: it is no LEIR text, or is over the parser's limits;
* ``wrong-signature``: a known tensor has another dtype, rank or scope, an input is written or an output is not;
* ``no-change``: it is the program that the model was given;
* ``malformed-answer``: no JSON object of the agreed form; ``http-error``, ``timeout``: no answer at all.
"""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

Status: TypeAlias = Literal["ok", "different", "undecided", "failed"]

KEPT = 64 * 1024
"""How many characters of an answer are recorded; of a longer one also its length and hash."""


@dataclass(frozen=True, slots=True)
class Score:
    """How fast a program is: ``seconds`` per call, None unless ``status`` is ``ok``.

    ``different`` and ``undecided`` are verdicts of verification against the original; ``failed``: it did not run, or has no cost.
    """

    seconds: float | None
    status: Status = "ok"
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an endpoint sent, as recorded: the first `KEPT` characters, the whole's length in characters and its hash; the status
    of each try; a hash of the prompt, which can be built again; the tokens that the endpoint says it used."""

    text: str
    length: int
    digest: str
    tries: tuple[str, ...]
    prompt: str
    tokens: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "length": self.length,
            "blake2b": self.digest,
            "tries": list(self.tries),
            "prompt": self.prompt,
            "tokens": self.tokens,
        }


def record_answer(raw: str, tries: tuple[str, ...], prompt: str, tokens: int = 0) -> Answer:
    """The record of ``raw``, of which nothing but the tail of a very long one is left out."""
    return Answer(raw[:KEPT], len(raw), digest(raw), tries, prompt, tokens)


def digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a policy puts forward: a program with its verdict, or why there is none. ``step`` is None for a program that a model
    wrote and that is no legal step's; ``answer`` is None where nobody was asked."""

    verdict: Verdict
    detail: str = ""
    program: Program | None = None
    key: str = ""
    step: Step | None = None
    rounding: Rounding = "bitwise"
    answer: Answer | None = None


def legal_step(found: Found, answer: Answer | None = None) -> Proposal:
    """The proposal to take one of the legal steps."""
    return Proposal("legal-step", "", found.program, found.key, found.step, found.rounding, answer)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A proposal and what came of it. ``score`` is None where nothing was evaluated; ``repeat``: the program had been reached
    before, which is how undoing a step ends."""

    proposal: Proposal
    score: Score | None = None
    repeat: bool = False


@dataclass(eq=False, slots=True)
class Node:
    """A program that a search has reached and evaluated. ``number`` counts evaluations, 0 being the original; ``rounding`` is the
    widest class on the way from there."""

    number: int
    program: Program
    key: str
    seconds: float
    parent: Node | None = None
    depth: int = 0
    proposal: Proposal | None = None
    rounding: Rounding = "bitwise"
    attempts: list[Attempt] = field(default_factory=list, repr=False)

    @property
    def path(self) -> list[Node]:
        """The nodes after the original, this one last."""
        found: list[Node] = []
        node = self
        while node.parent is not None:
            found.append(node)
            node = node.parent
        return found[::-1]

    @property
    def moves(self) -> list[str | dict[str, str]]:
        """How to get here from the original: steps as text; an object with the text of a program that a model wrote."""
        return [_move(node) for node in self.path]


def _move(node: Node) -> str | dict[str, str]:
    assert node.proposal is not None
    step = node.proposal.step
    return {"leir": print_program(node.program)} if step is None else str(step)
