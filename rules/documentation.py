"""A strategy's docstring as data: one source for its documentation, its first test and its reasoning text.

One sentence that says what it does.

before::

    (a small program: `# A f32[4,8] input` lines, then text)

step::

    loop_split 0 loop=0 factor=4

after::

    (the program that the step makes of it)

When it is legal, and where it comes from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import cleandoc, getdoc
from typing import Any

BLOCKS = ("before", "step", "after")


@dataclass(frozen=True, slots=True)
class Documentation:
    """``before`` and ``after`` are the contents of `.leir` files without their first line, ``step`` is a step in text."""

    sentence: str
    before: str
    step: str
    after: str
    remarks: tuple[str, ...]


def documentation(propose: Callable[..., Any]) -> Documentation:
    """What the docstring of a strategy's `propose` says. Raises ValueError where a part is missing."""
    text = getdoc(propose)
    if text is None:
        raise ValueError(f"{propose.__qualname__} has no docstring")
    paragraphs: list[str] = []
    blocks: dict[str, str] = {}
    current: str | None = None
    for paragraph in cleandoc(text).split("\n\n"):
        if paragraph.startswith("    ") and current is not None:
            blocks[current] = "\n".join(line.removeprefix("    ") for line in paragraph.split("\n"))
            current = None
        elif paragraph.removesuffix("::") in BLOCKS:
            current = paragraph.removesuffix("::")
        else:
            paragraphs.append(" ".join(paragraph.split()))
    missing = [name for name in BLOCKS if name not in blocks]
    if missing or not paragraphs:
        raise ValueError(f"the docstring of {propose.__qualname__} has no block {' and no block '.join(missing) or 'of text'}")
    return Documentation(paragraphs[0], blocks["before"], blocks["step"], blocks["after"], tuple(paragraphs[1:]))
