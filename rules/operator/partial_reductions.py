"""reduction_factorization: a reduction runs as partial reductions, which are combined afterwards (strategies.md, Operator level).

Every partial result belongs to one point of the spatial axes, those of the target. So its element of the target gets each of them
once, in an expression over the spatial axes only, whatever map the target's subscripts are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from leir import digits
from leir.ir import (
    FLOAT_DTYPES,
    Access,
    Binary,
    Call,
    Equation,
    Expr,
    Index,
    Int,
    Loop,
    Nest,
    Tensor,
    accesses,
    equations,
    subexpressions,
)
from leir.lift import flatten, lift, map_equation, replace, substitute
from leir.names import fresh_index, fresh_tensor
from rules.legality.decide import same_order
from rules.operator.tiling import axes_of, is_reduced
from rules.strategy import Argument, Arguments, Proof, Proposal, Refusal, WindowUnit

MAX_PARTS = 1024
"""The largest number of partial accumulators of one element."""


def cuts(unit: WindowUnit) -> Iterator[Arguments]:
    """Every reduction loop of the outermost nest: `axis` with every proper inner extent at a digit boundary up to 1,024, then
    `pair` with a cut after the first iteration and one in the middle.

    A reduction loop is one that occurs in an equation which reads what it writes, and not in the subscripts that it writes.
    """
    (expression,) = unit.expressions
    for number, loop in enumerate(expression.schedule):
        if not _is_reduction(expression, loop):
            continue
        for factor in digits.split_points(loop.digits):
            if factor <= MAX_PARTS:
                yield (("loop", number), ("shape", "axis"), ("factor", factor))
        for cut in dict.fromkeys((1, loop.extent // 2)):
            if 1 <= cut < loop.extent:
                yield (("loop", number), ("shape", "pair"), ("cut", cut))


def reduction_factorization(unit: WindowUnit, arguments: Arguments) -> Proposal | Refusal:
    """A reduction loop is cut, its parts accumulate into temporaries of their own, and a second expression combines these. Of shape
    `axis`, the inner part of extent `factor` becomes a dimension of one temporary; of shape `pair`, the iterations before and from
    `cut` on get a temporary each.

    before::

        # A f32[32,8,16,64] input
        # F f32[32,4] output
        B^{32}_{tx=0}L^{4}_{a=0}L^{2}_{c=0}L^{16}_{d=0}L^{64}_{f=0}[F^{f32,g}_{tx,a}=F^{f32,g}_{tx,a}+A^{f32,g}_{tx,a*2+c,d,f};];

    step::

        reduction_factorization 0 loop=4 shape=axis factor=8

    after::

        # A f32[32,8,16,64] input
        # F f32[32,4] output
        B^{32}_{tx=0}L^{4}_{a=0}L^{2}_{c=0}L^{16}_{d=0}L^{8}_{g=0}L^{8}_{f=0}
        [C^{f32,g}_{tx,a,f}=C^{f32,g}_{tx,a,f}+A^{f32,g}_{tx,a*2+c,d,g*8+f};];
        B^{32}_{tx=0}L^{4}_{a=0}L^{8}_{f=0}[F^{f32,g}_{tx,a}=F^{f32,g}_{tx,a}+C^{f32,g}_{tx,a,f};];

    Legal when the expression is one accumulation with +, *, max or min, which reads its target nowhere else: these are associative
    and commutative. Sums and products of floats reassociate. The second expression goes on where the target stood, so the target is
    initialised where it was, and the temporaries are in full.

    From Table 8 of the paper, whose example combines once per iteration of the other reduction loops; here it is once per element.
    """
    given: Mapping[str, Argument] = dict(arguments)
    (expression,) = unit.expressions
    problem = _problem(expression)
    if problem is not None:
        return problem
    (equation,) = expression.body
    assert isinstance(equation, Equation)
    number = given["loop"]
    assert isinstance(number, int)
    taken = {t.name for t in unit.signature.tensors} | {a.tensor.name for a in (equation.target, *accesses(equation.value))}
    first = fresh_tensor(taken)
    if given["shape"] == "axis":
        factor = given["factor"]
        assert isinstance(factor, int)
        made = _along_axis(expression, number, factor, first)
    else:
        cut = given["cut"]
        assert isinstance(cut, int)
        made = _as_pair(expression, number, cut, (first, fresh_tensor(taken | {first})))
    nests = tuple(lift(nest) for nest in made)
    proofs = list(_proofs(equation))
    for nest in nests:
        verdict = same_order(nest, nest)
        if isinstance(verdict, Refusal):
            return verdict
        proofs += [proof for proof in verdict.proofs if proof.condition != "order" and proof not in proofs]
    inexact = equation.accumulates in ("+", "*") and equation.target.tensor.dtype in FLOAT_DTYPES
    return Proposal(nests, "reassociates" if inexact else "bitwise", tuple(proofs))


def _proofs(equation: Equation) -> tuple[Proof, ...]:
    name, op = equation.target.tensor.name, equation.accumulates
    one = f"one accumulation into {name}, with {op}, which is associative and commutative; nothing else reads {name}"
    parts = f"every instance goes into one partial result, and every partial result into its element of {name} once"
    return Proof("reduction", "construction", one), Proof("parts", "construction", parts)


# ------------------------------------------------------------------------------------------------------------------- conditions


def _is_reduction(expression: Nest, loop: Loop) -> bool:
    return any(_reads_itself(eq) and is_reduced(loop, axes_of(eq.target)) for eq in equations(expression))


def _reads_itself(equation: Equation) -> bool:
    return any(access.tensor.name == equation.target.tensor.name for access in accesses(equation.value))


def _problem(expression: Nest) -> Refusal | None:
    """Why the expression is no single accumulation whose loops are spatial or reduction loops, or None."""
    equation = expression.body[0]
    if len(expression.body) > 1 or not isinstance(equation, Equation):
        return Refusal("several-items", "the body holds more than one equation; a reduction is factorized where it stands alone")
    name = equation.target.tensor.name
    if equation.accumulates is None:
        return Refusal("no-accumulation", f"{name} is computed from itself otherwise than by one +, *, max or min")
    kept = axes_of(equation.target)
    for loop in expression.schedule:
        if len({digit.axis in kept for digit in loop.digits}) > 1:
            return Refusal("mixed-loop", f"loop {loop.name} walks both axes of {name} and axes over which it is accumulated")
    verdict = same_order(expression, expression)
    return verdict if isinstance(verdict, Refusal) else None


# --------------------------------------------------------------------------------------------------------------------- results


def _along_axis(expression: Nest, number: int, factor: int, name: str) -> tuple[Nest, ...]:
    """Partial accumulations into a temporary with a dimension for the inner part of a loop, and their combination; flat."""
    schedule = expression.schedule
    loop = schedule[number]
    cut = digits.split(loop.digits, factor)
    assert cut is not None, "parameters name digit boundaries only"
    outer = Loop("L", fresh_index({x.name for x in schedule}), cut[0])
    inner = Loop(loop.kind, loop.name, cut[1])
    flat = _flat(Nest(expression.axes, (*schedule[:number], outer, inner, *schedule[number + 1 :]), expression.body))
    part = Access(_temporary(flat, name), (*flat.points, Index(number + 1)))
    return flat.partial(part), flat.combination((part,), over=number + 1)


def _as_pair(expression: Nest, number: int, cut: int, names: tuple[str, str]) -> tuple[Nest, ...]:
    """Accumulations over the iterations of a loop before and from ``cut`` on, and their combination; flat."""
    flat = _flat(expression)
    low, high = (Access(_temporary(flat, name), flat.points) for name in names)
    size = expression.schedule[number].extent
    return (
        _iterations(flat.partial(low), number, 0, cut),
        _iterations(flat.partial(high), number, cut, size - cut),
        flat.combination((low, high)),
    )


@dataclass(frozen=True, slots=True)
class _Flat:
    """One accumulation as a flat nest. ``spatial`` are the numbers of its spatial loops; ``points`` the values of the axes of the
    target, in the order of its text."""

    nest: Nest
    equation: Equation
    spatial: tuple[int, ...]
    points: tuple[Expr, ...]

    def partial(self, part: Access) -> Nest:
        """The accumulation into ``part`` instead."""
        value = replace(self.equation.value, {self.equation.target: part})
        return Nest(self.nest.axes, self.nest.schedule, (Equation(part, value, "all"),))

    def combination(self, parts: tuple[Access, ...], over: int | None = None) -> Nest:
        """The target goes on with the parts, under the spatial loops, and under loop number ``over`` if it counts parts."""
        loops = [k for k in range(len(self.nest.schedule)) if k in self.spatial or k == over]
        env = [Index(loops.index(k) if k in loops else -1) for k in range(len(self.nest.schedule))]
        target, *operands = (substitute(access, env) for access in (self.equation.target, *parts))
        assert isinstance(target, Access)
        value = self._apply(target, operands[0] if len(operands) == 1 else self._apply(*operands))
        schedule = tuple(
            Loop(self.nest.schedule[k].kind, self.nest.schedule[k].name, digits.whole(new, self.nest.axes[k]))
            for new, k in enumerate(loops)
        )
        return Nest(tuple(self.nest.axes[k] for k in loops), schedule, (Equation(target, value, self.equation.init),))

    def _apply(self, left: Expr, right: Expr) -> Expr:
        op = self.equation.accumulates
        assert op is not None
        return Binary(op, left, right) if op in ("+", "*") else Call(op, (left, right))


def _flat(expression: Nest) -> _Flat:
    (equation,) = expression.body
    assert isinstance(equation, Equation)
    order = [e.axis for sub in equation.target.subscripts for e in subexpressions(sub) if isinstance(e, Index)]
    axes = tuple(dict.fromkeys(order))
    spatial = tuple(k for k, loop in enumerate(expression.schedule) if loop.digits[0].axis in axes)
    points = Access(equation.target.tensor, tuple(Index(axis) for axis in axes))
    flat = flatten(Nest(expression.axes, expression.schedule, (equation, Equation(points, equation.value))))
    first, second = flat.body
    assert isinstance(first, Equation)
    assert isinstance(second, Equation)
    return _Flat(flat, first, spatial, second.target.subscripts)


def _temporary(flat: _Flat, name: str) -> Tensor:
    return Tensor(name, flat.equation.target.tensor.dtype, "g")


def _iterations(flat: Nest, number: int, start: int, count: int) -> Nest:
    """A flat nest with only some iterations of one loop, counted from 0."""
    env: list[Expr] = [Index(k) for k in range(len(flat.axes))]
    if start:
        env[number] = Binary("+", Index(number), Int(start))
    loop = flat.schedule[number]
    (equation,) = flat.body
    assert isinstance(equation, Equation)
    return Nest(
        (*flat.axes[:number], count, *flat.axes[number + 1 :]),
        (*flat.schedule[:number], Loop(loop.kind, loop.name, digits.whole(number, count)), *flat.schedule[number + 1 :]),
        (map_equation(equation, lambda e: substitute(e, env)),),
    )
