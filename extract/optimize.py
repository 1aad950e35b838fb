"""From a program to a faster one: saturate under the roofline cost of a device, extract, replay.

found = optimize(program, "cpu", budget_s=30)
found.best.program, [applied.step for applied in found.best.steps]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isclose

from extract.device import Device
from extract.extraction import Extraction, candidates
from extract.kernel_costs import FOR_DEVICE, device_named
from leir.ir import Program
from rewrite.egraph.child import Saturator
from rewrite.egraph.options import Limits, Options
from rewrite.egraph.report import Report
from rewrite.egraph.result import EGraphResult
from rules.strategy import Level, Target

SHARES: dict[Level, float] = {"mathematics": 0.1, "graph": 0.1, "memory": 0.1, "operator": 0.3}
"""What part of the time each phase may take; two cycles, and what they leave is for extraction and replay."""
CONSIDERED = 64
"""How many choices are replayed at most."""
DISTINCT = 0.02
"""Candidates differ by more than this part of their cost."""


@dataclass(frozen=True, slots=True)
class Optimized:
    """The report of the saturation, and what was extracted: ``candidates`` of different costs, cheapest first, the original last,
    so there is always one."""

    report: Report
    candidates: tuple[Extraction, ...]
    device: Device

    @property
    def best(self) -> Extraction:
        return self.candidates[0]

    @property
    def original(self) -> Extraction:
        return self.candidates[-1]


def optimize(
    program: Program,
    device: str = "cpu",
    target: Target = "llvm",
    *,
    budget_s: float = 30.0,
    strategies: Sequence[str] | None = None,
    rows: int = 150_000,
    beam: int = 6,
    keep: int = 8,
    progress: Callable[[Report], None] | None = None,
) -> Optimized:
    """The cheapest program that saturation reaches within about ``budget_s`` seconds, by the roofline of ``device`` (``cpu``, the
    machine at hand, or ``h200``).

    ``rows`` bounds the e-graph, ``beam`` how many kernels of a class are offered to each strategy, ``keep`` how many candidates
    are kept beside the original. Raises `extract.device.DeviceError` for an unknown device.
    """
    described = device_named(device)
    limits = {level: Limits(8, rows, budget_s * share) for level, share in SHARES.items()}
    options = Options(
        target=target,
        strategies=None if strategies is None else tuple(strategies),
        limits=limits,
        beam=beam,
        cost=FOR_DEVICE[device],
        timeout_s=max(20.0, 3 * budget_s),
    )
    with Saturator() as saturator:
        result = saturator.saturate(program, options, progress)
    return Optimized(result.report, tuple(_distinct(result, device, keep)), described)


def _distinct(result: EGraphResult, device: str, keep: int) -> list[Extraction]:
    """Candidates of different costs, cheapest first, at most ``keep``, and the original last."""
    everything = candidates(result.program, result, FOR_DEVICE[device], count=CONSIDERED + 1, tries=CONSIDERED)
    found: list[Extraction] = []
    for candidate in everything:
        same = bool(found) and isclose(found[-1].cost, candidate.cost, rel_tol=DISTINCT)
        if candidate.cost < candidate.original_cost and len(found) < keep and not same:
            found.append(candidate)
    return [*found, next(c for c in everything if c.program == result.program)]
