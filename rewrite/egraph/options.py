"""How far a saturation goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from leir.ir import Nest, equations, subexpressions
from rewrite.egraph.dataflow import Dataflow, Shape
from rewrite.egraph.templates import HOLE
from rules.strategy import Level, Target

KernelCost = Callable[[Nest, Mapping[str, Shape]], float]
"""The cost of one kernel, positive: its expression, whose tensors are called ``%0``, ``%1``, ..., and their shapes."""

PHASES: tuple[Level, ...] = ("mathematics", "graph", "memory", "operator")


def size(nest: Nest, shapes: Mapping[str, Shape]) -> float:
    """The default cost: how much text a kernel is."""
    return 1.0 + _loops(nest) + sum(1 for e in equations(nest) for side in (e.target, e.value) for _ in subexpressions(side))


def kernel_cost(flow: Dataflow, cost: KernelCost, kernel: int) -> float:
    """The cost of kernel number ``kernel``."""
    plain = flow.template_of(kernel)
    shapes = {f"{HOLE}{hole}": flow.values[v].shape for hole, v in zip(plain.reads, flow.kernels[kernel].operands, strict=True)}
    shapes |= {f"{HOLE}{hole}": flow.values[v].shape for hole, v in zip(plain.writes, flow.outputs(kernel), strict=True)}
    return cost(plain.nest, shapes)


def _loops(nest: Nest) -> int:
    return len(nest.schedule) + sum(_loops(item) for item in nest.body if isinstance(item, Nest))


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one phase. Rows are checked between iterations, seconds between steps."""

    iterations: int = 5
    rows: int = 100_000
    seconds: float = 4.0


DEFAULT_LIMITS: Mapping[Level, Limits] = {**dict.fromkeys(PHASES, Limits()), "operator": Limits(seconds=12.0)}


@dataclass(frozen=True, slots=True)
class Options:
    """``beam``: how many of the cheapest kernels of each class are offered to the strategies per iteration, to those that take
    several expressions half as many, or a third; ``groups``: how many groups of several kernels are offered, the cheapest.
    ``bodies``: how many terms of a class become kernels, and under how many of the schedules known for it. ``cost``: a function of
    a module, so that it reaches the child process. ``cycles``: how often the phases run one after the other, as long as something
    new comes. ``strategies``: their names; None is all.
    """

    target: Target = "llvm"
    strategies: tuple[str, ...] | None = None
    limits: Mapping[Level, Limits] = field(default_factory=lambda: DEFAULT_LIMITS)
    beam: int = 4
    groups: int = 200
    bodies: int = 3
    cycles: int = 2
    cost: KernelCost = size
    risky: bool = False
    timeout_s: float = 60.0
    memory_gib: float = 2.0
