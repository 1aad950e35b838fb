"""A kernel without the names of its tensors: a top-level expression in normal form, its tensors numbered by first occurrence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from leir.ir import Access, Expr, Nest, Tensor, accesses, children, equations, with_children
from leir.lift import map_item

HOLE = "%"
"""No tensor of a program is called so."""


@dataclass(frozen=True, slots=True)
class Template:
    """``nest`` names its tensors ``%0``, ``%1``, ... ``reads``: the tensors whose value from before the kernel is an operand, in
    the order of the operands; among them those that the kernel changes and that had a value. ``writes``: the tensors that it
    writes, in the order of its outputs. One in both is updated in place: the output is a new version of the operand."""

    nest: Nest
    reads: tuple[int, ...]
    writes: tuple[int, ...]

    @property
    def in_place(self) -> tuple[tuple[int, int], ...]:
        """(operand number, output number) of every tensor that is updated in place."""
        return tuple((self.reads.index(hole), k) for k, hole in enumerate(self.writes) if hole in self.reads)


@lru_cache(maxsize=100_000)
def tensors(nest: Nest) -> tuple[str, ...]:
    """The names of the tensors of an expression, by first occurrence in its equations, target first."""
    sides = (side for equation in equations(nest) for side in (equation.target, equation.value))
    return tuple(dict.fromkeys(access.tensor.name for side in sides for access in accesses(side)))


@lru_cache(maxsize=100_000)
def written(nest: Nest) -> tuple[str, ...]:
    """The names of the tensors that an expression writes, by first write."""
    return tuple(dict.fromkeys(equation.target.tensor.name for equation in equations(nest)))


@lru_cache(maxsize=100_000)
def dtypes(nest: Nest) -> Mapping[str, str]:
    return {a.tensor.name: a.tensor.dtype for e in equations(nest) for side in (e.target, e.value) for a in accesses(side)}


@lru_cache(maxsize=100_000)
def renamed(nest: Nest, names: tuple[str, ...]) -> Nest:
    """The expression with its tensors, in the order of `tensors`, called ``names``."""
    table = dict(zip(tensors(nest), names, strict=True))

    def visit(expr: Expr) -> Expr:
        parts = children(expr)
        new = with_children(expr, tuple(visit(part) for part in parts)) if parts else expr
        if isinstance(new, Access):
            return Access(Tensor(table[new.tensor.name], new.tensor.dtype, new.tensor.scope), new.subscripts)
        return new

    result = map_item(nest, visit)
    assert isinstance(result, Nest)
    return result


def template(nest: Nest, available: Sequence[str] | Mapping[str, object]) -> tuple[Template, tuple[str, ...], tuple[str, ...]]:
    """The template of an expression where the tensors in ``available`` have a value already, and the names of its operands and of
    its outputs."""
    names = tensors(nest)
    number = {name: k for k, name in enumerate(names)}
    operands = tuple(name for name in names if name in available)
    outputs = written(nest)
    holes = tuple(f"{HOLE}{k}" for k in range(len(names)))
    plain = Template(renamed(nest, holes), tuple(number[n] for n in operands), tuple(number[n] for n in outputs))
    return plain, operands, outputs
