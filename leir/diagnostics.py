"""What the checker says: one type of diagnostic, and the places it points at.

The table of all codes is `leir.checker.codes.CODES`; a diagnostic is made from its entry there with `diagnose`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from leir.checker.codes import CODES, CodeInfo, Severity

__all__ = ["CODES", "CodeInfo", "Diagnostic", "Place", "Severity", "Witness", "diagnose", "has_errors"]

Witness: TypeAlias = tuple[tuple[str, int], ...]
"""A point at which the fault shows: loop names, and other integers where needed, with their values. A second point has primed
names."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a diagnostic points.

    ``path``: number of the expression, then item numbers; empty for the signature. ``scalar``: path into the value of that
    equation, None for its target or the item as a whole. Both count in the flat form, which is the text. ``line`` and ``column``
    count from 1, and are None where the text is not at hand.
    """

    path: tuple[int, ...] = ()
    scalar: tuple[int, ...] | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        if self.line is not None:
            return f"{self.line}:{self.column}"
        if not self.path:
            return "signature"
        items = "".join(f", item {k}" for k in self.path[1:])
        return f"expression {self.path[0]}{items}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. ``message`` says what is wrong and at which point, ``help`` what to do about it; ``witness`` is that point."""

    code: str
    severity: Severity
    place: Place
    message: str
    help: str
    witness: Witness | None = None

    def __str__(self) -> str:
        return f"{self.place}: {self.severity}[{self.code}]: {self.message}\n  help: {self.help}"

    def to_json(self) -> dict[str, Any]:
        """The diagnostic as a JSON object."""
        place = self.place
        return {
            "code": self.code,
            "severity": self.severity,
            "path": list(place.path),
            "scalar": None if place.scalar is None else list(place.scalar),
            "line": place.line,
            "column": place.column,
            "message": self.message,
            "help": self.help,
            "witness": None if self.witness is None else [list(pair) for pair in self.witness],
        }


def diagnose(code: str, place: Place, message: str, *, help: str | None = None, witness: Witness | None = None) -> Diagnostic:
    """A diagnostic with the severity of its code and, unless ``help`` is given, the way out that the table names."""
    info = CODES[code]
    return Diagnostic(code, info.severity, place, message, help or info.way_out, witness)


def has_errors(diagnostics: list[Diagnostic]) -> bool:
    """Whether any diagnostic is an error."""
    return any(d.severity == "error" for d in diagnostics)


def order(diagnostic: Diagnostic) -> tuple[Any, ...]:
    """The sort key: by place, a target before its value, then by code and message."""
    place = diagnostic.place
    scalar = (-1,) if place.scalar is None else place.scalar
    return place.path, scalar, diagnostic.code, diagnostic.message
