"""Operator level: two neighbouring loops of a nest become four, or one (strategies.md).

`pair` is the place of the outer one in the nest, 0 for the outermost; the inner one is the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise, product

from leir import digits
from leir.ir import Access, Index, Kind, Loop, Nest, accumulation, equations, subexpressions
from leir.names import fresh_index
from rules.legality.decide import new_order, same_order
from rules.strategy import Argument, Arguments, Proposal, Refusal, ScheduleUnit

# ---------------------------------------------------------------------------------------------------------------- loop_tiling


def tilings(unit: ScheduleUnit) -> Iterator[Arguments]:
    """Every two neighbouring loops, and for each of them every proper inner extent at a digit boundary, ascending."""
    schedule = unit.nest.schedule
    for number, (outer, inner) in enumerate(pairwise(schedule)):
        for factors in product(digits.split_points(outer.digits), digits.split_points(inner.digits)):
            yield (("pair", number), ("factors", factors))


def loop_tiling(unit: ScheduleUnit, arguments: Arguments) -> Proposal | Refusal:
    """Two neighbouring loops become four: two outer ones, serial, with fresh indices, then two inner ones of extents `factors`,
    which keep kind and index.

    before::

        # A f16[255,255] input
        # C f16[255,255] input
        # D f16[255,255] output
        B^{255}_{tx=0}L^{255}_{a=0}L^{255}_{c=0}[D^{f16,g}_{tx,a}=D^{f16,g}_{tx,a}+A^{f16,g}_{tx,c}*C^{f16,g}_{c,a};];

    step::

        loop_tiling 0 pair=0 factors=17,85

    after::

        # A f16[255,255] input
        # C f16[255,255] input
        # D f16[255,255] output
        L^{15}_{d=0}L^{3}_{f=0}B^{17}_{tx=0}L^{85}_{a=0}L^{255}_{c=0}
        [D^{f16,g}_{d*17+tx,f*85+a}=D^{f16,g}_{d*17+tx,f*85+a}+A^{f16,g}_{d*17+tx,c}*C^{f16,g}_{c,f*85+a};];

    Legal when no dependence is reversed: it contains a reorder. Accumulations into one element may change places, which
    reassociates; here they do not.

    From Table 8 of the paper.
    """
    given: Mapping[str, Argument] = dict(arguments)
    number, extents = given["pair"], given["factors"]
    assert isinstance(number, int)
    assert isinstance(extents, tuple)
    factors = [int(extent) for extent in extents]
    schedule = unit.nest.schedule
    taken = {loop.name for loop in unit.on_paths}
    outer: list[Loop] = []
    inner: list[Loop] = []
    for loop, factor in zip(schedule[number : number + 2], factors, strict=True):
        cut = digits.split(loop.digits, factor)
        assert cut is not None, "parameters name digit boundaries only"
        outer.append(Loop("L", fresh_index(taken), cut[0]))
        inner.append(Loop(loop.kind, loop.name, cut[1]))
        taken.add(outer[-1].name)
    new = (*schedule[:number], *outer, *inner, *schedule[number + 2 :])
    verdict = new_order(unit.expression, unit.with_schedule(new))
    return verdict if isinstance(verdict, Refusal) else Proposal(new, verdict.rounding, verdict.proofs)


# ---------------------------------------------------------------------------------------------------------------- loop_fusion


def neighbours(unit: ScheduleUnit) -> Iterator[Arguments]:
    """Every two neighbouring loops."""
    for number in range(len(unit.nest.schedule) - 1):
        yield (("pair", number),)


def loop_fusion(unit: ScheduleUnit, arguments: Arguments) -> Proposal | Refusal:
    """Two neighbouring loops become one, with the index of the inner one; if only one of them is bound, it is bound like that one.

    before::

        # C f32[228,491] input
        # E f32[491,228] output
        L^{2}_{f=0}B^{114}_{tx=0}L^{491}_{a=0}[E^{f32,g}_{a,f*114+tx}=C^{f32,g}_{f*114+tx,a};];

    step::

        loop_fusion 0 pair=0

    after::

        # C f32[228,491] input
        # E f32[491,228] output
        B^{228}_{tx=0}L^{491}_{a=0}[E^{f32,g}_{a,tx}=C^{f32,g}_{tx,a};];

    Legal when the kinds agree, or when one loop is bound, the other serial and free of carried dependences, within the limits of a
    GPU; never for a reduction loop with a spatial one. Fusion undoes a split; where there was none, the loops of extents N and E
    become one loop k, and stand in the text as `k//E` and `k%E`.

    From Table 8 of the paper.
    """
    ((_, number),) = arguments
    assert isinstance(number, int)
    schedule = unit.nest.schedule
    outer, inner = schedule[number : number + 2]
    like = _like(outer, inner)
    if like is None:
        return Refusal("kinds-differ", f"loop {outer.name} is {_KIND[outer.kind]} and loop {inner.name} is {_KIND[inner.kind]}")
    mixed = _mixed(unit.nest, outer, inner)
    if mixed is not None:
        return mixed
    new = (*schedule[:number], Loop(like.kind, like.name, digits.fuse(outer.digits, inner.digits)), *schedule[number + 2 :])
    decide = new_order if like.kind == "B" else same_order
    verdict = decide(unit.expression, unit.with_schedule(new))
    return verdict if isinstance(verdict, Refusal) else Proposal(new, verdict.rounding, verdict.proofs)


_KIND: Mapping[Kind, str] = {"L": "serial", "P": "parallel", "V": "vectorized", "U": "unrolled", "B": "bound"}


def _like(outer: Loop, inner: Loop) -> Loop | None:
    """The loop whose kind and index the fused one takes; None where the kinds do not go together."""
    if outer.kind == inner.kind or (outer.kind, inner.kind) == ("L", "B"):
        return inner
    return outer if (outer.kind, inner.kind) == ("B", "L") else None


def _mixed(nest: Nest, outer: Loop, inner: Loop) -> Refusal | None:
    """Refused where one of the loops is a reduction loop of an accumulation below, and the other is not."""
    for equation in equations(nest):
        if accumulation(equation) is None:
            continue
        kept = axes_of(equation.target)
        reduced = [loop for loop in (outer, inner) if is_reduced(loop, kept)]
        if len(reduced) == 1 and outer.extent > 1 and inner.extent > 1:
            (loop,) = reduced
            other = inner if loop is outer else outer
            name = equation.target.tensor.name
            message = f"{name} is accumulated over loop {loop.name} and not over loop {other.name}; they stay apart"
            return Refusal("reduction-with-spatial", message)
    return None


def axes_of(target: Access) -> frozenset[int]:
    """The axes that occur in the subscripts of a target."""
    return frozenset(e.axis for sub in target.subscripts for e in subexpressions(sub) if isinstance(e, Index))


def is_reduced(loop: Loop, kept: frozenset[int]) -> bool:
    """Whether none of a loop's axes is one of ``kept``, those of a target: iterations of the loop accumulate into one element."""
    return all(digit.axis not in kept for digit in loop.digits)
