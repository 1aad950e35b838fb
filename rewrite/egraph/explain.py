"""The steps that lead from the original program to a member of the root class, replayed one by one.

The proof forest says which step made each kernel and which kernels it started from. The steps that a set of kernels rests on are
carried out on the real program in the order in which they were found; each is a checked step of the catalogue. Between them,
expressions are swapped where a window has to stand together. What cannot be replayed is a `Problem`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from leir.ir import Nest, Program
from rewrite.apply import Applied, arguments, carry_out
from rewrite.egraph.assemble import Problem
from rewrite.egraph.classes import Classes
from rewrite.egraph.growth import Derivation
from rewrite.egraph.result import EGraphResult
from rewrite.egraph.templates import Template, template
from rewrite.step import Site
from rewrite.units import units
from rules.catalogue import STRATEGIES, find
from rules.strategy import Refusal, Strategy

SCALAR_STEPS = 2
MOST_BRANCHES = 12
"""How far, and how broadly, steps are looked for that make a body which no single step is known to make."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Steps from the original program, and the program that they make. It holds the kernels that were asked for; the names of
    temporaries and the order of expressions may differ from another program of these kernels."""

    steps: tuple[Applied, ...]
    program: Program


@dataclass
class Explainer:
    """Explains members of one e-graph."""

    result: EGraphResult
    number: dict[tuple[Template, tuple[int, ...]], int] = field(init=False)

    def __post_init__(self) -> None:
        view = self.view
        self.number = {}
        for kernel in view.all_kernels:
            self.number.setdefault((view.flow.template_of(kernel), view.operands(kernel)), kernel)

    @property
    def view(self) -> Classes:
        return self.result.classes

    def explain(self, kernels: Iterable[int]) -> Explanation | Problem:
        """The steps to a program of these kernels."""
        wanted = [self.view.same[kernel] for kernel in kernels]
        plan = self._plan(wanted)
        if isinstance(plan, Problem):
            return plan
        current = self.result.program
        steps: list[Applied] = []
        for derivation in plan:
            held = self.kernels(current)
            made = {self.view.same[k] for k in derivation.made}
            if made <= set(held):
                continue
            outcome = self._carried_out(current, derivation, made)
            if outcome is None:
                name = derivation.step.strategy if derivation.step else "a scalar union"
                return Problem("no-replay", f"{name} does not apply where it is needed")
            steps += outcome
            current = steps[-1].program
        if not set(wanted) <= set(self.kernels(current)):
            return Problem("no-replay", "the steps do not end in the kernels that were chosen")
        return Explanation(tuple(steps), current)

    def kernels(self, program: Program) -> tuple[int | None, ...]:
        """Which kernel of the e-graph each expression of a program is; None for one that it does not know."""
        versions: dict[str, int] = {name: self.view.leader[v] for name, v in self.view.flow.inputs().items()}
        found: list[int | None] = []
        for nest in program.nests:
            plain, operands, outputs = template(nest, versions)
            kernel = self.number.get((plain, tuple(versions[name] for name in operands)))
            found.append(kernel)
            for output, name in enumerate(outputs):
                if kernel is None:
                    versions.pop(name, None)
                else:
                    versions[name] = self.view.outputs(kernel)[output]
        return tuple(found)

    def _plan(self, wanted: Sequence[int]) -> list[Derivation] | Problem:
        """The derivations that kernels rest on, in the order in which they were found."""
        order = {id(derivation): at for at, derivation in enumerate(self.result.derivations)}
        found: dict[int, Derivation] = {}
        pending = list(wanted)
        seen: set[int] = set()
        while pending:
            kernel = self.view.same[pending.pop()]
            if kernel in seen or kernel < self.result.originals:
                continue
            seen.add(kernel)
            derivation = self.result.explained.get(kernel) or next(iter(self.result.derivation_of.get(kernel, ())), None)
            if derivation is None:
                return Problem("no-derivation", "nothing in the proof forest made a kernel")
            found[order[id(derivation)]] = derivation
            pending += derivation.needs
        return [found[at] for at in sorted(found)]

    # --------------------------------------------------------------------------------------------------------------- one step

    def _carried_out(self, current: Program, derivation: Derivation, made: set[int]) -> list[Applied] | None:
        needs = [self.view.same[k] for k in derivation.needs]
        if not set(needs) <= set(self.kernels(current)):
            return None
        if derivation.step is None:
            return self._rewritten(current, self.kernels(current).index(needs[0]), made, SCALAR_STEPS)
        strategy = find(derivation.step.strategy)
        assert strategy is not None
        moves: list[Applied] = []
        if strategy.unit == "window" and strategy.width > 1:
            together = self._together(current, needs)
            if together is None:
                return None
            moves = together
            current = moves[-1].program if moves else current
        at = self.kernels(current).index(needs[0])
        for outcome in self._outcomes(strategy, current, at, derivation):
            if made <= set(self.kernels(outcome.program)):
                return [*moves, outcome]
        return None

    def _outcomes(self, strategy: Strategy, current: Program, at: int, derivation: Derivation) -> Iterator[Applied]:
        """The step at the same place of the same kernel, first with the same arguments, then with others: a path to another
        expression is an argument too, and it may stand elsewhere now."""
        assert derivation.step is not None
        options = self.result.options
        site = Site((at, *derivation.step.site.path[1:]), derivation.step.site.scalar)
        found = next((unit for s, unit in units(strategy, current, options.target) if s == site), None)
        if found is None:
            return
        space = arguments(strategy.name, found)
        same = [args for args in space if args == derivation.step.args]
        for args in (*same, *(a for a in space if a not in same)):
            outcome = carry_out(current, strategy, site, found, args, options.target, options.risky)
            if not isinstance(outcome, Refusal):
                yield outcome

    def _rewritten(self, current: Program, at: int, made: set[int], depth: int) -> list[Applied] | None:
        """At most ``depth`` scalar steps on one expression that make a kernel, or None. A body may follow from unions found on
        other kernels, or from native rules, which are no steps."""
        outcomes: list[Applied] = []
        for strategy in STRATEGIES:
            if strategy.unit != "scalar" or not strategy.implemented:
                continue
            for site, unit in units(strategy, current, self.result.options.target):
                if site.path[0] != at:
                    continue
                for args in arguments(strategy.name, unit):
                    outcome = carry_out(current, strategy, site, unit, args, self.result.options.target, self.result.options.risky)
                    if isinstance(outcome, Refusal):
                        continue
                    if made <= set(self.kernels(outcome.program)):
                        return [outcome]
                    outcomes.append(outcome)
        if depth > 1:
            for outcome in outcomes[:MOST_BRANCHES]:
                rest = self._rewritten(outcome.program, at, made, depth - 1)
                if rest is not None:
                    return [outcome, *rest]
        return None

    def _together(self, current: Program, window: Sequence[int]) -> list[Applied] | None:
        """Swaps after which the kernels of a window stand side by side in order, or None."""
        moves: list[Applied] = []

        def swap(at: int) -> bool:
            nonlocal current
            outcome = self._swapped(current, at)
            if outcome is not None:
                moves.append(outcome)
                current = outcome.program
            return outcome is not None

        for number in range(1, len(window)):
            start = self.kernels(current).index(window[0])
            end = self.kernels(current).index(window[number])
            if end < start:
                return None
            for at in range(start + number, end):  # what stands between goes in front of the window where it can
                if all(swap(k) for k in range(at - 1, at - 1 - number, -1)):
                    continue
            held = self.kernels(current)
            start, end = held.index(window[0]), held.index(window[number])
            for at in range(end - 1, start + number - 1, -1):  # the rest goes behind
                if not swap(at):
                    return None
            held = self.kernels(current)
            start = held.index(window[0])
            if held[start : start + number + 1] != tuple(window[: number + 1]):
                return None
        return moves

    def _swapped(self, current: Program, at: int) -> Applied | None:
        """A step that swaps two neighbouring expressions and changes nothing else."""
        nests = current.nests
        wanted: tuple[Nest, ...] = (*nests[:at], nests[at + 1], nests[at], *nests[at + 2 :])
        for strategy in STRATEGIES:
            if strategy.unit != "window" or strategy.width != 2 or not strategy.implemented:
                continue
            for site, unit in units(strategy, current, self.result.options.target):
                if site.path[0] != at:
                    continue
                for args in arguments(strategy.name, unit):
                    outcome = carry_out(current, strategy, site, unit, args, self.result.options.target)
                    if not isinstance(outcome, Refusal) and outcome.program.nests == wanted:
                        return outcome
        return None
