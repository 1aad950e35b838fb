"""Small changes at random, of which some break a program and others do not: food for comparing the checker with an oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from leir.digits import whole
from leir.ir import Access, Binary, Equation, Expr, Index, Int, Item, Loop, Nest, Scope, Signature, Tensor
from tests.illegal.case import ONE, Case, access, loops, nest, reads, replaced, with_subscript
from tests.illegal.values import GPU_NAMES


def perturbed(case: Case, rng: Random) -> Case:
    """One change: a subscript moved, an expression moved or dropped, a loop shortened, an access made to read its own tensor."""
    form = rng.random()
    if form < 0.45:
        return _moved_subscript(case, rng)
    if form < 0.6 and len(case.nests) > 1:
        nests = list(case.nests)
        nest = nests.pop(rng.randrange(len(nests)))
        if form < 0.55:
            nests.insert(rng.randrange(len(nests) + 1), nest)
        return replace(case, nests=tuple(nests))
    if form < 0.8:
        path, k, loop = rng.choice(case.loop_places())
        if loop.extent > 1:
            return case.with_loop(path, k, Loop(loop.kind, loop.name, whole(loop.digits[0].axis, loop.extent - 1)))
    return _swapped_items(case, rng)


def _moved_subscript(case: Case, rng: Random) -> Case:
    site = rng.choice(case.sites())
    places: list[tuple[Access, tuple[int, ...] | None]] = [(a, p) for a, p in reads(site) if a.subscripts]
    if site.equation.target.subscripts:
        places.append((site.equation.target, None))
    if not places:
        return case
    old, path = rng.choice(places)
    dimension = rng.randrange(len(old.subscripts))
    subscript = old.subscripts[dimension]
    other = Index(rng.randrange(len(site.loops)))
    moved: Expr = rng.choice(
        (
            Binary("+", subscript, ONE),
            Binary("-", subscript, ONE),
            Binary("//", subscript, Int(2)),
            Binary("*", subscript, Int(2)),
            Binary("+", subscript, other),
            other,
            Int(rng.randrange(3)),
        )
    )
    new = with_subscript(old, dimension, moved)
    return case.with_target(site, new) if path is None else case.with_value(site, replaced(site.equation.value, path, new))


def _swapped_items(case: Case, rng: Random) -> Case:
    brackets = [(k,) for k, nest in enumerate(case.nests) if len(nest.body) > 1]
    if not brackets:
        return case
    path = rng.choice(brackets)
    nest = case.at(path)
    assert isinstance(nest, Nest)
    body = list(nest.body)
    rng.shuffle(body)
    return case.put(path, Nest(nest.axes, nest.schedule, tuple(body)))


def with_random_kinds(case: Case, rng: Random) -> Case:
    """With kinds given to loops at random, each GPU index at most once per expression."""
    for number in range(len(case.nests)):
        free = list(GPU_NAMES)
        for path, k, loop in case.loop_places():
            if path[0] == number:
                kind = rng.choice("LLPVUB")
                name = free.pop(rng.randrange(len(free))) if kind == "B" and free else loop.name
                kind = kind if kind != "B" or name != loop.name else "L"
                case = case.with_loop(path, k, Loop(kind, name, loop.digits))  # type: ignore[arg-type]
    return case


def random_kernel(
    rng: Random,
    scopes: Sequence[Scope] = ("s", "l"),
    serial: str = "L",
    indices: Sequence[str] = ("bx", "tx", "ty"),
    around: int = 2,
) -> Case:
    """Items that hand a small tensor of one of ``scopes`` on, in one or two expressions whose loops are bound at random to
    ``indices``, each at most once along a path and always to one extent. ``serial`` are the kinds of the other loops; up to
    ``around`` loops enclose all items."""
    scope = rng.choice(scopes)
    sizes = [rng.randint(2, 3) for _ in range(rng.randint(1, 2))]
    tile = Tensor("S", "f32", scope)
    nests = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        axes = {axis: rng.randint(2, 3) for axis in indices}
        outer = _bound_loops(rng, rng.randint(1, around), 0, axes, serial)
        inner_axes = {axis: n for axis, n in axes.items() if all(loop.name != axis for loop in outer)}
        items = [_kernel_item(rng, tile, sizes, outer, inner_axes, serial) for _ in range(rng.randint(2, 3))]
        nests.append(nest(outer, *items))
    return Case(Signature("kernel", ()), tuple(nests))


def _bound_loops(rng: Random, count: int, first: int, axes: dict[str, int], serial: str) -> tuple[Loop, ...]:
    """Loops, of the kinds ``serial`` or bound to one of ``axes`` with its extent."""
    free = sorted(axes)
    described = []
    for k in range(count):
        if free and rng.random() < 0.6:
            axis = free.pop(rng.randrange(len(free)))
            described.append(("B", axis, axes[axis]))
        else:
            described.append((rng.choice(serial), "acdfghijk"[first + k], rng.randint(2, 3)))
    return loops(*described, first=first)


def _kernel_item(rng: Random, tile: Tensor, sizes: list[int], outer: tuple[Loop, ...], axes: dict[str, int], serial: str) -> Item:
    inner = _bound_loops(rng, rng.randint(0, 2), len(outer), axes, serial)
    around = (*outer, *inner)
    form, written = rng.random(), _cell(rng, tile, sizes, around)
    if form < 0.4:
        item = Equation(written, ONE)
    elif form < 0.6:
        item = Equation(written, Binary("+", written, ONE))
    else:
        read = Binary("*", _cell(rng, tile, sizes, around), _cell(rng, tile, sizes, around))
        item = Equation(access("D", *range(len(around))), read)
    return nest(inner, item) if inner else item


def _cell(rng: Random, tile: Tensor, sizes: list[int], around: tuple[Loop, ...]) -> Access:
    subscripts: list[Expr] = []
    for size in sizes:
        choices: list[Expr] = [Int(rng.randrange(size))]
        for k, loop in enumerate(around):
            if loop.extent <= size:
                choices += [Index(k), Index(k), Binary("-", Int(size - 1), Index(k))]
        subscripts.append(rng.choice(choices))
    return Access(tile, tuple(subscripts))
