"""Saturation: the phases, their limits, and the loop between egglog and the strategies. Runs in the child process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from leir.ir import Program
from rewrite.egraph.bodies import Bodies
from rewrite.egraph.classes import Classes, classes, rank
from rewrite.egraph.dataflow import Dataflow, encode
from rewrite.egraph.engine import Engine
from rewrite.egraph.growth import Derivation, ScalarUnion, grow
from rewrite.egraph.offers import Offers
from rewrite.egraph.options import PHASES, Limits, Options, kernel_cost
from rewrite.egraph.proofs import explained
from rewrite.egraph.report import PhaseReport, Report, Stop, StrategyReport, gravest
from rewrite.egraph.scalar_rules import SCALAR
from rules.catalogue import STRATEGIES
from rules.strategy import Strategy


@dataclass(slots=True)
class Saturation:
    """The state of one saturation. ``view`` is what the last reading of egglog's tables gave."""

    flow: Dataflow
    engine: Engine
    options: Options
    originals: int
    view: Classes
    derivations: list[Derivation] = field(default_factory=list)
    strategies: dict[str, StrategyReport] = field(default_factory=dict)
    phases: list[PhaseReport] = field(default_factory=list)
    unplaced: dict[str, int] = field(default_factory=dict)
    done: set[tuple[str, tuple[int, ...]]] = field(default_factory=set)
    bodies: Bodies = field(init=False)
    _costs: dict[int, float] = field(default_factory=dict)

    def cost(self, kernel: int) -> float:
        """The cost of a kernel by the options' cost function."""
        found = self._costs.get(kernel)
        if found is None:
            found = self._costs[kernel] = kernel_cost(self.flow, self.options.cost, kernel)
        return found

    def __post_init__(self) -> None:
        self.bodies = Bodies(self.engine, self.options.bodies)

    def take_in(self, news: Sequence[Derivation], scalars: Sequence[ScalarUnion]) -> None:
        """Unite what strategies found, run the native rules, and read the classes; bodies that these give become kernels."""
        self.derivations += news
        self.engine.load(union for derivation in news for union in derivation.unions)
        self.bodies.load(self.view.leader, scalars)
        self._native()
        reading = self.engine.read()
        view = classes(self.flow, reading.leader)
        rebuilt = self.bodies.read(reading.frozen, view, reading.leader_of)
        if rebuilt:
            self.derivations += rebuilt
            self.engine.load(union for derivation in rebuilt for union in derivation.unions)
            self.bodies.load(view.leader, ())
            self._native()
            view = classes(self.flow, self.engine.read().leader)
        self.view = view

    def _native(self) -> None:
        """The analyses and the native rules, in turn; both end by themselves, and the rounds are limited all the same."""
        for _ in range(NATIVE_ROUNDS):
            while self.engine.run("analysis"):
                pass
            if not self.engine.run("scalar"):
                return

    def report(self, seconds: float) -> Report:
        """What has been done so far."""
        phases = tuple(self.phases)
        rules = {name: n for name, n in sorted(self.engine.matches.items()) if not name.startswith(("load-", "unite-"))}
        return Report(gravest(phases), "", phases, dict(self.strategies), rules, dict(self.unplaced), seconds)


def saturate(program: Program, options: Options, after_phase: Callable[[Saturation, float], None]) -> None:
    """Run the phases on a program that passes the checker; ``after_phase`` sees the state, and the seconds so far, after each."""
    started = perf_counter()
    flow = encode(program)
    with Engine(flow, SCALAR) as engine:
        state = Saturation(flow, engine, options, len(flow.kernels), classes(flow, range(len(flow.values))))
        state.take_in([], [])
        for strategy in _chosen(options):
            state.strategies[strategy.name] = StrategyReport()
        for _ in range(options.cycles):
            before = len(flow.kernels), len(state.derivations)
            for level in PHASES:
                _phase(state, level, options.limits.get(level, Limits()))
                after_phase(state, perf_counter() - started)
            if (len(flow.kernels), len(state.derivations)) == before:
                break


def _chosen(options: Options) -> list[Strategy]:
    return [s for s in STRATEGIES if s.implemented and (options.strategies is None or s.name in options.strategies)]


def _phase(state: Saturation, level: str, limits: Limits) -> None:
    started = perf_counter()
    strategies = [s for s in _chosen(state.options) if s.level == level]
    stop: Stop | None = None
    iterations = 0
    while stop is None and iterations < limits.iterations:
        iterations += 1
        stop = _iteration(state, strategies, limits, started + limits.seconds)
    kernels = len(state.view.all_kernels)
    seconds = perf_counter() - started
    state.phases.append(PhaseReport(level, iterations, state.engine.rows, kernels, seconds, stop or "iteration-limit"))


def _iteration(state: Saturation, strategies: list[Strategy], limits: Limits, deadline: float) -> Stop | None:
    """Offer what is new to every strategy, then unite. Why the phase is over, if it is."""
    news, scalars, stop = _offered(state, strategies, limits, deadline)
    state.take_in(news, scalars)
    if stop is None and state.engine.rows > limits.rows:
        return "row-limit"
    return stop if stop is not None or news else "saturated"


def _offered(
    state: Saturation, strategies: list[Strategy], limits: Limits, deadline: float
) -> tuple[list[Derivation], list[ScalarUnion], Stop | None]:
    """What the strategies make of everything that they have not been offered yet, and why that was cut short."""
    options = state.options
    by_steps = explained(state.derivations, state.originals, state.view.same)
    offers = Offers(rank(state.view, state.cost), by_steps, options.beam, state.originals, options.groups, state.unplaced)
    rows_per_kernel = max(ROWS_PER_KERNEL, state.engine.rows // len(state.flow.kernels))
    most = len(state.flow.kernels) + max(0, limits.rows - state.engine.rows) // rows_per_kernel
    news: list[Derivation] = []
    scalars: list[ScalarUnion] = []
    for strategy in strategies:
        for group in offers.groups(strategy):
            if (strategy.name, group) in state.done:
                continue
            if perf_counter() > deadline:
                return news, scalars, "time-limit"
            if len(state.flow.kernels) > most:
                return news, scalars, "row-limit"
            held = offers.program(group, adjacent=strategy.unit == "window")
            if held is not None:
                at = held.kernels.index(group[0])
                grown = grow(strategy, held, at, state.view, options, state.strategies[strategy.name], deadline)
                news += grown.derivations
                scalars += grown.scalars
                if not grown.complete:
                    return news, scalars, "time-limit"
            state.done.add((strategy.name, group))
    return news, scalars, None


NATIVE_ROUNDS = 8

ROWS_PER_KERNEL = 14
"""Rows that a new kernel costs, about: itself, its outputs, its computation, their handles, and the load relations."""
