"""The canonical key of a program (leir.md, Equality and identity).

Two programs have one key when their texts differ only in the names of temporaries and loop indices, the suffix of a bound index,
and the order of terms inside a subscript. Loop kinds, GPU axes, known tensors and the order of items all count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise

from leir.ir import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Int,
    Item,
    Nest,
    Program,
    Real,
    Signature,
    Tensor,
    Unary,
    equations,
)
from leir.lift import flatten


def key(program: Program) -> str:
    """The key: 32 hexadecimal digits, the same in every process and on every machine."""
    names = {t.name: t.name for t in program.signature.tensors}
    temporaries = 0
    flat = [flatten(nest) for nest in program.nests]
    for nest in flat:
        for target in _targets(nest):
            if target not in names:
                names[target] = f"%{temporaries}"
                temporaries += 1
    parts = [_signature_text(program.signature)]
    for nest in flat:
        template = _nest_template(nest)
        if template is None:
            template = _template(nest, _Holes(lambda tensor: names.get(tensor.name, tensor.name)))
        parts.append(template[0])
        parts.append(",".join([names.get(name, "?") for name in template[1]]))  # nobody writes "?": a fault, not a program
    return blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=10_000)
def _signature_text(signature: Signature) -> str:
    return ";".join(f"{t.name} {t.dtype} {t.shape} {t.role} {t.range}" for t in signature.tensors)


@lru_cache(maxsize=100_000)
def _targets(nest: Nest) -> tuple[str, ...]:
    """The names of the tensors that a nest writes, by first write."""
    return tuple(dict.fromkeys(equation.target.tensor.name for equation in equations(nest)))


class _Holes:
    """The tensors of a nest in the order of its template. ``naming`` breaks ties between terms of one shape; without it, a tie is
    only noted, because the answer depends on the program around the nest."""

    def __init__(self, naming: Callable[[Tensor], str] | None = None) -> None:
        self.tensors: list[Tensor] = []
        self.naming = naming
        self.tied = False


@lru_cache(maxsize=100_000)
def _nest_template(nest: Nest) -> tuple[str, tuple[str, ...]] | None:
    """The digest of the nest's text with loops named by depth and tensors by holes, and the names that fill the holes; None if the
    names of temporaries decide the order of terms."""
    holes = _Holes()
    template = _template(nest, holes)
    return None if holes.tied else template


def _template(nest: Nest, holes: _Holes) -> tuple[str, tuple[str, ...]]:
    text = _item(nest, holes)
    return blake2b(text.encode(), digest_size=16).hexdigest(), tuple(tensor.name for tensor in holes.tensors)


def _item(item: Item, holes: _Holes) -> str:
    if isinstance(item, Equation):
        return f"{_expr(item.target, holes)}={_expr(item.value, holes)};"
    loops = "".join(f"{loop.gpu_axis or loop.kind}{loop.extent} " for loop in item.schedule)
    return f"{loops}[{''.join(_item(child, holes) for child in item.body)}]"


def _expr(expr: Expr, holes: _Holes) -> str:
    match expr:
        case Int():
            return str(expr.value)
        case Real():
            return f"{expr.value!r}."
        case Index():
            return f"${expr.axis}"
        case Access():
            holes.tensors.append(expr.tensor)
            return f"@{expr.tensor.dtype}{expr.tensor.scope}({','.join(_subscript(s, holes) for s in expr.subscripts)})"
        case Unary():
            return f"{expr.op}({_expr(expr.operand, holes)})"
        case Binary():
            return f"({_expr(expr.left, holes)}{expr.op}{_expr(expr.right, holes)})"
        case Compare():
            first, *rest = expr.operands
            return f"({_expr(first, holes)}{''.join(op + _expr(e, holes) for op, e in zip(expr.ops, rest, strict=True))})"
        case Call():
            return f"{expr.fn}({','.join(_expr(a, holes) for a in expr.args)})"
    raise AssertionError(expr)


def _subscript(expr: Expr, holes: _Holes) -> str:
    """A subscript with its terms sorted, by their text and then by the tensors that they read through."""
    terms: list[tuple[str, list[Tensor]]] = []
    for sign, term in _terms(expr, "+"):
        inner = _Holes(holes.naming)
        terms.append((sign + _factor(term, inner), inner.tensors))
        holes.tied = holes.tied or inner.tied
    naming = holes.naming
    if naming is not None:
        terms.sort(key=lambda t: (t[0], [naming(tensor) for tensor in t[1]]))
    else:
        terms.sort(key=lambda t: t[0])
        holes.tied = holes.tied or any(a[0] == b[0] and a[1] != b[1] for a, b in pairwise(terms))
    for _, tensors in terms:
        holes.tensors.extend(tensors)
    return "".join(text for text, _ in terms)


def _terms(expr: Expr, sign: str) -> Sequence[tuple[str, Expr]]:
    if isinstance(expr, Binary) and expr.op in ("+", "-"):
        flipped = "-" if sign == "+" else "+"
        return [*_terms(expr.left, sign), *_terms(expr.right, sign if expr.op == "+" else flipped)]
    return [(sign, expr)]


def _factor(expr: Expr, holes: _Holes) -> str:
    """One term; sums below a product, a quotient or a remainder are sorted too."""
    match expr:
        case Binary(op="+" | "-"):
            return f"({_subscript(expr, holes)})"
        case Binary():
            return f"({_factor(expr.left, holes)}{expr.op}{_factor(expr.right, holes)})"
        case Unary():
            return f"{expr.op}({_factor(expr.operand, holes)})"
        case _:
            return _expr(expr, holes)
