"""Is a change of loops legal? Strategies say what they change; how it is proved is here (leir.md, section 5; facts-isl.md).

Order of a decision: the structure of the kernel, which needs no isl; what the loops carry, by sign vectors; the rest by isl under
an operation budget. Over budget means refused, with that code.
"""

from __future__ import annotations

from dataclasses import dataclass

from leir.ir import Nest
from leir.lift import flatten
from rules.legality.dependence import Clash, Undecided, conflicts, skeleton
from rules.legality.kernel import crossed_blocks, is_kernel, structure_problem
from rules.legality.sharing import first_crossing
from rules.legality.timeline import Order, Violation, compare_orders, loops_around
from rules.legality.witness import sentence, witness, witness_between
from rules.strategy import Proof, Refusal, Rounding, Witness


@dataclass(frozen=True, slots=True)
class Legal:
    """The change keeps the meaning: what it does to rounding, and what proved each condition."""

    rounding: Rounding
    proofs: tuple[Proof, ...]


def same_order(old: Nest, new: Nest) -> Legal | Refusal:
    """Decide a change of the loops of an expression that by construction runs every instance in its old place (a split). What is
    left to show is that the kernel is valid."""
    refusal = structure_problem(new) or _order_problem(old, old) or _blocks_problem(new)
    if refusal is not None:
        return refusal
    return Legal("bitwise", (Proof("order", "construction", "every instance runs in its old place"), *_kernel_proofs(new)))


def new_order(old: Nest, new: Nest) -> Legal | Refusal:
    """Decide a change of the loops of an expression, its body left alone: every hard dependence keeps its order, and no P, V or B
    loop carries anything."""
    refusal = structure_problem(new) or _order_problem(old, new) or _blocks_problem(new)
    if refusal is not None:
        return refusal
    verdict = compare_orders(old, new)
    assert isinstance(verdict, Order)
    hard = sorted({c.tensor for c in conflicts(skeleton(new)) if c.hard})
    if hard:
        order = Proof("order", "isl", f"every dependence between iterations, on {', '.join(hard)}, keeps its order")
    else:
        order = Proof("order", "isl", "no dependence runs between iterations")
    return Legal("reassociates" if verdict.reassociates else "bitwise", (order, *_kernel_proofs(new)))


def shared_loops(first: Nest, second: Nest, depth: int, fused: Nest) -> Legal | Refusal:
    """Decide whether two consecutive expressions may share their outermost ``depth`` loops; ``fused`` is the result, flat."""
    refusal = structure_problem(fused) or _order_problem(first, first) or _order_problem(second, second)
    refusal = refusal or _sharing_problem(flatten(first), flatten(second), depth) or _blocks_problem(fused)
    if refusal is not None:
        return refusal
    order = Proof("order", "isl", "no iteration of the second touches what a later iteration of the first touches")
    return Legal("bitwise", (order, *_kernel_proofs(fused)))


# ------------------------------------------------------------------------------------------------------------------- refusals


def _order_problem(old: Nest, new: Nest) -> Refusal | None:
    match compare_orders(old, new):
        case Violation(clash=clash, how=how, at=at):
            loop = next(p.loop for p in loops_around(new, at.nest) if (p.nest, p.number) == (at.nest, at.number))
            if how == "reversed":
                return _clash_problem(
                    "dependence-reversed", witness(old, clash), clash, f"loop {loop.name} would run them the other way round"
                )
            found = witness(old, clash)
            code = "reduction-bound" if found.kind == "accumulation" and loop.kind == "B" else "carried-dependence"
            return _clash_problem(code, found, clash, f"the {loop.kind} loop {loop.name} would run both at once")
        case Undecided(tensor=tensor):
            return _over_budget(tensor)
    return None


def _sharing_problem(first: Nest, second: Nest, depth: int) -> Refusal | None:
    crossing = first_crossing(first, second, depth)
    if crossing is None:
        return None
    clash, loop = crossing.clash, first.schedule[crossing.level]
    if clash is None:
        return _over_budget(crossing.tensor.name)
    found = witness_between(first, second, clash)
    if loop.kind in ("L", "U"):
        return _clash_problem("dependence-reversed", found, clash, f"a shared loop {loop.name} would run them the other way round")
    return _clash_problem("carried-dependence", found, clash, f"a shared {loop.kind} loop {loop.name} would run both at once")


def _blocks_problem(expression: Nest) -> Refusal | None:
    if not is_kernel(expression):
        return None
    match crossed_blocks(expression):
        case Clash() as clash:
            return _clash_problem("crosses-blocks", witness(expression, clash), clash, "they would run in two blocks of one launch")
        case Undecided(tensor=tensor):
            return _over_budget(tensor)
    return None


def _clash_problem(code: str, found: Witness, clash: Clash, consequence: str) -> Refusal:
    return Refusal(code if clash.exact else "dependence-inexact", f"{sentence(found, clash.exact)}; {consequence}", found)


def _over_budget(tensor: str) -> Refusal:
    return Refusal(
        "over-budget", f"isl ran over its budget on the accesses to {tensor}; nothing was proved, so the step is refused"
    )


def _kernel_proofs(expression: Nest) -> tuple[Proof, ...]:
    if not is_kernel(expression):
        return ()
    return (
        Proof("kernel", "construction", "each GPU index once per path, one extent each, within the limits"),
        Proof("blocks", "isl", "no two blocks of one launch touch one element that one of them writes"),
    )
