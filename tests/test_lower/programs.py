"""Small programs for the tests of `lower`: a signature in one line, a text with ``^F`` for the dtype under test."""

from __future__ import annotations

from leir.ir import Known, Program, Role, Signature
from leir.parser import parse


def program(tensors: str, text: str, dtype: str = "f32") -> Program:
    """``tensors``: ``"A F[4,8]; I i64[4] 0..7; D F[4] output"``, where F is ``dtype``; inputs unless it says output.

    In ``text``, ``^F`` stands for ``^{dtype,g}``.
    """
    known = []
    for part in tensors.split(";"):
        name, form, *rest = part.split()
        kind, _, sizes = form.rstrip("]").partition("[")
        shape = tuple(int(s) for s in sizes.split(",") if s)
        role: Role = "output" if "output" in rest else "input"
        span = next((r for r in rest if ".." in r), None)
        low, _, high = (span or "").partition("..")
        known.append(Known(name, dtype if kind == "F" else kind, shape, role, (int(low), int(high)) if span else None))
    return parse(text.replace("^F", f"^{{{dtype},g}}"), Signature("test", tuple(known)))
