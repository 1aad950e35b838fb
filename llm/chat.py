"""The chat form of a step: what the user asks, what the assistant answers (single answer; the paper, Appendix C).

The answer is JSON between tags, so that a reader parses it and never evaluates it.
"""

from __future__ import annotations

import json
from typing import TypedDict

from leir.ir import Known, Program
from leir.printer import print_program

SYSTEM = (
    "You optimise tensor programs written in LEIR, a loop-equation language. An expression is a loop nest over a bracketed body; "
    "loop kinds are L serial, P parallel, V vectorized, U unrolled, B bound to a GPU index; an access carries its dtype and scope "
    "(g global, s shared, l local)."
)


class Message(TypedDict):
    role: str
    content: str


def question(program: Program) -> str:
    """The user's turn: the program, its known tensors, and the request for one equivalent step."""
    known = "\n".join(f"- {_known(tensor)}" for tensor in program.signature.tensors)
    return (
        f"Program {program.name}:\n{print_program(program)}\n\n"
        f"Known tensors, which keep their names, shapes, dtypes and scopes:\n{known}\n\n"
        "Apply one single-step optimisation strategy. The result must compute the same outputs. Think first, then answer with a "
        'JSON object {"strategy": NAME, "leir": TEXT} between <answer> and </answer>.'
    )


def answer(strategy: str, after: Program, thoughts: str) -> str:
    """The assistant's turn: the reasoning between think tags, then the answer."""
    body = json.dumps({"strategy": strategy, "leir": print_program(after)}, ensure_ascii=False)
    return f"<think>\n{thoughts}\n</think>\n<answer>\n{body}\n</answer>"


def chat(before: Program, after: Program, strategy: str, thoughts: str) -> list[Message]:
    """System, user and assistant turns of one step."""
    return [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": question(before)},
        {"role": "assistant", "content": answer(strategy, after, thoughts)},
    ]


def _known(tensor: Known) -> str:
    span = f", values in [{tensor.range[0]}, {tensor.range[1]}]" if tensor.range else ""
    return f"{tensor.name}: {tensor.role}, {tensor.dtype}[{','.join(map(str, tensor.shape))}]{span}"
