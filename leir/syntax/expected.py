"""What the parser waited for, in words."""

from __future__ import annotations

from collections.abc import Iterable

_OPERAND = frozenset({"TENSOR", "WORD", "FUNCTION", "INT", "REAL", "LPAR", "SIGN"})
_WORDS = {  # in the order in which they are listed
    "KIND": "a loop",
    "OPEN": "`[`",
    "TENSOR": "a tensor",
    "WORD": "an index",
    "INT": "an integer",
    "SUPERSCRIPT": "a dtype and scope, as in `^{f32,g}`",
    "_HAT": "an extent, as in `^{64}`",
    "_LOW": "`_{`",
    "EQUAL": "`=`",
    "OR": "an operator",
    "AND": "an operator",
    "COMPARISON": "an operator",
    "ADD": "an operator",
    "MUL": "an operator",
    "POW": "an operator",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "COMMA": "`,`",
    "RBRACE": "`}`",
    "RSQB": "`]`",
    "SEMICOLON": "`;`",
    "$END": "the end of the text",
}


def describe_expected(terminals: Iterable[str]) -> tuple[str, ...]:
    """Names of terminals of the grammar as phrases, without repetition, in a fixed order."""
    names = set(terminals)
    phrases: list[str] = []
    if names >= _OPERAND:
        names -= _OPERAND
        phrases.append("a value")
    phrases += (phrase for name, phrase in _WORDS.items() if name in names)
    return tuple(dict.fromkeys(phrases))
