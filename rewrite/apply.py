"""Carry out a stored step, or say why it is not legal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from leir.ir import Program
from rewrite.conditions import INIT_PROOF, memory_refusal, with_init
from rewrite.step import BadStep, Site, Step
from rewrite.units import put, unit_at
from rules.catalogue import STRATEGIES, find
from rules.strategy import Arguments, Proof, Proposal, Refusal, Rounding, Strategy, Target, Unit


@dataclass(frozen=True, slots=True)
class Applied:
    """A legal step and what it made. `rewrite.certificate.certify` turns it into a certificate."""

    step: Step
    before: Program
    program: Program
    rounding: Rounding
    proofs: tuple[Proof, ...]
    target: Target


@dataclass(frozen=True, slots=True)
class Replay:
    """Steps carried out one after the other, up to the first that was refused."""

    start: Program
    applied: tuple[Applied, ...]
    refusal: Refusal | None

    @property
    def program(self) -> Program:
        return self.applied[-1].program if self.applied else self.start


def apply(program: Program, step: Step, target: Target = "llvm", risky: bool = False) -> Applied | Refusal:
    """The program after a step, or why the step is not legal. ``risky`` allows the rounding class ``real+range``.

    Raises BadStep where the strategy, the site or the arguments do not exist.
    """
    strategy = implemented(step.strategy)
    unit = unit_at(strategy, program, step.site, target)
    given = sorted(step.args)
    args = next((a for a in arguments(strategy.name, unit) if sorted(a) == given), None)
    if args is None:
        raise BadStep(_no_arguments(strategy, unit, step))
    return carry_out(program, strategy, step.site, unit, args, target, risky)


def replay(program: Program, steps: Iterable[Step], target: Target = "llvm", risky: bool = False) -> Replay:
    """Apply steps in turn. Raises BadStep as `apply` does, naming the step by its number, from 1."""
    applied: list[Applied] = []
    current = program
    for number, step in enumerate(steps, 1):
        try:
            outcome = apply(current, step, target, risky)
        except BadStep as problem:
            raise BadStep(f"step {number}, {step}: {problem}") from None
        if isinstance(outcome, Refusal):
            message = f"step {number}, {step}: {outcome.message}"
            return Replay(program, tuple(applied), Refusal(outcome.code, message, outcome.witness))
        applied.append(outcome)
        current = outcome.program
    return Replay(program, tuple(applied), None)


def implemented(name: str) -> Strategy:
    """The strategy of that name. Raises BadStep for an unknown one and for one that is only described."""
    strategy = find(name)
    if strategy is None:
        raise BadStep(f"{name!r} is no strategy; `leir strategies` lists them")
    if strategy.propose is None or strategy.parameters is None:
        ready = ", ".join(s.name for s in STRATEGIES if s.implemented)
        raise BadStep(f"{name} is described in the catalogue but not implemented; implemented are {ready}")
    return strategy


def carry_out(
    program: Program, strategy: Strategy, site: Site, unit: Unit, args: Arguments, target: Target, risky: bool = False
) -> Applied | Refusal:
    """One step whose unit and arguments are known to exist."""
    proposal = propose(strategy.name, unit, args)
    if isinstance(proposal, Refusal):
        return proposal
    if proposal.rounding == "real+range" and not risky:
        return Refusal("needs-range", f"{NEEDS_RANGE}; risky steps are offered on request")
    replacement = put(program, site, unit, proposal.result)
    if isinstance(replacement, Refusal):
        return replacement
    touched = range(replacement.start, replacement.start + len(replacement.nests))
    nests = with_init(program, replacement.within(program.nests), touched)
    if isinstance(nests, Refusal):
        return nests
    if nests == program.nests:
        return Refusal("no-change", "the step gives the program that it started from")
    after = Program(program.signature, nests)
    refusal = memory_refusal(after, touched, target)
    if refusal is not None:
        return refusal
    return Applied(Step(strategy.name, site, args), program, after, proposal.rounding, (*proposal.proofs, INIT_PROOF), target)


NEEDS_RANGE = "equal over the reals, but nothing shows that no intermediate value overflows, vanishes or absorbs another"


@lru_cache(maxsize=20_000)
def arguments(strategy: str, unit: Unit) -> tuple[Arguments, ...]:
    """The strategy's parameter space on a unit, kept per unit."""
    found = find(strategy)
    assert found is not None
    assert found.parameters is not None
    return tuple(found.parameters(unit))


@lru_cache(maxsize=200_000)
def propose(strategy: str, unit: Unit, args: Arguments) -> Proposal | Refusal:
    """What the strategy makes of a unit, kept per unit, so that a neighbouring program pays only for what changed."""
    found = find(strategy)
    assert found is not None
    assert found.propose is not None
    return found.propose(unit, args)


def _no_arguments(strategy: Strategy, unit: Unit, step: Step) -> str:
    space = list(_texts(strategy, unit))
    shown = "; ".join(space[:12]) + (f"; and {len(space) - 12} more" if len(space) > 12 else "")
    given = " ".join(str(step).split()[2:]) or "no arguments"
    return f"{strategy.name} at {step.site} does not take {given}; it takes: {shown or 'nothing, there is nothing to do here'}"


def _texts(strategy: Strategy, unit: Unit) -> Iterator[str]:
    for args in arguments(strategy.name, unit):
        yield " ".join(str(Step(strategy.name, Site((0,)), args)).split()[2:])
