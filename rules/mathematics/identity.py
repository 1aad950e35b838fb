"""What the algebraic strategies have in common: an identity with its proofs, and the limits within which it is looked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import TypeGuard

from leir.ir import Expr, Index, Int, Real, subexpressions
from leir.printer import print_expr
from rules.mathematics import field
from rules.mathematics.shape import degree, size
from rules.mathematics.sums import Term, sum_of, terms_of
from rules.strategy import Proof, Refusal, ScalarUnit

# Limits, so that sympy cannot stall: what is beyond them is refused as `term-too-large`.
MAX_NODES, MAX_DEGREE = 400, 400
MAX_TERMS = 64

LARGEST = {  # of a literal that a step introduces
    "i8": 2**7 - 1,
    "i32": 2**31 - 1,
    "i64": 2**63 - 1,
    "f16": 65504,
    "bf16": 2.0**127 * (2 - 2.0**-7),
    "f32": 2.0**127 * (2 - 2.0**-23),
}


@dataclass(frozen=True, slots=True)
class Identity:
    """Two sides that are equal over the reals, over leaves numbered by first appearance; `verified` makes one."""

    before: Expr
    after: Term

    def proofs(self, integers: bool) -> tuple[Proof, ...]:
        names = [f"s{k}" for k in range(leaf_count(self.before))]
        before, after = print_expr(self.before, names), print_expr(sum_of([self.after]), names)
        proofs = [
            Proof("equal over the reals", "sympy", f"expand(({before})-({after}))==0"),
            Proof("equal over the reals", "field", f"{before} and {after} agree at {field.POINTS} random points modulo 2**61-1"),
        ]
        if integers:
            modular = "an identity of polynomials with integer coefficients holds modulo 2**n"
            proofs.append(Proof("equal in wrapping integers", "construction", modular))
        return tuple(proofs)

    def too_large_for(self, dtype: str) -> int | float | None:
        """A literal that is only on the right, and that the dtype, or the text, cannot hold."""
        old = set(literals(self.before))
        new = (v for v in literals(self.after.expr) if v not in old)
        return next((v for v in new if v > LARGEST.get(dtype, inf) or (isinstance(v, int) and v >= 2**63)), None)


def verified(before: Expr, after: Term) -> Identity | Refusal:
    """The identity, once both proofs hold. That one fails is a bug here or in sympy, hence an AssertionError and no refusal."""
    from rules.sympy_bridge import difference_expands_to_zero

    whole = sum_of([after])
    if not field.is_defined(before, leaf_count(before)):
        return Refusal("needs-nonzero", "a divisor is zero whatever the inputs are")
    if not difference_expands_to_zero(before, whole):
        raise AssertionError(f"sympy does not confirm {before!r} == {whole!r}")
    if not field.agree(before, whole, leaf_count(before)):
        raise AssertionError(f"modulo a prime, {before!r} != {whole!r}")
    return Identity(before, after)


def unwieldy(shape: Expr) -> str | None:
    """Why an expression is too large to look at, if it is."""
    nodes, power = size(shape), degree(shape)
    if nodes > MAX_NODES:
        return f"the expression has {nodes} parts; at most {MAX_NODES} are looked at"
    return f"the expression has degree {power}; at most {MAX_DEGREE} is looked at" if power > MAX_DEGREE else None


def pinned(unit: ScalarUnit, path: tuple[int, ...]) -> bool:
    """Whether the first term of the sum at ``path`` is the accumulator, which stays where it is."""
    return unit.accumulator is not None and not path and terms_of(unit.expr)[0].expr is unit.accumulator


def is_path(value: object) -> TypeGuard[tuple[int, ...]]:
    return isinstance(value, tuple) and all(isinstance(k, int) for k in value)


def leaf_count(shape: Expr) -> int:
    """How many numbers the leaves have."""
    return 1 + max((e.axis for e in subexpressions(shape) if isinstance(e, Index)), default=-1)


def literals(expr: Expr) -> Iterator[int | float]:
    return (e.value for e in subexpressions(expr) if isinstance(e, Int | Real))
