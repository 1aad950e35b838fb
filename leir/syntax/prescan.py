"""A linear look at LEIR text before it is parsed: size, brackets, nesting depth, length of numbers.

Text comes from models and from strangers. Everything after this module may assume that brackets match, that no structure is deep
enough to exhaust Python's stack, and that no number is long enough to make arithmetic slow.
"""

from __future__ import annotations

import re

from leir.syntax.syntax_error import LeirSyntaxError, position, quoted

MAX_CHARACTERS = 4 * 1024 * 1024
MAX_EQUATION = 64 * 1024
"""The longest run of characters without a `;`."""
MAX_NESTS = 32
"""How deep expressions may stand inside expressions."""
MAX_LOOPS = 64
"""How many loops may stand around one item. The parser enforces it."""
MAX_BRACKETS = 200
"""How deep brackets of any sort may stand inside one another."""
MAX_DEPTH = 128
"""The deepest scalar expression, in operations; every recursive walk over expressions relies on it. The parser enforces it."""
MAX_DIGITS = 40
"""The longest run of digits and points."""

_MARK = re.compile(rf"[][(){{}}]|[0-9.]{{{MAX_DIGITS + 1}}}")
_CLOSES = {")": "(", "]": "[", "}": "{"}


def prescan(text: str, name: str = "<text>") -> None:
    """Raise LeirSyntaxError if ``text`` is over a limit or its brackets do not match. Linear; stops at the first fault."""
    if len(text) > MAX_CHARACTERS:
        raise LeirSyntaxError(f"the text has {len(text)} characters, and the limit is {MAX_CHARACTERS}", 1, 1, (), name)
    opened: list[tuple[str, int]] = []
    nests = 0
    for mark in _MARK.finditer(text):
        char, offset = mark.group(), mark.start()
        if char in "([{":
            opened.append((char, offset))
            nests += char == "["
            if nests > MAX_NESTS:
                raise LeirSyntaxError.at(f"expressions are nested more than {MAX_NESTS} deep", text, offset, name)
            if len(opened) > MAX_BRACKETS:
                raise LeirSyntaxError.at(f"brackets are nested more than {MAX_BRACKETS} deep", text, offset, name)
        elif char in _CLOSES:
            if not opened:
                raise LeirSyntaxError.at(f"{quoted(char)} closes nothing", text, offset, name)
            opener, where = opened.pop()
            nests -= char == "]"
            if opener != _CLOSES[char]:
                line, column = position(text, where)
                raise LeirSyntaxError.at(
                    f"{quoted(char)} does not close the {quoted(opener)} opened at {line}:{column}", text, offset, name
                )
        else:
            raise LeirSyntaxError.at(f"a number has more than {MAX_DIGITS} digits", text, offset, name)
    if opened:
        opener, where = opened[-1]
        raise LeirSyntaxError.at(f"this {quoted(opener)} is never closed", text, where, name)
    start = 0
    for piece in text.split(";"):
        if len(piece) > MAX_EQUATION:
            raise LeirSyntaxError.at(f"an equation has more than {MAX_EQUATION} characters", text, start, name)
        start += len(piece) + 1
