"""The streaming family: what needs a row's maximum before it can sum, computed in one pass that corrects itself.

Only the algebra of one step and the treatment of infinite values are particular to this file; that the loops may run as they do is
shown as for any expression (`rules.legality.decide`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from math import inf
from typing import cast

from leir.ir import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Int,
    Nest,
    Real,
    Tensor,
    Unary,
    accesses,
    accumulation,
    equations,
    subexpressions,
)
from leir.lift import flatten, lift
from leir.names import fresh_tensor
from rules.legality.decide import same_order
from rules.mathematics.identity import verified
from rules.mathematics.matching import Matching, distinct_axes
from rules.mathematics.sums import Term
from rules.strategy import Arguments, Proof, Proposal, Refusal, WindowUnit

MINUS_INFINITY = Unary("-", Real(inf))
WIDER = {"f16": ("f32", "f64"), "bf16": ("f32", "f64"), "f32": ("f64",)}  # a cast that keeps every value, and the order


def parameters(unit: WindowUnit) -> Iterator[Arguments]:
    """One instance without arguments where the window is the maximum, the sum and the division of a softmax."""
    if recognised(unit.expressions) is not None:
        yield ()


def online_softmax(unit: WindowUnit, arguments: Arguments) -> Proposal | Refusal:
    """The maximum of a row and the sum of its exponentials in one pass: the sum so far is rescaled when the maximum grows.

    before::

        # A f32[8,16] input
        # E f32[8,16] output
        L^{8}_{a=0}L^{16}_{c=0}[C^{f32,g}_{a}=max(C^{f32,g}_{a},A^{f32,g}_{a,c});];
        L^{8}_{a=0}L^{16}_{c=0}[D^{f32,g}_{a}=D^{f32,g}_{a}+exp(A^{f32,g}_{a,c}-C^{f32,g}_{a});];
        L^{8}_{a=0}L^{16}_{c=0}[E^{f32,g}_{a,c}=exp(A^{f32,g}_{a,c}-C^{f32,g}_{a})/D^{f32,g}_{a};];

    step::

        online_softmax 0

    after::

        # A f32[8,16] input
        # E f32[8,16] output
        L^{8}_{a=0}L^{16}_{c=0}[
        F^{f32,g}_{a}=if_then_else(c-1<0,-inf,C^{f32,g}_{a});
        C^{f32,g}_{a}=max(F^{f32,g}_{a},A^{f32,g}_{a,c});
        D^{f32,g}_{a}=if_then_else(c-1<0|F^{f32,g}_{a}==-inf,0,D^{f32,g}_{a}*exp(F^{f32,g}_{a}-C^{f32,g}_{a}))+exp(A^{f32,g}_{a,c}-C^{f32,g}_{a});];
        L^{8}_{a=0}L^{16}_{c=0}[E^{f32,g}_{a,c}=exp(A^{f32,g}_{a,c}-C^{f32,g}_{a})/D^{f32,g}_{a};];

    Legal when the three read the same values, however these are computed, when maximum and sum start from their identities and run
    over the same axes, all of the three next to each other. Loops are those of the maximum; one that runs a row's
    values at once is refused. Maximum and sum end as they did, so other readers of the two stay right. While the maximum is -inf,
    the sum so far counts as zero: so a value of -inf (a mask) does no harm, and a row of nothing else ends in NaN, as it did. A
    row with NaN or +inf has the sum NaN either way.

    From Table 12 of the paper, after Milakov and Gimelshein (arXiv 1805.02867); there the maximum and the sum keep every prefix.
    """
    if arguments:
        return Refusal("no-such-form", f"online_softmax takes no arguments, and not {arguments!r}")
    softmax = recognised(unit.expressions)
    if softmax is None:
        return Refusal("no-such-form", "the window is no maximum, sum of exponentials and division over the same values")
    if isinstance(softmax, Refusal):
        return softmax
    taken = {tensor.name for tensor in unit.signature.tensors}
    for nest in unit.expressions:
        for equation in equations(nest):
            taken.update(access.tensor.name for side in (equation.target, equation.value) for access in accesses(side))
    stream = lift(flatten(softmax.stream(fresh_tensor(taken))))
    legal = same_order(stream, stream)
    if isinstance(legal, Refusal):
        return legal
    return Proposal((stream, unit.expressions[2]), "real", (*softmax.proofs(), *legal.proofs))


@dataclass(frozen=True, slots=True)
class Softmax:
    """What maximum and sum are, over the axes of ``nest``, the maximum's expression. ``cast`` widens the argument of ``exp``."""

    nest: Nest
    maximum: Equation
    place: int  # of the accumulator among the arguments of max
    operand: Expr
    sum: Access
    cast: str | None

    @property
    def reduced(self) -> list[Index]:
        rows = distinct_axes(self.maximum.target)
        assert rows is not None
        return [Index(axis) for axis in range(len(self.nest.axes)) if axis not in rows]

    def stream(self, name: str) -> Nest:
        """The pass over the values; the temporary ``name`` holds the maximum before the step."""
        outermost, *others = self.reduced
        total = reduce(lambda sum_, axis: Binary("+", sum_, axis), others, cast(Expr, outermost))
        first = Compare((Binary("-", total, Int(1)), Int(0)), ("<",))
        new, sum_ = self.maximum.target, self.sum
        old = Access(Tensor(name, new.tensor.dtype, "g"), new.subscripts)
        empty = Binary("|", first, Compare((old, MINUS_INFINITY), ("==",)))
        rescaled = Binary("*", sum_, self._exp(old))
        pair = (old, self.operand) if self.place == 0 else (self.operand, old)
        body = (
            Equation(old, Call("if_then_else", (first, MINUS_INFINITY, new))),
            Equation(new, Call("max", pair)),
            Equation(sum_, Binary("+", Call("if_then_else", (empty, Int(0), rescaled)), self._exp(self.operand))),
        )
        return Nest(self.nest.axes, self.nest.schedule, body)

    def _exp(self, value: Expr) -> Expr:
        return Call("exp", (Binary("-", self._widened(value), self._widened(self.maximum.target)),))

    def _widened(self, value: Expr) -> Expr:
        return value if self.cast is None else Call(self.cast, (value,))

    def proofs(self) -> tuple[Proof, ...]:
        m, s = self.maximum.target.tensor.name, self.sum.tensor.name
        return (
            Proof("values", "construction", f"the expressions are neighbours, and the values read neither {m} nor {s}"),
            Proof(m, "construction", f"{m} takes the same values in the same order, from -inf"),
            *_step_proofs(),
            Proof(
                s,
                "construction",
                f"by induction {s} is the sum of exp(x-{m}) over the values x so far: it is for the first value; at the next "
                f"each term is multiplied by exp(old-{m}), and exp(x-old)*exp(old-{m}) is exp(x-{m})",
            ),
            Proof(
                "infinite values",
                "construction",
                f"terms of -inf are 0 as soon as {m} is finite, and what was summed before that is dropped; if {m} ends as -inf, "
                f"+inf or NaN, then {s} ends as NaN, as it did",
            ),
        )


