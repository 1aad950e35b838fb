"""Types: every operation has one dtype, every literal fits it, every subscript is an integer (leir.md, Arithmetic)."""

from __future__ import annotations

from collections.abc import Iterator

from leir.checker.facts import Facts, Site, shown
from leir.checker.opaque import INTEGER_BITS
from leir.elaborate import Apply, Const, Typed, TypingError, elaborate, subscript_is_integer
from leir.ir import Access, Equation, Expr, Int, Tensor, accumulation, children
from leir.lift import replace


def check_types(facts: Facts) -> None:
    """Report the first type problem of every equation, and every subscript that is no integer."""
    for site in facts.sites:
        _check_subscripts(facts, site)
        equation = site.equation
        if _accumulates_bool(equation):
            facts.no_value.add(site.path)
            facts.report("bool-accumulation", f"{equation.target.tensor.name} is bool and accumulates", site.path)
            continue
        try:
            typed = elaborate(equation)
        except TypingError as error:
            problem = error.problem
            facts.report(problem.code, problem.message, site.path, problem.path, help=problem.help)
            continue
        _check_literals(facts, site, typed)


def _check_subscripts(facts: Facts, site: Site) -> None:
    for touch in site.touches:
        for k, subscript in enumerate(touch.access.subscripts):
            if not subscript_is_integer(subscript):
                scalar = None if touch.scalar is None else (*touch.scalar, k)
                message = f"subscript {k} of {shown(touch.access, site.names)} is no integer expression"
                facts.report("subscript-type", message, site.path, scalar)


def _accumulates_bool(equation: Equation) -> bool:
    """Whether the equation would accumulate, were its target not bool."""
    target = equation.target
    if target.tensor.dtype != "bool":
        return False

    integer = Access(Tensor(target.tensor.name, "i32", target.tensor.scope), target.subscripts)
    return accumulation(Equation(integer, replace(equation.value, {target: integer}))) is not None


def _check_literals(facts: Facts, site: Site, typed: Typed) -> None:
    for constant, sign in _constants(typed, 1):
        bits = INTEGER_BITS.get(constant.dtype)
        value = constant.value * sign
        if bits is None or -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            continue
        path = next((p for p, e in _paths(site.equation.value, ()) if isinstance(e, Int) and e.value == constant.value), None)
        facts.report("literal-range", f"{value} does not fit {constant.dtype}", site.path, path)
        return


def _constants(typed: Typed, sign: int) -> Iterator[tuple[Const, int]]:
    """Every literal with the sign of the minus before it."""
    if isinstance(typed, Const):
        yield typed, sign
    elif isinstance(typed, Apply):
        for arg in typed.args:
            yield from _constants(arg, -1 if typed.op == "neg" else 1)


def _paths(expr: Expr, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Expr]]:
    yield path, expr
    for k, part in enumerate(children(expr)):
        yield from _paths(part, (*path, k))
