"""What goes to the process that saturates, and how it says that it failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from leir.ir import Program
from rewrite.egraph.options import Options


@dataclass(frozen=True, slots=True)
class Job:
    """``program`` passes the checker."""

    program: Program
    options: Options


@dataclass(frozen=True, slots=True)
class Failure:
    """A job that ended without a result."""

    outcome: Literal["crashed", "out-of-memory"]
    detail: str
