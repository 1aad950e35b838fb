"""A program under mutation: its signature and flat nests, and the edits that breakers are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from leir.digits import whole
from leir.ir import (
    Access,
    Equation,
    Expr,
    Index,
    Int,
    Item,
    Known,
    Loop,
    Nest,
    Role,
    Scope,
    Signature,
    Tensor,
    accumulation,
    children,
    with_children,
)
from tests.generators import Options, random_flat

PLAIN = Options(expressions=3, extents=(2, 3, 4), transcendental=False)
INTEGER = Options(dtypes=("i32", "i64"), expressions=2, extents=(2, 3, 4), transcendental=False, gathers=False)


@dataclass(frozen=True, slots=True)
class Site:
    """An equation, where it stands, and the loops around it."""

    path: tuple[int, ...]
    equation: Equation
    loops: tuple[Loop, ...]

    @property
    def name(self) -> str:
        return self.equation.target.tensor.name

    @property
    def accumulates(self) -> bool:
        return accumulation(self.equation) is not None


@dataclass(frozen=True, slots=True)
class Case:
    """A signature and flat nests; never changed in place."""

    signature: Signature
    nests: tuple[Nest, ...]
    target: str = "any"

    @staticmethod
    def random(rng: Random, options: Options = PLAIN) -> Case:
        """A legal program."""
        return Case(*random_flat(rng, options))

    # ------------------------------------------------------------------------------------------------------------------ looking

    def sites(self) -> list[Site]:
        return [site for k, nest in enumerate(self.nests) for site in _sites(nest, (k,), ())]

    def loop_places(self) -> list[tuple[tuple[int, ...], int, Loop]]:
        """Every loop as (path of its nest, number in the nest, loop)."""
        return [found for k, nest in enumerate(self.nests) for found in _loops(nest, (k,))]

    def at(self, path: Sequence[int]) -> Item:
        item: Item = self.nests[path[0]]
        for step in path[1:]:
            assert isinstance(item, Nest)
            item = item.body[step]
        return item

    def free_tensor(self) -> str:
        return next(n for n in ("Za", "Zc", "Zd", "Zf") if all(n != t for t in self.names()))

    def names(self) -> set[str]:
        used = {t.name for t in self.signature.tensors}
        return used | {a.tensor.name for s in self.sites() for a, _ in reads(s)} | {s.name for s in self.sites()}

    # ------------------------------------------------------------------------------------------------------------------ editing

    def put(self, path: Sequence[int], item: Item) -> Case:
        """With another item at a path."""
        if len(path) == 1:
            assert isinstance(item, Nest)
            return replace(self, nests=(*self.nests[: path[0]], item, *self.nests[path[0] + 1 :]))
        parent = self.at(path[:-1])
        assert isinstance(parent, Nest)
        k = path[-1]
        return self.put(path[:-1], Nest(parent.axes, parent.schedule, (*parent.body[:k], item, *parent.body[k + 1 :])))

    def with_value(self, site: Site, value: Expr) -> Case:
        return self.put(site.path, Equation(site.equation.target, value))

    def with_target(self, site: Site, target: Access) -> Case:
        return self.put(site.path, Equation(target, site.equation.value))

    def with_loop(self, path: tuple[int, ...], number: int, loop: Loop) -> Case:
        nest = self.at(path)
        assert isinstance(nest, Nest)
        schedule = (*nest.schedule[:number], loop, *nest.schedule[number + 1 :])
        return self.put(path, Nest(tuple(one.extent for one in schedule), schedule, nest.body))

    def declared(self, dtype: str, shape: tuple[int, ...] = (), span: tuple[int, int] | None = None) -> tuple[Case, Tensor]:
        """With one more input."""
        known = Known(self.free_tensor(), dtype, shape, "input", span)
        return self.with_known(*self.signature.tensors, known), Tensor(known.name, dtype, "g")

    def with_known(self, *tensors: Known) -> Case:
        return replace(self, signature=Signature(self.signature.name, tensors))

    def followed_by(self, nest: Nest) -> Case:
        return replace(self, nests=(*self.nests, nest))

    def mapped(self, fn: Callable[[Access], Access], path: Sequence[int] | None = None) -> Case:
        """With ``fn`` applied to every access, or to those of one equation."""
        case = self
        for site in self.sites():
            if path is None or site.path == tuple(path):
                target = on_accesses(site.equation.target, fn)
                assert isinstance(target, Access)
                case = case.put(site.path, Equation(target, on_accesses(site.equation.value, fn)))
        return case


def _sites(item: Item, path: tuple[int, ...], loops: tuple[Loop, ...]) -> Iterator[Site]:
    if isinstance(item, Equation):
        yield Site(path, item, loops)
        return
    for k, child in enumerate(item.body):
        yield from _sites(child, (*path, k), loops + item.schedule)


def _loops(item: Item, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], int, Loop]]:
    if isinstance(item, Nest):
        yield from ((path, k, loop) for k, loop in enumerate(item.schedule))
        for k, child in enumerate(item.body):
            yield from _loops(child, (*path, k))


# ------------------------------------------------------------------------------------------------------------------- expressions


def on_accesses(expr: Expr, fn: Callable[[Access], Access]) -> Expr:
    """``expr`` with every access replaced, inner ones first."""
    parts = children(expr)
    if parts:
        expr = with_children(expr, tuple(on_accesses(part, fn) for part in parts))
    return fn(expr) if isinstance(expr, Access) else expr


def reads(site: Site, *, guarded: bool = True) -> list[tuple[Access, tuple[int, ...]]]:
    """The reads of an equation that stand outside subscripts, with their scalar paths; without ``guarded``, those that always run.
    The accumulator is none."""
    found = accumulation(site.equation)
    return [(a, p) for a, p in _reads(site.equation.value, (), guarded) if found is None or p != found[1]]


def _reads(expr: Expr, path: tuple[int, ...], guarded: bool) -> Iterator[tuple[Access, tuple[int, ...]]]:
    if isinstance(expr, Access):
        yield expr, path
        return
    for k, part in enumerate(children(expr)):
        if guarded or k == 0 or getattr(expr, "fn", "") != "if_then_else":
            yield from _reads(part, (*path, k), guarded)


def replaced(expr: Expr, path: Sequence[int], new: Expr) -> Expr:
    """``expr`` with the subexpression at a scalar path replaced."""
    if not path:
        return new
    parts = list(children(expr))
    parts[path[0]] = replaced(parts[path[0]], path[1:], new)
    return with_children(expr, tuple(parts))


def with_subscript(access: Access, dimension: int, subscript: Expr) -> Access:
    subscripts = list(access.subscripts)
    subscripts[dimension] = subscript
    return Access(access.tensor, tuple(subscripts))


def loops(*described: tuple[str, str, int], first: int = 0) -> tuple[Loop, ...]:
    """Loops of a flat nest from (kind, name, extent)."""
    return tuple(Loop(kind, name, whole(first + k, n)) for k, (kind, name, n) in enumerate(described))  # type: ignore[arg-type]


def nest(schedule: Sequence[Loop], *body: Item) -> Nest:
    return Nest(tuple(loop.extent for loop in schedule), tuple(schedule), body)


def access(name: str, *subscripts: Expr | int, dtype: str = "f32", scope: Scope = "g") -> Access:
    """An access; an int stands for the index of that axis."""
    return Access(Tensor(name, dtype, scope), tuple(Index(s) if isinstance(s, int) else s for s in subscripts))


def role_of(known: Known, role: Role) -> Known:
    return replace(known, role=role)


ZERO, ONE, TWO = Int(0), Int(1), Int(2)
