"""The chain of thought of a step, written from what is known about it: the strategy, the place, the change, the proofs.

Nothing here is a model's: every sentence states a fact that the certificate holds, in an order that a person would think it in.
Same step, same text, in every process.
"""

from __future__ import annotations

from dataclasses import dataclass

from leir.ir import Program
from llm.describe import changed_expressions, describe_program
from rules.strategy import Argument, Proof, Rounding, Strategy

_ROUNDING = {
    "bitwise": "Every output element comes from the same operations on the same values in the same order, to the last bit.",
    "reassociates": "An accumulation runs in another order, so results may differ by rounding, and by nothing else.",
    "real": "The two sides are equal over the real numbers and round differently.",
    "real+domain": "The two sides are equal over the real numbers under the side condition shown above, and round differently.",
    "real+range": "The two sides are equal over the real numbers, but an intermediate value may overflow or absorb.",
}

_BY = {
    "construction": "by construction",
    "isl": "by exact integer set computation",
    "sympy": "by computer algebra",
    "field": "by evaluation at random points of a large prime field",
    "analysis": "by analysis of the program",
}


@dataclass(frozen=True, slots=True)
class Thought:
    """What reasoning needs to know about one step. ``place`` names the expression, loop or subexpression in words."""

    before: Program
    after: Program
    strategy: Strategy
    place: str
    arguments: tuple[tuple[str, Argument], ...]
    rounding: Rounding
    proofs: tuple[Proof, ...]


def reasoning(thought: Thought) -> str:
    """Paragraphs: the program, the strategy, where it applies, what changes, why that is legal, what it does to rounding."""
    strategy = thought.strategy
    gone, come = changed_expressions(thought.before, thought.after)
    arguments = ", ".join(f"{name} = {_value(value)}" for name, value in thought.arguments)
    paragraphs = [
        describe_program(thought.before),
        f"I consider {strategy.name}, a strategy at the {strategy.level} level: {_sentence(strategy.summary)}",
        f"It applies to {thought.place}" + (f", with {arguments}." if arguments else "."),
        _change(gone, come),
        "\n".join(["This is legal:", *(f"- {p.condition}: {_BY[p.by]}; {_sentence(p.detail)}" for p in thought.proofs)]),
        _ROUNDING[thought.rounding],
    ]
    return "\n\n".join(paragraphs)


def _change(gone: tuple[str, ...], come: tuple[str, ...]) -> str:
    before = "\n".join(gone) if gone else "nothing"
    after = "\n".join(come) if come else "nothing"
    counted = f"{len(gone)} expression{'s' if len(gone) != 1 else ''}"
    return f"The step replaces {counted}\n{before}\nby\n{after}\nand leaves the rest of the program as it is."


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else text + "."


def _value(value: Argument) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
