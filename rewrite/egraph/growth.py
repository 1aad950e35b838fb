"""What strategies make of concrete programs, brought into the dataflow.

A strategy sees a whole program that holds the kernels on offer, so it decides as it always does. What it promises is that what is
used behind the expressions that it replaced stays as it was: these values are united, pair by pair. Temporaries that nothing
outside reads are not, for a strategy may give them another meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

from leir.ir import Expr, Nest
from rewrite.apply import Applied, arguments, carry_out, propose
from rewrite.egraph.assemble import Assembled
from rewrite.egraph.classes import Classes
from rewrite.egraph.dataflow import all_shapes, has_operands
from rewrite.egraph.options import Options
from rewrite.egraph.report import StrategyReport
from rewrite.egraph.templates import tensors, written
from rewrite.step import Step
from rewrite.units import units
from rules.strategy import Proposal, Refusal, Rounding, ScalarUnit, Strategy


@dataclass(frozen=True, slots=True)
class Derivation:
    """One entry of the proof forest: ``step``, carried out in some program that holds the kernels ``needs`` (the first is the
    one at the site), made the kernels ``made``, and gave the unions. ``step`` is None for what follows from scalar unions."""

    step: Step | None
    rounding: Rounding
    needs: tuple[int, ...]
    made: tuple[int, ...]
    unions: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ScalarUnion:
    """A scalar strategy says that ``before``, in the equation of ``kernel``, equals ``after``, wherever it stands. ``names``: what
    the two call the tensors of the kernel, in the order of its holes."""

    kernel: int
    names: tuple[str, ...]
    before: Expr
    after: Expr


@dataclass(slots=True)
class Grown:
    """What an offer brought. Not ``complete``: the deadline passed before everything was tried."""

    derivations: list[Derivation] = field(default_factory=list)
    scalars: list[ScalarUnion] = field(default_factory=list)
    complete: bool = True


def grow(
    strategy: Strategy, held: Assembled, at: int, view: Classes, options: Options, report: StrategyReport, deadline: float
) -> Grown:
    """Everything that a strategy makes of the expression number ``at`` of a program, or of a window that starts there, until the
    deadline, a reading of ``perf_counter``."""
    started = perf_counter()
    grown = Grown()
    for site, unit in units(strategy, held.program, options.target):
        if site.path[0] != at:
            continue
        report.offers += 1
        for args in arguments(strategy.name, unit):
            if perf_counter() > deadline:
                grown.complete = False
                break
            report.matches += 1
            outcome = carry_out(held.program, strategy, site, unit, args, options.target, options.risky)
            if isinstance(outcome, Refusal):
                continue
            report.legal += 1
            if isinstance(unit, ScalarUnit):
                proposal = propose(strategy.name, unit, args)
                assert isinstance(proposal, Proposal)
                names = tensors(held.program.nests[at])
                grown.scalars.append(ScalarUnion(held.kernels[at], names, unit.expr, proposal.result))
            derivation = brought_in(outcome, held, at, view)
            if derivation is not None:
                report.unions += len(derivation.unions)
                grown.derivations.append(derivation)
    report.seconds += perf_counter() - started
    return grown


def brought_in(outcome: Applied, held: Assembled, at: int, view: Classes) -> Derivation | None:
    """The kernels and unions of a step; None if it brings nothing new."""
    flow = view.flow
    old, new = outcome.before.nests, outcome.program.nests
    start, end = _common(old, new)
    versions = flow.inputs()
    for nest, kernel in zip(old[:start], held.kernels[:start], strict=True):
        versions.update(zip(written(nest), view.outputs(kernel), strict=True))
    before = dict(versions)
    for nest, kernel in zip(old[start : len(old) - end], held.kernels[start : len(old) - end], strict=True):
        before.update(zip(written(nest), view.outputs(kernel), strict=True))
    if not has_operands(new[start : len(new) - end], versions):
        return None
    last = len(flow.kernels)
    made = [kernel for kernel, *_ in flow.add(new[start : len(new) - end], versions, all_shapes(outcome.program), start)]
    live = {name for nest in old[len(old) - end :] for name in tensors(nest)} | set(flow.roots)
    unions = []
    for name, value in before.items():
        if name in live:
            other = versions[name]
            if (view.leader[other] if other < len(view.leader) else other) != value:
                unions.append((value, other))
    if not unions and all(kernel < last for kernel in made):
        return None
    gone = held.kernels[start : len(old) - end]
    needs = dict.fromkeys((held.kernels[at], *(k for k in gone if k not in made)))
    fresh = tuple(k for k in made if k not in gone)
    return Derivation(outcome.step, outcome.rounding, tuple(needs), fresh, tuple(unions))


def _common(old: Sequence[Nest], new: Sequence[Nest]) -> tuple[int, int]:
    """How many expressions two programs share at their beginnings and at their ends."""
    shorter = min(len(old), len(new))
    start = next((k for k in range(shorter) if old[k] is not new[k]), shorter)
    end = next((k for k in range(shorter - start) if old[-1 - k] is not new[-1 - k]), shorter - start)
    return start, end
