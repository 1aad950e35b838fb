"""What a saturation reports: per phase why it stopped, per strategy what it gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

Stop: TypeAlias = Literal["saturated", "iteration-limit", "row-limit", "time-limit"]
Outcome: TypeAlias = Literal[
    "saturated", "iteration-limit", "row-limit", "time-limit", "killed", "crashed", "out-of-memory", "not-checked", "not-encodable"
]
"""How a saturation ended. The first four: as its phases did, the gravest of them. ``killed``: by the timer of the parent.
``not-checked``: the program does not pass the checker, and nothing was started. ``not-encodable``: see `dataflow.NotEncodable`."""

GRAVITY: tuple[Stop, ...] = ("saturated", "iteration-limit", "row-limit", "time-limit")


@dataclass(frozen=True, slots=True)
class PhaseReport:
    """One phase: iterations made, rows of egglog and kernels at its end, seconds, and why it stopped."""

    name: str
    iterations: int
    rows: int
    kernels: int
    seconds: float
    stop: Stop


@dataclass(slots=True)
class StrategyReport:
    """``offers``: units that it was given; ``matches``: arguments that it was asked about; ``legal``: those that it carried out;
    ``unions``: unions that these brought and the e-graph did not have."""

    offers: int = 0
    matches: int = 0
    legal: int = 0
    unions: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """``unplaced``: by reason, how many sets of kernels found no program to stand in. ``rules``: matches of egglog's own rules."""

    outcome: Outcome
    detail: str = ""
    phases: tuple[PhaseReport, ...] = ()
    strategies: Mapping[str, StrategyReport] = field(default_factory=dict)
    rules: Mapping[str, int] = field(default_factory=dict)
    unplaced: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return asdict(self)

    def text(self) -> str:
        """The report for a person, one line per phase and per strategy."""
        lines = [f"{self.outcome} after {self.seconds:.1f} s{': ' if self.detail else ''}{self.detail}"]
        lines += [
            f"  {p.name:<12} {p.stop:<16} {p.iterations:>3} iterations {p.rows:>7} rows {p.kernels:>6} kernels {p.seconds:>6.1f} s"
            for p in self.phases
        ]
        lines += [
            f"  {name:<40} {s.offers:>6} offers {s.matches:>7} matches {s.legal:>7} legal {s.unions:>6} unions {s.seconds:>6.2f} s"
            for name, s in self.strategies.items()
        ]
        lines += [f"  rule {name:<35} {count:>6} matches" for name, count in self.rules.items() if count]
        lines += [f"  {count} kernel sets without a program: {reason}" for reason, count in self.unplaced.items()]
        return "\n".join(lines)


def gravest(phases: tuple[PhaseReport, ...]) -> Stop:
    """Of the reasons for which phases stopped, the one that cut most."""
    return max((p.stop for p in phases), key=GRAVITY.index, default="saturated")
