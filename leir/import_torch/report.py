"""What an import answers when it cannot translate a module: every reason at once, each with its place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refused:
    """One thing that has no translation.

    ``op`` is the operator as PyTorch names it (``aten.sort.default``). ``module_path`` is the submodule that ran it, as in
    ``get_submodule``; empty for the module itself. ``shapes`` are its tensor arguments (``f32[3,4]``). ``line`` is the line of the
    user's code, ``file:number: code``, or empty where PyTorch does not know it.
    """

    op: str
    module_path: str
    shapes: tuple[str, ...]
    reason: str
    line: str = ""

    def __str__(self) -> str:
        where = f"in {self.module_path or 'forward'}"
        on = f" on {', '.join(self.shapes)}" if self.shapes else ""
        at = f"\n      {self.line}" if self.line else ""
        return f"{self.op} {where}{on}: {self.reason}{at}"


class ImportRefused(Exception):
    """The module cannot be imported. ``reasons`` holds every refusal, in the order of the graph."""

    def __init__(self, module: str, reasons: tuple[Refused, ...]) -> None:
        self.module = module
        self.reasons = reasons
        lines = "".join(f"\n  {reason}" for reason in reasons)
        super().__init__(f"{module} cannot be imported, {len(reasons)} refused:{lines}")

    def __reduce__(self) -> tuple[type[ImportRefused], tuple[str, tuple[Refused, ...]]]:
        return type(self), (self.module, self.reasons)
