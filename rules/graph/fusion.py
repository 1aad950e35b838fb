"""Graph level: strategies that rearrange whole expressions (strategies.md)."""

from __future__ import annotations

from collections.abc import Iterator

from leir.ir import Item, Loop, Nest
from leir.lift import flatten
from leir.names import fresh_bound_index, fresh_index
from rules.legality.decide import shared_loops
from rules.legality.sharing import shared_depth
from rules.strategy import Arguments, Proposal, Refusal, WindowUnit


def depths(unit: WindowUnit) -> Iterator[Arguments]:
    """From one shared loop to all outermost loops that agree in kind, extent and GPU index."""
    first, second = unit.expressions
    for depth in range(1, shared_depth(first, second) + 1):
        yield (("depth", depth),)


def operator_fusion(unit: WindowUnit, arguments: Arguments) -> Proposal | Refusal:
    """Two consecutive expressions share their `depth` outermost loops; what is left of each becomes an item of the new body.

    before::

        # A f32[8,16] input
        # C f32[16,32] input
        # E f32[8,32] output
        L^{8}_{a=0}L^{32}_{c=0}L^{16}_{d=0}[D^{f32,g}_{a,c}=D^{f32,g}_{a,c}+A^{f32,g}_{a,d}*C^{f32,g}_{d,c};];
        L^{8}_{a=0}L^{32}_{d=0}[E^{f32,g}_{a,d}=max(D^{f32,g}_{a,d},0);];

    step::

        operator_fusion 0 depth=2

    after::

        # A f32[8,16] input
        # C f32[16,32] input
        # E f32[8,32] output
        L^{8}_{a=0}L^{32}_{c=0}[
        L^{16}_{d=0}[D^{f32,g}_{a,c}=D^{f32,g}_{a,c}+A^{f32,g}_{a,d}*C^{f32,g}_{d,c};];
        E^{f32,g}_{a,c}=max(D^{f32,g}_{a,c},0);];

    Legal when no iteration of the second depends on a later one of the first under the shared loops, when no shared P, V or B loop
    carries a dependence between the two, and when the result is a valid kernel. Where an axis runs partly outside the bracket and
    partly inside, it is cut there: `i` becomes `i1*61+i0`.

    From Table 7 of the paper.
    """
    ((_, depth),) = arguments
    assert isinstance(depth, int)
    first, second = unit.expressions
    fused = _fused(flatten(first), flatten(second), depth)
    verdict = shared_loops(first, second, depth, fused)
    return verdict if isinstance(verdict, Refusal) else Proposal((fused,), verdict.rounding, verdict.proofs)


def _fused(first: Nest, second: Nest, depth: int) -> Nest:
    """The two flat expressions under the loops of the first, flat. Axes are numbered by depth, so they stay what they are."""
    shared = first.schedule[:depth]
    rest = _renamed(second, {loop.name for loop in shared}, depth)
    return Nest(first.axes[:depth], shared, (*_remainder(first, depth), *_remainder(rest, depth)))


def _remainder(nest: Nest, depth: int) -> tuple[Item, ...]:
    """What stands below the outermost ``depth`` loops, as items."""
    if len(nest.schedule) == depth:
        return nest.body
    return (Nest(nest.axes[depth:], nest.schedule[depth:], nest.body),)


def _renamed(nest: Nest, taken: set[str], depth: int = 0) -> Nest:
    """The nest with its loops from number ``depth`` on renamed where their index is taken further out."""
    taken = set(taken)
    below = {loop.name for loop in nest.schedule[depth:]} | _names_below(nest)
    schedule = list(nest.schedule[:depth])
    for loop in nest.schedule[depth:]:
        name = loop.name
        if name in taken:
            free = taken | below
            name = fresh_bound_index(name[:2], free) if loop.kind == "B" else fresh_index(free)
        taken.add(name)
        schedule.append(Loop(loop.kind, name, loop.digits))
    body = tuple(_renamed(item, taken) if isinstance(item, Nest) else item for item in nest.body)
    return Nest(nest.axes, tuple(schedule), body)


def _names_below(nest: Nest) -> set[str]:
    found: set[str] = set()
    for item in nest.body:
        if isinstance(item, Nest):
            found |= {loop.name for loop in item.schedule} | _names_below(item)
    return found
