"""From the proof forest of an e-graph to steps: how the original program becomes one that was extracted.

A derivation says that some step, carried out where certain kernels stood, made certain others. Replaying finds where those kernels
stand in the program at hand, brings the expressions of a window side by side by legal swaps, and carries the step out for real:
`rewrite.apply` proves it again. What cannot be replayed is not extracted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from leir.ir import Nest, Program
from leir.lift import flatten
from leir.printer import print_nest
from rewrite.apply import Applied, arguments, carry_out, implemented
from rewrite.egraph.assemble import Assembled
from rewrite.egraph.growth import Derivation
from rewrite.egraph.result import EGraphResult
from rewrite.egraph.templates import HOLE, renamed, tensors
from rewrite.units import units
from rules.strategy import Strategy, Target

MAX_SWAPS = 12
"""How far apart the expressions of a window may stand."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """Checked steps from the original program, and what they lead to."""

    applied: tuple[Applied, ...]
    program: Program


def plain(nest: Nest) -> Nest:
    """The expression with its tensors numbered by first occurrence: what kernels of one template share."""
    return renamed(nest, tuple(f"{HOLE}{k}" for k in range(len(tensors(nest)))))


def needed(result: EGraphResult, kernels: Sequence[int]) -> list[Derivation]:
    """The derivations that make ``kernels`` from the original ones, in the order in which they were found. Of several that make a
    kernel the earliest is taken; what it needs was there before it, so this ends."""
    number = {id(d): k for k, d in enumerate(result.derivations)}
    same = result.classes.same
    chosen: dict[int, Derivation] = {}
    pending = [same[k] for k in kernels]
    done: set[int] = set()
    while pending:
        kernel = pending.pop()
        if kernel < result.originals or kernel in done:
            continue
        done.add(kernel)
        for derivation in result.derivation_of.get(kernel, ())[:1]:
            chosen[number[id(derivation)]] = derivation
            pending += [same[k] for k in derivation.needs]
    return [chosen[k] for k in sorted(chosen)]


def replay(result: EGraphResult, target: Assembled) -> Replayed | None:
    """Steps from the original program to one that holds the kernels of ``target``; None where the derivations do not line up in one
    program."""
    program = result.program
    applied: list[Applied] = []
    wanted = sorted(map(_text, map(plain, target.program.nests)))
    for derivation in needed(result, target.kernels):
        if derivation.step is None:
            return None
        made = [result.flow.template_of(k).nest for k in derivation.made]
        if _holds(program, made):
            continue
        steps = _carried_out(program, result, derivation, made)
        if steps is None:
            return None
        applied += steps
        program = steps[-1].program
    return Replayed(tuple(applied), program) if sorted(map(_text, map(plain, program.nests))) == wanted else None


def _text(nest: Nest) -> str:
    return print_nest(flatten(nest))


def _holds(program: Program, templates: Sequence[Nest]) -> bool:
    there = [plain(nest) for nest in program.nests]
    return bool(templates) and all(template in there for template in templates)


def _carried_out(program: Program, result: EGraphResult, derivation: Derivation, made: Sequence[Nest]) -> list[Applied] | None:
    assert derivation.step is not None
    strategy = implemented(derivation.step.strategy)
    needs = [result.flow.template_of(k).nest for k in derivation.needs]
    target = result.options.target
    for before, swaps in _arrangements(program, needs, strategy, target):
        for applied in _attempts(before, strategy, derivation, needs, target):
            if _holds(applied.program, made):
                return [*swaps, applied]
    return None


def _attempts(
    program: Program, strategy: Strategy, derivation: Derivation, needs: Sequence[Nest], target: Target
) -> Iterator[Applied]:
    """Steps of the strategy at expressions like the one that the derivation was found at: with its arguments first, then, for a
    strategy whose arguments name other expressions, with any."""
    assert derivation.step is not None
    step = derivation.step
    places = [(site, unit) for site, unit in units(strategy, program, target) if plain(program.nests[site.path[0]]) is needs[0]]
    for same_arguments in (True, False):
        if not same_arguments and strategy.unit != "program":
            return
        for site, unit in places:
            if site.path[1:] != step.site.path[1:] or site.scalar != step.site.scalar:
                continue
            for args in arguments(strategy.name, unit):
                if (args == step.args) == same_arguments:
                    outcome = carry_out(program, strategy, site, unit, args, target)
                    if isinstance(outcome, Applied):
                        yield outcome


def _arrangements(
    program: Program, needs: Sequence[Nest], strategy: Strategy, target: Target
) -> Iterator[tuple[Program, list[Applied]]]:
    """The program as it is, and with the expressions of a window brought side by side."""
    yield program, []
    if strategy.unit != "window" or len(needs) < 2:
        return
    swap = implemented("expression_reorder")
    current, swaps = program, list[Applied]()
    for _ in range(MAX_SWAPS):
        at = _first_gap(current, needs)
        if at is None:
            return
        moved = _swapped(current, swap, at, target)
        if moved is None:
            return
        swaps.append(moved)
        current = moved.program
        yield current, list(swaps)


def _first_gap(program: Program, needs: Sequence[Nest]) -> int | None:
    """The expression before the first of the window's that does not follow its predecessor, so that a swap brings it nearer."""
    there = [plain(nest) for nest in program.nests]
    places = [there.index(need) for need in needs if need in there]
    if len(places) < len(needs):
        return None
    for first, second in pairwise(places):
        if second > first + 1:
            return second - 1
    return None


def _swapped(program: Program, swap: Strategy, at: int, target: Target) -> Applied | None:
    for site, unit in units(swap, program, target):
        if site.path == (at,):
            for args in arguments(swap.name, unit):
                outcome = carry_out(program, swap, site, unit, args, target)
                if isinstance(outcome, Applied):
                    return outcome
    return None
