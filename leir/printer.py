"""From nests to text: no blanks, minimal parentheses, numbers as Python prints them.

The printer works on flat nests and simplifies nothing, so that ``print(parse(t)) == t`` for every text ``t`` without blanks and
without redundant parentheses. A nest in normal form is flattened first (`leir.lift.flatten`).
"""

from __future__ import annotations

from collections.abc import Sequence

from leir.ir import Access, Binary, Call, Compare, Equation, Expr, Index, Int, Item, Nest, Program, Real, Tensor, Unary
from leir.lift import flatten

OR, AND, COMPARISON, SUM, PRODUCT, SIGN, POWER, ATOM = range(8)

_BINARY_LEVEL = {"|": OR, "&": AND, "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "//": PRODUCT, "%": PRODUCT, "**": POWER}


def print_program(program: Program) -> str:
    """The program's text: its expressions, one after the other."""
    return "".join(print_nest(flatten(nest)) for nest in program.nests)


def print_nests(nests: Sequence[Nest]) -> str:
    """The text of flat nests."""
    return "".join(print_nest(nest) for nest in nests)


def print_nest(nest: Nest, names: tuple[str, ...] = ()) -> str:
    """The text of one flat nest; ``names`` are those of the enclosing loops, outermost first."""
    loops = "".join(f"{loop.kind}^{{{loop.extent}}}_{{{loop.name}=0}}" for loop in nest.schedule)
    inner = names + tuple(loop.name for loop in nest.schedule)
    return f"{loops}[{''.join(print_item(item, inner) for item in nest.body)}];"


def print_item(item: Item, names: tuple[str, ...]) -> str:
    """The text of a nested expression or an equation, its ``;`` included."""
    return print_nest(item, names) if isinstance(item, Nest) else print_equation(item, names) + ";"


def print_equation(equation: Equation, names: Sequence[str]) -> str:
    """``target=value``, where ``names[k]`` is the index of axis ``k``."""
    return f"{print_expr(equation.target, names)}={print_expr(equation.value, names)}"


def print_tensor(tensor: Tensor) -> str:
    return f"{tensor.name}^{{{tensor.dtype},{tensor.scope}}}"


def print_expr(expr: Expr, names: Sequence[str]) -> str:
    """The text of a scalar expression, where ``names[k]`` is the index of axis ``k``."""
    return _print(expr, names, OR)


def precedence(expr: Expr) -> int:
    """How tightly the outermost operator of ``expr`` binds."""
    match expr:
        case Binary():
            return _BINARY_LEVEL[expr.op]
        case Compare():
            return COMPARISON
        case Unary():
            return SIGN
        case _:
            return ATOM


def _print(expr: Expr, names: Sequence[str], least: int) -> str:
    level = precedence(expr)
    text = _bare(expr, names, level)
    return f"({text})" if level < least else text


def _bare(expr: Expr, names: Sequence[str], level: int) -> str:
    match expr:
        case Int():
            return str(expr.value)
        case Real():
            return repr(expr.value)
        case Index():
            return names[expr.axis]
        case Access():
            text = print_tensor(expr.tensor)
            if not expr.subscripts:
                return text
            return f"{text}_{{{','.join(_print(s, names, OR) for s in expr.subscripts)}}}"
        case Unary():
            return expr.op + _print(expr.operand, names, SIGN)
        case Binary(op="**"):
            return f"{_print(expr.left, names, ATOM)}**{_print(expr.right, names, SIGN)}"
        case Binary():
            return f"{_print(expr.left, names, level)}{expr.op}{_print(expr.right, names, level + 1)}"
        case Compare():
            words = [_print(expr.operands[0], names, SUM)]
            for op, operand in zip(expr.ops, expr.operands[1:], strict=True):
                words += [op, _print(operand, names, SUM)]
            return "".join(words)
        case Call():
            return f"{expr.fn}({','.join(_print(a, names, OR) for a in expr.args)})"
    raise AssertionError(expr)
