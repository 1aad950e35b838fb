"""Where a step works, in words that quote the text."""

from __future__ import annotations

from leir.ir import Equation, Expr, Item, Nest, Program, children
from leir.lift import flatten
from leir.printer import print_expr, print_tensor
from rewrite.step import Step


def describe_place(step: Step, program: Program) -> str:
    """As in "loop a of expression 2" or "the subexpression x*z+y*z of the equation for D in expression 0"."""
    path, scalar = step.site.path, step.site.scalar
    item, names = _item_at(program, path)
    where = _expression_words(path)
    if scalar is not None:
        assert isinstance(item, Equation)
        found = _subexpression(item.value, scalar)
        whole = "the right-hand side" if not scalar else f"the subexpression {print_expr(found, names)}"
        return f"{whole} of the equation for {print_tensor(item.target.tensor)} in {where}"
    arguments = dict(step.args)
    if isinstance(item, Equation):
        return f"the equation for {print_tensor(item.target.tensor)} in {where}"
    if "loop" in arguments:
        loop = item.schedule[int(str(arguments["loop"]))]
        return f"loop {loop.name} of {where}"
    if "pair" in arguments:
        outer, inner = item.schedule[int(str(arguments["pair"])) :][:2]
        return f"the loops {outer.name} and {inner.name} of {where}"
    if "depth" in arguments or step.strategy == "expression_reorder":
        return f"{where} and the expression after it"
    return where


def _item_at(program: Program, path: tuple[int, ...]) -> tuple[Item, tuple[str, ...]]:
    """The flat item at a path, and the names of the loops around and in it."""
    item: Item = flatten(program.nests[path[0]])
    names: tuple[str, ...] = ()
    for number in path[1:]:
        assert isinstance(item, Nest)
        names += tuple(loop.name for loop in item.schedule)
        item = item.body[number]
    return item, names


def _subexpression(expr: Expr, path: tuple[int, ...]) -> Expr:
    for number in path:
        expr = children(expr)[number]
    return expr


def _expression_words(path: tuple[int, ...]) -> str:
    words = f"expression {path[0]}"
    return words if len(path) == 1 else f"item {'.'.join(map(str, path[1:]))} of {words}"
