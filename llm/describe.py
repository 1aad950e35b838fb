"""Programs in words: one line per expression, for the reasoning text of a dataset row."""

from __future__ import annotations

from leir.ir import Equation, Index, Item, Nest, Program, accesses, accumulation, subexpressions
from leir.lift import flatten
from leir.printer import print_nest

_KIND_WORDS = {"L": "serial", "P": "parallel", "V": "vectorized", "U": "unrolled", "B": "bound"}
_OPERATOR_WORDS = {"+": "a sum", "*": "a product", "max": "a maximum", "min": "a minimum"}


def describe_program(program: Program) -> str:
    """What goes in, what comes out, and a numbered line per expression."""
    signature = program.signature
    known = ", ".join(f"{t.name} ({t.role}, {t.dtype}[{','.join(map(str, t.shape))}])" for t in signature.tensors)
    lines = [f"The known tensors are {known}."]
    lines += [f"Expression {number}: {describe_nest(flatten(nest))}." for number, nest in enumerate(program.nests)]
    return "\n".join(lines)


def describe_nest(flat: Nest) -> str:
    """The loops of a flat nest, then what each equation below them computes."""
    loops = ", ".join(f"{_KIND_WORDS[loop.kind]} {loop.name}<{loop.extent}" for loop in flat.schedule)
    names = tuple(loop.name for loop in flat.schedule)
    parts = [_describe_item(item, names) for item in flat.body]
    return f"{'loops ' + loops if loops else 'no loop'}; " + "; then ".join(parts)


def _describe_item(item: Item, names: tuple[str, ...]) -> str:
    if isinstance(item, Nest):
        inner = names + tuple(loop.name for loop in item.schedule)
        loops = ", ".join(f"{loop.name}<{loop.extent}" for loop in item.schedule)
        return f"({loops}: " + "; then ".join(_describe_item(child, inner) for child in item.body) + ")"
    return _describe_equation(item, names)


def _describe_equation(equation: Equation, names: tuple[str, ...]) -> str:
    target = equation.target.tensor.name
    read = list(dict.fromkeys(a.tensor.name for a in accesses(equation.value) if a.tensor.name != target))
    sources = f" from {', '.join(read)}" if read else ""
    found = accumulation(equation)
    if found is None:
        return f"{target} is computed{sources}"
    kept = {e.axis for sub in equation.target.subscripts for e in subexpressions(sub) if isinstance(e, Index)}
    over = [name for axis, name in enumerate(names) if axis not in kept]
    along = f" over {', '.join(over)}" if over else ""
    start = "" if equation.init is not None else ", continuing from what is there"
    return f"{target} accumulates {_OPERATOR_WORDS[found[0]]}{along}{sources}{start}"


def changed_expressions(before: Program, after: Program) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The texts of the expressions that differ: those of ``before`` that went, those of ``after`` that came, each in order. What
    stands before and behind them is the same in both."""
    old, new = before.nests, after.nests
    start = 0
    while start < min(len(old), len(new)) and old[start] is new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] is new[-1 - end]:
        end += 1
    gone = tuple(print_nest(flatten(nest)) for nest in old[start : len(old) - end])
    come = tuple(print_nest(flatten(nest)) for nest in new[start : len(new) - end])
    return gone, come
