"""Reading what a model answered: a JSON object, between answer tags or alone. It is parsed, and never evaluated.

{"step": 3}                                   the third of the legal steps that it was shown
{"strategy": "loop_split", "leir": "L^..."}   a program; the strategy is what the model says, and is not relied on
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypeAlias

MAX_CHARACTERS = 1024 * 1024
"""The longest JSON object that is looked at."""

_OPEN, _CLOSE, _THOUGHT = "<answer>", "</answer>", "</think>"


@dataclass(frozen=True, slots=True)
class Picked:
    """A step by its number, from 1."""

    number: int


@dataclass(frozen=True, slots=True)
class Written:
    """LEIR text."""

    text: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """No answer of the agreed form."""

    reason: str


Said: TypeAlias = Picked | Written | Unreadable


def read_answer(content: str) -> Said:
    """What ``content`` answers. Linear in its length."""
    body = _body(content)
    if isinstance(body, Unreadable):
        return body
    if len(body) > MAX_CHARACTERS:
        return Unreadable(f"the answer has {len(body)} characters, and the limit is {MAX_CHARACTERS}")
    try:
        obj = json.loads(body)
    except (ValueError, RecursionError) as problem:
        return Unreadable(f"the answer is no JSON: {type(problem).__name__}: {str(problem)[:120]}")
    if not isinstance(obj, dict):
        return Unreadable("the answer is JSON, but no object")
    return _said(obj)


def _said(obj: dict[str, object]) -> Said:
    if ("step" in obj) == ("leir" in obj):
        return Unreadable('the answer has either "step" or "leir"')
    if "step" in obj:
        number = obj["step"]
        return Picked(number) if type(number) is int else Unreadable('"step" is no integer')
    text = obj["leir"]
    return Written(text) if isinstance(text, str) else Unreadable('"leir" is no string')


def _body(content: str) -> str | Unreadable:
    """The text of the object: behind the thoughts, between the last tags if there are any, without a code fence."""
    start = content.rfind(_THOUGHT)
    rest = content if start < 0 else content[start + len(_THOUGHT) :]
    opened = rest.rfind(_OPEN)
    if opened >= 0:
        rest = rest[opened + len(_OPEN) :]
        closed = rest.find(_CLOSE)
        if closed < 0:
            return Unreadable(f"{_OPEN} is never closed: the answer was cut off")
        rest = rest[:closed]
    rest = rest.strip()
    if rest.startswith("```"):
        rest = rest.partition("\n")[2].removesuffix("```").strip()
    if not rest.startswith("{"):
        return Unreadable("there is no JSON object" if rest else "the answer is empty")
    return rest
