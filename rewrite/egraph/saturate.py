"""Saturation: the phases, their limits, and the loop between egglog and the strategies. Runs in the child process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

from leir.ir import Program
from rewrite.egraph.classes import Classes, classes, rank
from rewrite.egraph.dataflow import Dataflow, encode
from rewrite.egraph.engine import Engine
from rewrite.egraph.growth import Derivation, grow
from rewrite.egraph.offers import Offers
from rewrite.egraph.options import PHASES, Limits, Options
from rewrite.egraph.report import PhaseReport, Report, Stop, StrategyReport, gravest
from rewrite.egraph.templates import HOLE
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
    _costs: dict[int, float] = field(default_factory=dict)

    def cost(self, kernel: int) -> float:
        """The cost of a kernel by the options' cost function."""
        found = self._costs.get(kernel)
        if found is None:
            found = self._costs[kernel] = kernel_cost(self.flow, self.options, kernel)
        return found

    def report(self, seconds: float) -> Report:
        """What has been done so far."""
        phases = tuple(self.phases)
        rules = {name: n for name, n in sorted(self.engine.matches.items()) if not name.startswith(("load-", "unite-"))}
        return Report(gravest(phases), "", phases, dict(self.strategies), rules, dict(self.unplaced), seconds)


def kernel_cost(flow: Dataflow, options: Options, kernel: int) -> float:
    """The cost of one kernel by the options' cost function."""
    plain = flow.template_of(kernel)
    shapes = {f"{HOLE}{hole}": flow.values[v].shape for hole, v in zip(plain.reads, flow.kernels[kernel].operands, strict=True)}
    shapes |= {f"{HOLE}{hole}": flow.values[v].shape for hole, v in zip(plain.writes, flow.outputs(kernel), strict=True)}
    return options.cost(plain.nest, shapes)


def saturate(program: Program, options: Options, after_phase: Callable[[Saturation, float], None]) -> None:
    """Run the phases on a program that passes the checker; ``after_phase`` sees the state, and the seconds so far, after each."""
    started = perf_counter()
    flow = encode(program)
    with Engine(flow) as engine:
        engine.load(())
        state = Saturation(flow, engine, options, len(flow.kernels), classes(flow, engine.leaders()))
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
    stop: Stop = "iteration-limit"
    iterations = 0
    while iterations < limits.iterations:
        iterations += 1
        news, complete = _iteration(state, strategies, started + limits.seconds)
        if not complete:
            stop = "time-limit"
            break
        if state.engine.rows > limits.rows:
            stop = "row-limit"
            break
        if not news:
            stop = "saturated"
            break
    kernels = len(state.view.all_kernels)
    state.phases.append(PhaseReport(level, iterations, state.engine.rows, kernels, perf_counter() - started, stop))


def _iteration(state: Saturation, strategies: list[Strategy], deadline: float) -> tuple[bool, bool]:
    """Offer what is new to every strategy, then unite. Whether anything came, and whether there was time for all."""
    offers = Offers(rank(state.view, state.cost), state.options.beam, state.originals, state.unplaced)
    news: list[Derivation] = []
    complete = True
    for strategy in strategies:
        report = state.strategies[strategy.name]
        for group in offers.groups(strategy):
            if (strategy.name, group) in state.done:
                continue
            if perf_counter() > deadline:
                complete = False
                break
            held = offers.program(group, adjacent=strategy.unit == "window")
            grown = None if held is None else grow(
                strategy, held, held.kernels.index(group[0]), state.view, state.options, report, deadline
            )
            if held is not None and grown is None:
                complete = False
                break
            state.done.add((strategy.name, group))
            news += [derivation for derivation, _ in grown or ()]
    state.derivations += news
    state.engine.load(union for derivation in news for union in derivation.unions)
    state.view = classes(state.flow, state.engine.leaders())
    return bool(news), complete
