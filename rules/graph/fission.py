"""Graph level: an expression is cut in two, and two neighbouring expressions swap (strategies.md).

Both run what they touch in another order and change nothing else, so both are decided by dependences alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from leir.ir import Access, Expr, Item, Nest, Tensor, children, equations, with_children
from leir.lift import flatten, lift, map_item
from leir.polyhedral import OverBudgetError, Statement, Touch, conflict, conflict_kind, statements, touches, within_budget
from rules.legality.decide import same_order
from rules.legality.dependence import Clash, Undecided, clash_in
from rules.legality.sharing import Crossing, crossings
from rules.legality.witness import sentence, witness, witness_between
from rules.strategy import Arguments, Proof, Proposal, Refusal, WindowUnit, Witness

# ---------------------------------------------------------------------------------------------------------- operator_fission


def cuts(unit: WindowUnit) -> Iterator[Arguments]:
    """Every place between two items of the body."""
    (expression,) = unit.expressions
    for cut in range(1, len(expression.body)):
        yield (("cut", cut),)


def operator_fission(unit: WindowUnit, arguments: Arguments) -> Proposal | Refusal:
    """A body is cut before item number `cut`, and its two parts become two expressions with the same loops.

    before::

        # A f32[8,16] input
        # C f32[16,32] input
        # E f32[8,32] output
        L^{8}_{a=0}L^{32}_{c=0}[
        L^{16}_{d=0}[D^{f32,g}_{a,c}=D^{f32,g}_{a,c}+A^{f32,g}_{a,d}*C^{f32,g}_{d,c};];
        E^{f32,g}_{a,c}=max(D^{f32,g}_{a,c},0);];

    step::

        operator_fission 0 cut=1

    after::

        # A f32[8,16] input
        # C f32[16,32] input
        # E f32[8,32] output
        L^{8}_{a=0}L^{32}_{c=0}[L^{16}_{d=0}[D^{f32,g}_{a,c}=D^{f32,g}_{a,c}+A^{f32,g}_{a,d}*C^{f32,g}_{d,c};];];
        L^{8}_{a=0}L^{32}_{c=0}[E^{f32,g}_{a,c}=max(D^{f32,g}_{a,c},0);];

    Legal when no iteration of the first part depends on an earlier one of the second, and when both parts are valid kernels. Shared
    and local memory ends with a launch, so a temporary that both parts touch becomes global.

    From Table 7 of the paper.
    """
    ((_, cut),) = arguments
    assert isinstance(cut, int)
    (expression,) = unit.expressions
    moved = _crossing_temporaries(expression.body[:cut], expression.body[cut:])
    whole = flatten(_global(expression, moved))
    first, second = (Nest(whole.axes, whole.schedule, items) for items in (whole.body[:cut], whole.body[cut:]))
    crossing = next((c for c in crossings(first, second, len(whole.axes)) if c.sign < 0), None)
    if crossing is not None:
        return _reversed(whole, cut, crossing)
    kernels: list[Proof] = []
    for part in (lift(first), lift(second)):
        verdict = same_order(part, part)
        if isinstance(verdict, Refusal):
            return verdict
        kernels += [proof for proof in verdict.proofs if proof.condition != "order" and proof not in kernels]
    order = Proof("order", "isl", "no iteration of the first part touches what an earlier iteration of the second part touches")
    scopes = [Proof("scopes", "construction", f"{name} is used on both sides of the cut and becomes global") for name in moved]
    return Proposal((first, second), "bitwise", (order, *scopes, *kernels))


def _reversed(whole: Nest, cut: int, crossing: Crossing) -> Refusal:
    """An instance of the second part that runs before one of the first, and must."""
    clash = crossing.clash
    if clash is None:
        return _over_budget(crossing.tensor.name)
    s = replace(clash.s, path=(0, *clash.s.path[1:]))
    t = replace(clash.t, path=(0, clash.t.path[1] + cut, *clash.t.path[2:]))
    found = witness(whole, Clash(s, clash.a, clash.x, t, clash.b, clash.y))
    return _refused(found, clash, "the first part would run in full before the second")


def _crossing_temporaries(first: Sequence[Item], second: Sequence[Item]) -> tuple[str, ...]:
    """The temporaries in shared or local memory that both parts touch, in the order of the text."""
    theirs = {tensor.name for tensor in _tensors(second)}
    return tuple(dict.fromkeys(t.name for t in _tensors(first) if t.scope != "g" and t.name in theirs))


def _tensors(items: Sequence[Item]) -> Iterator[Tensor]:
    return (touch.access.tensor for item in items for equation in equations(item) for touch in touches(equation))


def _global(expression: Nest, names: Sequence[str]) -> Nest:
    """The expression with these temporaries in global memory."""
    if not names:
        return expression

    def visit(expr: Expr) -> Expr:
        parts = children(expr)
        new = with_children(expr, tuple(visit(part) for part in parts)) if parts else expr
        if isinstance(new, Access) and new.tensor.name in names:
            return Access(Tensor(new.tensor.name, new.tensor.dtype, "g"), new.subscripts)
        return new

    changed = map_item(expression, visit)
    assert isinstance(changed, Nest)
    return changed


# --------------------------------------------------------------------------------------------------------- expression_reorder


def swaps(unit: WindowUnit) -> Iterator[Arguments]:
    """The one swap of two neighbours; it takes no arguments."""
    yield ()


def expression_reorder(unit: WindowUnit, arguments: Arguments) -> Proposal | Refusal:
    """Two neighbouring expressions swap.

    before::

        # A f32[8,16] input
        # C f32[8] output
        # D f32[16] output
        L^{8}_{a=0}L^{16}_{c=0}[C^{f32,g}_{a}=C^{f32,g}_{a}+A^{f32,g}_{a,c};];
        L^{16}_{c=0}L^{8}_{a=0}[D^{f32,g}_{c}=max(D^{f32,g}_{c},A^{f32,g}_{a,c});];

    step::

        expression_reorder 0

    after::

        # A f32[8,16] input
        # C f32[8] output
        # D f32[16] output
        L^{16}_{c=0}L^{8}_{a=0}[D^{f32,g}_{c}=max(D^{f32,g}_{c},A^{f32,g}_{a,c});];
        L^{8}_{a=0}L^{16}_{c=0}[C^{f32,g}_{a}=C^{f32,g}_{a}+A^{f32,g}_{a,c};];

    Legal when no element that one of them writes is touched by the other. Two accumulations into one element by different
    equations count as ordered.

    From Table 7 of the paper.
    """
    first, second = unit.expressions
    match _meeting(first, second):
        case Clash() as clash:
            return _refused(witness_between(first, second, clash), clash, "they would run the other way round")
        case Undecided(tensor=tensor):
            return _over_budget(tensor)
    order = Proof("order", "isl", "neither expression touches an element that the other one writes")
    return Proposal((second, first), "bitwise", (order,))


@lru_cache(maxsize=20_000)
def _meeting(first: Nest, second: Nest) -> Clash | Undecided | None:
    """Two instances, one of each expression, that touch one element which one of them writes."""
    theirs: dict[str, list[tuple[Statement, Touch]]] = {}
    for t in statements((second,), first=1):
        for b in t.touches:
            theirs.setdefault(b.access.tensor.name, []).append((t, b))
    for s in statements((first,)):
        for a in s.touches:
            for t, b in theirs.get(a.access.tensor.name, ()):
                if conflict_kind(s, a, t, b) is None:
                    continue
                try:
                    clash: Clash | None = within_budget(lambda s=s, a=a, t=t, b=b: clash_in(conflict(s, a, t, b), s, a, t, b))
                except OverBudgetError:
                    return Undecided(a.access.tensor.name)
                if clash is not None:
                    return clash
    return None


# ------------------------------------------------------------------------------------------------------------------- refusals


def _refused(found: Witness, clash: Clash, consequence: str) -> Refusal:
    code = "dependence-reversed" if clash.exact else "dependence-inexact"
    return Refusal(code, f"{sentence(found, clash.exact)}; {consequence}", found)


def _over_budget(tensor: str) -> Refusal:
    return Refusal(
        "over-budget", f"isl ran over its budget on the accesses to {tensor}; nothing was proved, so the step is refused"
    )
