"""Where the mathematical strategies work: the arithmetic inside equations."""

from __future__ import annotations

from collections.abc import Iterator

from leir.ir import (
    FLOAT_DTYPES,
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Unary,
    accumulation,
    children,
)
from leir.syntax.prescan import MAX_DEPTH
from rules.mathematics.shape import is_arithmetic, replace
from rules.strategy import Refusal, ScalarUnit


def scalar_sites(equation: Equation) -> list[tuple[tuple[int, ...], ScalarUnit]]:
    """The maximal arithmetic subexpressions of the right-hand side with their scalar paths, in the order of the text.

    They are the side itself, and what stands inside calls. Not among them: conditions and comparisons, subscripts, operands of
    ``//`` and ``%``, index arithmetic, and what is inside ``floor``, ``ceil`` or a cast from float to an integer or bool. In
    these, another rounding is not a small difference but another branch, element or integer.
    """
    split = accumulation(equation)
    found: list[tuple[tuple[int, ...], ScalarUnit]] = []
    for path, expr, dtype in _sites(equation.value, (), equation.target.tensor.dtype, inside=False):
        accumulator = equation.target if split and not path else None
        found.append((path, ScalarUnit(expr, dtype, accumulator)))
    return found


def put_back(equation: Equation, path: tuple[int, ...], new: Expr) -> Equation | Refusal:
    """The equation with its subexpression at ``path`` replaced.

    Refused as ``init-changes`` if it would start or stop to read as an accumulation, or accumulate with another operator: the
    text would then imply another initial value. Refused as ``term-too-large`` if the text would be too deep to be read back.
    """
    changed = Equation(equation.target, replace(equation.value, path, new), equation.init)
    if _depth(changed.value) >= MAX_DEPTH:
        return Refusal("term-too-large", f"the right-hand side would have more than {MAX_DEPTH} operations inside one another")
    if changed.accumulates != equation.accumulates:
        before = f"accumulates with {equation.accumulates}" if equation.accumulates else "does not accumulate"
        after = f"would accumulate with {changed.accumulates}" if changed.accumulates else "would not accumulate"
        name = equation.target.tensor.name
        return Refusal("init-changes", f"the equation of {name} {before}, and {after} afterwards")
    return changed


def _depth(expr: Expr) -> int:
    return 1 + max(map(_depth, children(expr)), default=0)


def _sites(expr: Expr, path: tuple[int, ...], dtype: str, inside: bool) -> Iterator[tuple[tuple[int, ...], Expr, str]]:
    arithmetic = is_arithmetic(expr)
    if arithmetic and not inside and dtype != "bool":
        yield path, expr, dtype
    for position, child, child_dtype in _descend(expr, dtype):
        yield from _sites(child, (*path, position), child_dtype, inside=arithmetic)


def _descend(expr: Expr, dtype: str) -> Iterator[tuple[int, Expr, str]]:
    """The direct subexpressions in which a rounding may change, with the dtype they are computed in."""
    match expr:
        case Access() | Compare() | Unary(op="!") | Binary(op="&" | "|" | "//" | "%") | Call(fn="floor" | "ceil"):
            return
        case Call(fn="if_then_else"):
            yield from ((k, expr.args[k], dtype) for k in (1, 2))
        case Call() if expr.fn.startswith("cast_"):
            own = dtype_of(expr.args[0])
            if own is not None and (own not in FLOAT_DTYPES or expr.fn.removeprefix("cast_") in FLOAT_DTYPES):
                yield 0, expr.args[0], own
        case _:
            yield from ((k, child, dtype) for k, child in enumerate(children(expr)))


def dtype_of(expr: Expr) -> str | None:
    """The dtype that a well-typed expression brings along, None for what has only literals and loop indices."""
    match expr:
        case Access():
            return expr.tensor.dtype
        case Compare() | Unary(op="!") | Binary(op="&" | "|"):
            return "bool"
        case Call() if expr.fn.startswith("cast_"):
            return expr.fn.removeprefix("cast_")
        case Call(fn="if_then_else"):
            operands = expr.args[1:]
        case _:
            operands = children(expr)
    return next((dtype for dtype in map(dtype_of, operands) if dtype is not None), None)
