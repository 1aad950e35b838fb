"""Every legal single step of a program, in a fixed order, and on request every illegal one with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, overload

from leir.ir import Nest, Program
from leir.key import key
from rewrite.apply import Applied, arguments, carry_out, implemented
from rewrite.step import Step
from rewrite.units import units
from rules.catalogue import STRATEGIES
from rules.strategy import Proof, Refusal, Rounding, Strategy, Target


@dataclass(frozen=True, slots=True)
class Found:
    """A legal step. ``alternatives`` are further steps that give the same program."""

    step: Step
    program: Program
    key: str
    rounding: Rounding
    proofs: tuple[Proof, ...]
    alternatives: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """A step of the parameter space that is not legal, and why."""

    step: Step
    refusal: Refusal


@overload
def enumerate_steps(
    program: Program,
    target: Target = ...,
    strategies: Sequence[str] | None = ...,
    refusals: Literal[False] = ...,
    risky: bool = ...,
) -> Iterator[Found]: ...
@overload
def enumerate_steps(
    program: Program, target: Target = ..., strategies: Sequence[str] | None = ..., *, refusals: bool, risky: bool = ...
) -> Iterator[Found | Refused]: ...
def enumerate_steps(
    program: Program,
    target: Target = "llvm",
    strategies: Sequence[str] | None = None,
    refusals: bool = False,
    risky: bool = False,
) -> Iterator[Found | Refused]:
    """Every point of the parameter spaces as a `Found` or, with ``refusals``, a `Refused`: by strategy in catalogue order, then by
    site, then by arguments. A program that several steps give is found once, where the first of them stands.

    ``strategies`` names those to ask; None asks all that are implemented. ``risky`` allows the rounding class ``real+range``.
    Raises BadStep for a name that is none.
    """
    chosen = [s for s in STRATEGIES if s.implemented] if strategies is None else [implemented(name) for name in strategies]
    found: dict[tuple[Nest, ...], Found] = {}
    order: list[tuple[Nest, ...] | Refused] = []
    for step, outcome in _outcomes(program, chosen, target, risky):
        if isinstance(outcome, Refusal):
            if refusals:
                order.append(Refused(step, outcome))
            continue
        nests = outcome.program.nests
        first = found.get(nests)
        if first is not None:
            found[nests] = replace(first, alternatives=(*first.alternatives, step))
        else:
            found[nests] = Found(step, outcome.program, key(outcome.program), outcome.rounding, outcome.proofs)
            order.append(nests)
    for entry in order:
        yield entry if isinstance(entry, Refused) else found[entry]


def _outcomes(
    program: Program, strategies: Sequence[Strategy], target: Target, risky: bool
) -> Iterator[tuple[Step, Applied | Refusal]]:
    for strategy in strategies:
        for site, unit in units(strategy, program, target):
            for args in arguments(strategy.name, unit):
                yield Step(strategy.name, site, args), carry_out(program, strategy, site, unit, args, target, risky)
