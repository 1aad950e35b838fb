"""Operator level: a serial loop becomes unrolled, parallel or vectorized (strategies.md).

Only the kind of one loop changes; `loop` names it by its place in the nest, 0 for the outermost.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from leir.ir import Equation, Kind, Loop, Nest
from rules.legality.decide import new_order, same_order
from rules.legality.vector import store_problem
from rules.strategy import Arguments, Proof, Proposal, Refusal, ScheduleUnit

MAX_UNROLLED = 256
"""The largest product of the extents of unrolled loops on one path: the number of copies of an equation."""

LANES = (2, 3, 4, 8, 16)
"""The extents that a vectorized loop may have."""


# -------------------------------------------------------------------------------------------------------------- loop_unrolling


def serial_loops(unit: ScheduleUnit) -> Iterator[Arguments]:
    """Every serial loop."""
    for number, loop in enumerate(unit.nest.schedule):
        if loop.kind == "L":
            yield (("loop", number),)


def loop_unrolling(unit: ScheduleUnit, arguments: Arguments) -> Proposal | Refusal:
    """A serial loop is unrolled: its code is repeated, once per iteration.

    before::

        # D f64[16,32,64,64] input
        # C f64[16,32,32,32] output
        B^{16}_{tx=0}L^{32}_{a=0}L^{32}_{c=0}L^{32}_{d=0}L^{2}_{f=0}L^{2}_{g=0}
        [C^{f64,g}_{tx,a,c,d}=max(C^{f64,g}_{tx,a,c,d},D^{f64,g}_{tx,a,c*2+f,d*2+g});];

    step::

        loop_unrolling 0 loop=1

    after::

        # D f64[16,32,64,64] input
        # C f64[16,32,32,32] output
        B^{16}_{tx=0}U^{32}_{a=0}L^{32}_{c=0}L^{32}_{d=0}L^{2}_{f=0}L^{2}_{g=0}
        [C^{f64,g}_{tx,a,c,d}=max(C^{f64,g}_{tx,a,c,d},D^{f64,g}_{tx,a,c*2+f,d*2+g});];

    Legal always: the iterations keep their order. On no path may the extents of the unrolled loops multiply to more than 256.

    From Table 8 of the paper.
    """
    number = _number(arguments)
    new = _with_kind(unit, number, "U")
    copies = _copies(unit, new)
    if copies > MAX_UNROLLED:
        name = unit.nest.schedule[number].name
        message = f"with loop {name} unrolled an equation would be repeated {copies} times, and the limit is {MAX_UNROLLED}"
        return Refusal("unroll-limit", message)
    verdict = same_order(unit.expression, unit.with_schedule(new))
    return verdict if isinstance(verdict, Refusal) else Proposal(new, verdict.rounding, verdict.proofs)


def _copies(unit: ScheduleUnit, schedule: tuple[Loop, ...]) -> int:
    """The largest product of the extents of unrolled loops on a path through the nest."""
    around = prod(loop.extent for loop in (*unit.enclosing, *schedule) if loop.kind == "U")
    return around * max((_copies_below(item) for item in unit.nest.body if isinstance(item, Nest)), default=1)


def _copies_below(nest: Nest) -> int:
    own = prod(loop.extent for loop in nest.schedule if loop.kind == "U")
    return own * max((_copies_below(item) for item in nest.body if isinstance(item, Nest)), default=1)


# -------------------------------------------------------------------------------------------------------- loop_parallelization


def parallelizable(unit: ScheduleUnit) -> Iterator[Arguments]:
    """Every serial loop that stands inside no parallel and no vectorized one."""
    if any(loop.kind in ("P", "V") for loop in unit.enclosing):
        return
    for number, loop in enumerate(unit.nest.schedule):
        if loop.kind == "L":
            yield (("loop", number),)
        if loop.kind in ("P", "V"):
            return


def loop_parallelization(unit: ScheduleUnit, arguments: Arguments) -> Proposal | Refusal:
    """A serial loop runs its iterations in any order, on the threads of a CPU.

    before::

        # A f32[8,36,976,32] input
        # E f32[8,36,979,36] output
        B^{8}_{tx=0}L^{36}_{a=0}L^{979}_{c=0}L^{36}_{d=0}
        [E^{f32,g}_{tx,a,c,d}=if_then_else(1<=c<977&2<=d<34,A^{f32,g}_{tx,a,c-1,d-2},0);];

    step::

        loop_parallelization 0 loop=2

    after::

        # A f32[8,36,976,32] input
        # E f32[8,36,979,36] output
        B^{8}_{tx=0}L^{36}_{a=0}P^{979}_{c=0}L^{36}_{d=0}
        [E^{f32,g}_{tx,a,c,d}=if_then_else(1<=c<977&2<=d<34,A^{f32,g}_{tx,a,c-1,d-2},0);];

    Legal when the loop carries no dependence, an accumulation included. Inside a kernel the loop runs serially in its thread.

    From Table 8 of the paper.
    """
    new = _with_kind(unit, _number(arguments), "P")
    verdict = new_order(unit.expression, unit.with_schedule(new))
    return verdict if isinstance(verdict, Refusal) else Proposal(new, verdict.rounding, verdict.proofs)


# ---------------------------------------------------------------------------------------------------------- loop_vectorization


def innermost_loop(unit: ScheduleUnit) -> Iterator[Arguments]:
    """The innermost loop, if it is serial, has one of the extents in `LANES`, and no item below it has loops of its own."""
    schedule = unit.nest.schedule
    if not schedule or not all(isinstance(item, Equation) for item in unit.nest.body):
        return
    if schedule[-1].kind == "L" and schedule[-1].extent in LANES:
        yield (("loop", len(schedule) - 1),)


def loop_vectorization(unit: ScheduleUnit, arguments: Arguments) -> Proposal | Refusal:
    """The innermost serial loop runs its iterations at once, as the lanes of SIMD instructions.

    before::

        # E f64[178,105,2] input
        # F f64[178,105,2] output
        B^{178}_{tx=0}L^{105}_{a=0}L^{2}_{c=0}[F^{f64,g}_{tx,a,c}=E^{f64,g}_{tx,a,c};];

    step::

        loop_vectorization 0 loop=2

    after::

        # E f64[178,105,2] input
        # F f64[178,105,2] output
        B^{178}_{tx=0}L^{105}_{a=0}V^{2}_{c=0}[F^{f64,g}_{tx,a,c}=E^{f64,g}_{tx,a,c};];

    Legal when the loop carries no dependence, an accumulation included, and when each store is a vector of the target: neighbouring
    elements from a multiple of the number of lanes on; on a GPU, at most 16 bytes, and so are the reads that depend on the lane.

    From Table 8 of the paper.
    """
    new = _with_kind(unit, _number(arguments), "V")
    changed = unit.with_schedule(new)
    verdict = new_order(unit.expression, changed)
    if isinstance(verdict, Refusal):
        return verdict
    problem = store_problem(unit, changed)
    if problem is not None:
        return problem
    store = Proof("vector", "isl", f"each store is {new[-1].extent} neighbouring elements, from a multiple of {new[-1].extent} on")
    return Proposal(new, verdict.rounding, (*verdict.proofs, store))


def _number(arguments: Arguments) -> int:
    ((_, number),) = arguments
    assert isinstance(number, int)
    return number


def _with_kind(unit: ScheduleUnit, number: int, kind: Kind) -> tuple[Loop, ...]:
    schedule = unit.nest.schedule
    loop = schedule[number]
    return (*schedule[:number], Loop(kind, loop.name, loop.digits), *schedule[number + 1 :])
