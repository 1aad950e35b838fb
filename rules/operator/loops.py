"""Operator level: strategies that rewrite the list of loops of one nest and never touch its body (strategies.md).

A loop is a list of digits of logical axes, so these are operations on lists; what must be proved is in `rules.legality.decide`.
Arguments name a loop by its place in the nest, 0 for the outermost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, permutations

from leir import digits
from leir.ir import GPU_AXES, Kind, Loop, Nest
from leir.names import fresh_bound_index, fresh_index
from rules.legality.decide import Legal, new_order, same_order
from rules.strategy import Argument, Arguments, Proposal, Refusal, ScheduleUnit

MAX_PERMUTED = 4  # loops; a nest with more is reordered by one swap or one move


# ----------------------------------------------------------------------------------------------------------------- loop_split


def splits(unit: ScheduleUnit) -> Iterator[Arguments]:
    """Every loop, and every proper inner extent at a digit boundary, ascending."""
    for number, loop in enumerate(unit.nest.schedule):
        for factor in digits.split_points(loop.digits):
            yield (("loop", number), ("factor", factor))


def loop_split(unit: ScheduleUnit, arguments: Arguments) -> Proposal | Refusal:
    """One loop becomes an outer one, serial, with a fresh index, and an inner one of extent `factor`, which keeps kind and index.

    before::

        # A f32[16,32] input
        # D f32[16] input
        # E f32[16,32] output
        B^{16}_{tx=0}L^{32}_{a=0}[E^{f32,g}_{tx,a}=A^{f32,g}_{tx,a}/D^{f32,g}_{tx};];

    step::

        loop_split 0 loop=0 factor=4

    after::

        # A f32[16,32] input
        # D f32[16] input
        # E f32[16,32] output
        L^{4}_{c=0}B^{4}_{tx=0}L^{32}_{a=0}[E^{f32,g}_{c*4+tx,a}=A^{f32,g}_{c*4+tx,a}/D^{f32,g}_{c*4+tx};];

    Legal always: every instance keeps its place in the order. The kernel must stay valid, and an index bound in another item keeps
    one extent.

    From Table 8 of the paper.
    """
    given: Mapping[str, Argument] = dict(arguments)
    number, factor = given["loop"], given["factor"]
    assert isinstance(number, int)
    assert isinstance(factor, int)
    schedule = unit.nest.schedule
    loop = schedule[number]
    cut = digits.split(loop.digits, factor)
    assert cut is not None, "parameters name digit boundaries only"
    outer = Loop("L", fresh_index({x.name for x in unit.on_paths}), cut[0])
    inner = Loop(loop.kind, loop.name, cut[1])
    return _proposal(unit, (*schedule[:number], outer, inner, *schedule[number + 1 :]), same_order)


# --------------------------------------------------------------------------------------------------------------- loop_reorder


def orders(unit: ScheduleUnit) -> Iterator[Arguments]:
    """Up to 4 loops all permutations, beyond that all swaps of two loops and all moves of one; never the order there is."""
    count = len(unit.nest.schedule)
    written = tuple(range(count))
    if count <= MAX_PERMUTED:
        found = set(permutations(written))
    else:
        found = {_swapped(written, i, j) for i, j in combinations(written, 2)}
        found |= {_moved(written, i, j) for i, j in permutations(written, 2)}
    for order in sorted(found - {written}):
        yield (("order", order),)


def _swapped(order: tuple[int, ...], i: int, j: int) -> tuple[int, ...]:
    exchanged = {i: j, j: i}
    return tuple(exchanged.get(k, k) for k in order)


def _moved(order: tuple[int, ...], start: int, end: int) -> tuple[int, ...]:
    rest = [k for k in order if k != start]
    return (*rest[:end], start, *rest[end:])


def loop_reorder(unit: ScheduleUnit, arguments: Arguments) -> Proposal | Refusal:
    """The loops of one nest run in another order; `order` lists their places, the new outermost first.

    before::

        # A f32[8,16] input
        # C f32[16,32] input
        # D f32[8,32] output
        L^{8}_{a=0}L^{32}_{c=0}L^{16}_{d=0}[D^{f32,g}_{a,c}=D^{f32,g}_{a,c}+A^{f32,g}_{a,d}*C^{f32,g}_{d,c};];

    step::

        loop_reorder 0 order=0,2,1

    after::

        # A f32[8,16] input
        # C f32[16,32] input
        # D f32[8,32] output
        L^{8}_{a=0}L^{16}_{d=0}L^{32}_{c=0}[D^{f32,g}_{a,c}=D^{f32,g}_{a,c}+A^{f32,g}_{a,d}*C^{f32,g}_{d,c};];

    Legal when no dependence is reversed. Accumulations into one element may change places, which reassociates; here they do not:
    each element still sums over d upwards.

    From Table 8 of the paper.
    """
    (order,) = (value for _, value in arguments)
    assert isinstance(order, tuple)
    schedule = unit.nest.schedule
    return _proposal(unit, tuple(schedule[int(k)] for k in order), new_order)


# --------------------------------------------------------------------------------------------------------------- loop_binding


def bindings(unit: ScheduleUnit) -> Iterator[Arguments]:
    """Every serial loop, on every GPU index that no loop on a path through the nest has."""
    taken = {loop.gpu_axis for loop in unit.on_paths}
    for number, loop in enumerate(unit.nest.schedule):
        if loop.kind == "L":
            for axis in GPU_AXES:
                if axis not in taken:
                    yield (("loop", number), ("axis", axis))


def loop_binding(unit: ScheduleUnit, arguments: Arguments) -> Proposal | Refusal:
    """A serial loop is mapped to a GPU index, and takes its name.

    before::

        # D f32[16,64] input
        # C f32[64,71] input
        # E f32[16,71] output
        B^{16}_{tx=0}L^{71}_{a=0}L^{64}_{c=0}[E^{f32,g}_{tx,a}=E^{f32,g}_{tx,a}+D^{f32,g}_{tx,c}*C^{f32,g}_{c,a};];

    step::

        loop_binding 0 loop=1 axis=bz

    after::

        # D f32[16,64] input
        # C f32[64,71] input
        # E f32[16,71] output
        B^{16}_{tx=0}B^{71}_{bz=0}L^{64}_{c=0}[E^{f32,g}_{tx,bz}=E^{f32,g}_{tx,bz}+D^{f32,g}_{tx,c}*C^{f32,g}_{c,bz};];

    Legal when the loop carries no dependence, an accumulation included, and the kernel stays within the limits of a GPU: 1,024
    threads, one extent per index, every item under all block indices.

    From Table 8 of the paper.
    """
    given: Mapping[str, Argument] = dict(arguments)
    number, axis = given["loop"], given["axis"]
    assert isinstance(number, int)
    assert isinstance(axis, str)
    schedule = unit.nest.schedule
    kind: Kind = "B"
    bound = Loop(kind, fresh_bound_index(axis, {x.name for x in unit.on_paths}), schedule[number].digits)
    return _proposal(unit, (*schedule[:number], bound, *schedule[number + 1 :]), new_order)


def _proposal(
    unit: ScheduleUnit, schedule: tuple[Loop, ...], decide: Callable[[Nest, Nest], Legal | Refusal]
) -> Proposal | Refusal:
    verdict = decide(unit.expression, unit.with_schedule(schedule))
    return verdict if isinstance(verdict, Refusal) else Proposal(schedule, verdict.rounding, verdict.proofs)
