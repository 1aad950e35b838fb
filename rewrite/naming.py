"""New temporaries get names that are free in the whole program: a strategy sees only its unit."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from leir.ir import Access, Expr, Item, Nest, Program, Tensor, accesses, children, equations, with_children
from leir.lift import map_item
from leir.names import fresh_tensor


def with_free_names(program: Program, start: int, count: int, nests: tuple[Nest, ...]) -> tuple[Nest, ...]:
    """``nests``, which replace ``count`` expressions of the program from number ``start`` on, with the temporaries that they
    introduce renamed where another expression has a tensor of that name: to the first free one."""
    known = {tensor.name for tensor in program.signature.tensors}
    old = known.union(*map(_names, program.nests[start : start + count]))
    elsewhere = frozenset().union(*map(_names, (*program.nests[:start], *program.nests[start + count :])))
    new = dict.fromkeys(name for nest in nests for name in _names(nest) if name not in old)
    if elsewhere.isdisjoint(new):
        return nests
    taken = old | elsewhere | set(new)
    renamed: dict[str, str] = {}
    for name in new:
        if name in elsewhere:
            renamed[name] = fresh_tensor(taken)
            taken.add(renamed[name])
    return tuple(_renamed(nest, renamed) for nest in nests)


@lru_cache(maxsize=50_000)
def _names(nest: Nest) -> tuple[str, ...]:
    """The tensors of an expression, in the order of the text."""
    sides: Iterable[Expr] = (side for equation in equations(nest) for side in (equation.target, equation.value))
    return tuple(dict.fromkeys(access.tensor.name for side in sides for access in accesses(side)))


def _renamed(nest: Nest, names: dict[str, str]) -> Nest:
    def visit(expr: Expr) -> Expr:
        new = with_children(expr, tuple(visit(child) for child in children(expr)))
        if isinstance(new, Access) and new.tensor.name in names:
            tensor = Tensor(names[new.tensor.name], new.tensor.dtype, new.tensor.scope)
            return Access(tensor, new.subscripts)
        return new

    changed: Item = map_item(nest, visit)
    assert isinstance(changed, Nest)
    return changed