def _step_proofs() -> tuple[Proof, ...]:
    """One step of the induction, with the value, the old and the new maximum as s0, s1 and s2."""
    value, old, new = Index(0), Index(1), Index(2)
    terms = [Call("exp", (Binary("-", a, b),)) for a, b in ((value, old), (old, new), (value, new))]
    identity = verified(Binary("*", terms[0], terms[1]), Term(False, terms[2]))
    assert not isinstance(identity, Refusal)
    return identity.proofs(integers=False)


# ---------------------------------------------------------------------------------------------------------------- recognition


def recognised(window: tuple[Nest, ...]) -> Softmax | Refusal | None:
    """What the window computes if it is a softmax; None if it is none. Refused as ``init-changes`` where the maximum or the sum
    continues from earlier values. That values read neither is part of what an accumulation is (`leir.ir.accumulation`)."""
    first, second, third = window
    maximum, addition = _only_equation(first), _only_equation(second)
    if maximum is None or addition is None:
        return None
    largest, added = accumulation(maximum), accumulation(addition)
    if largest is None or largest[0] != "max" or added != ("+", (0,)):
        return None
    rows = distinct_axes(maximum.target)
    assert isinstance(maximum.value, Call)
    place = largest[1][0]
    operand = maximum.value.args[1 - place]
    if rows is None or len(rows) == len(first.axes):
        return None
    assert isinstance(addition.value, Binary)
    matching = Matching(first.axes, second.axes)
    cast = _shifted(addition.value.right, operand, maximum.target, matching)
    if cast is None or addition.value.op != "+" or not matching.completed():
        return None
    sum_ = matching.renamed(addition.target)
    assert isinstance(sum_, Access)
    summed = distinct_axes(sum_)
    if summed is None or set(summed) != set(rows):
        return None
    softmax = Softmax(first, maximum, place, operand, sum_, cast or None)
    if not any(_divides(e, softmax, third) for equation in equations(third) for e in subexpressions(equation.value)):
        return None
    for equation in (maximum, addition):
        if equation.init != "all":
            name = equation.target.tensor.name
            return Refusal("init-changes", f"{name} continues from what is there, and a stream would start anew")
    return softmax


def _only_equation(nest: Nest) -> Equation | None:
    match nest.body:
        case (Equation() as equation,):
            return equation
    return None


def _shifted(found: Expr, operand: Expr, maximum: Access, matching: Matching) -> str | None:
    """If ``found`` is ``exp(operand-maximum)`` up to the names of axes: the cast around both, "" where there is none; else None."""
    match found:
        case Call(fn="exp", args=(Binary(op="-", left=Access() | Binary() | Call() | Unary() as x, right=Access() as m),)):
            return "" if matching.same(operand, x) and matching.same(maximum, m) else None
        case Call(fn="exp", args=(Binary(op="-", left=Call(fn=cast, args=(x,)), right=Call(fn=other, args=(m,))),)):
            wider = WIDER.get(maximum.tensor.dtype, ())
            if cast != other or cast.removeprefix("cast_") not in wider:
                return None
            return cast if matching.same(operand, x) and matching.same(maximum, m) else None
    return None


def _divides(found: Expr, softmax: Softmax, nest: Nest) -> bool:
    """Whether ``found`` is ``exp(operand-maximum)/sum``."""
    if not (isinstance(found, Binary) and found.op == "/"):
        return False
    matching = Matching(softmax.nest.axes, None)
    cast = _shifted(found.left, softmax.operand, softmax.maximum.target, matching)
    return cast == (softmax.cast or "") and matching.same(softmax.sum, found.right)
