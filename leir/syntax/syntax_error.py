"""The one error that reading LEIR text raises: where, what is wrong, what was expected there."""

from __future__ import annotations

_WINDOW = 36  # characters of the line shown on each side of the caret; programs are often one line of thousands


class LeirSyntaxError(ValueError):
    """LEIR text that cannot be read.

    ``line`` and ``column`` count from 1, the column in characters. ``expected`` lists what could stand there instead, in words.
    ``str()`` is ``source:line:column: message; expected ...`` followed by the place and a caret.
    """

    def __init__(
        self,
        message: str,
        line: int,
        column: int,
        expected: tuple[str, ...] = (),
        source_name: str = "<text>",
        excerpt: str = "",
    ) -> None:
        super().__init__(message, line, column, expected, source_name, excerpt)
        self.message = message
        self.line = line
        self.column = column
        self.expected = expected
        self.source_name = source_name
        self.excerpt = excerpt

    @classmethod
    def at(cls, message: str, text: str, offset: int, source_name: str, expected: tuple[str, ...] = ()) -> LeirSyntaxError:
        """The error at character ``offset`` of ``text``."""
        line, column = position(text, offset)
        return cls(message, line, column, expected, source_name, _excerpt(text, offset))

    def __str__(self) -> str:
        head = f"{self.source_name}:{self.line}:{self.column}: {self.message}"
        if self.expected:
            head += f"; expected {_list(self.expected)}"
        return f"{head}\n{self.excerpt}" if self.excerpt else head


def position(text: str, offset: int) -> tuple[int, int]:
    """Line and column, from 1, of a character offset."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def quoted(text: str, limit: int = 24) -> str:
    """``text`` in backquotes, control characters escaped, cut if long."""
    shown = text if len(text) <= limit else text[:limit] + "..."
    return "`" + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in shown) + "`"


def _excerpt(text: str, offset: int) -> str:
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    end = len(text) if end < 0 else end
    left, right = max(start, offset - _WINDOW), min(end, offset + _WINDOW)
    before = ("..." if left > start else "") + text[left:offset]
    after = text[offset:right] + ("..." if right < end else "")
    return f"  {_printable(before)}{_printable(after)}\n  {' ' * len(before)}^"


def _printable(text: str) -> str:
    """One column per character, whatever it is."""
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in text)


def _list(items: tuple[str, ...]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} or {items[-1]}"
