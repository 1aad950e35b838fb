"""Breakers for kernels, memory scopes and the limits of a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from leir.ir import Access, Binary, Equation, Expr, Index, Int, Loop, Nest, Scope, Tensor
from tests.generators import Options
from tests.illegal.case import ONE, PLAIN, TWO, Case, access, loops, nest, reads
from tests.illegal.values import GPU_NAMES

Broken = Case | None
SERIAL: Options = replace(PLAIN, kinds=False)


def scope_escapes_kernel(rng: Random) -> Broken:
    case = Case.random(rng)
    known = {t.name for t in case.signature.tensors}
    written = {(site.name, site.path[0]) for site in case.sites()}
    escaping = [
        found.tensor.name
        for site in case.sites()
        for found, _ in reads(site, guarded=False)
        if found.tensor.name not in known and (found.tensor.name, site.path[0]) not in written
    ]
    if not escaping:
        return None
    name, scope = rng.choice(escaping), rng.choice(("s", "l"))
    return case.mapped(lambda a: _scoped(a, scope) if a.tensor.name == name else a)  # type: ignore[arg-type]


def _scoped(found: Access, scope: Scope) -> Access:
    return Access(Tensor(found.tensor.name, found.tensor.dtype, scope), found.subscripts)


def _handed_over(rng: Random, gpu_axis: str, scope: Scope) -> Case:
    """A kernel of two items, in which the second reads what another block or thread of the first wrote."""
    case = Case.random(rng)
    n, m = rng.randint(2, 5), rng.randint(2, 4)
    made, used = case.free_tensor(), "Zw"
    outer = loops(("L", "a", rng.randint(1, 3)))
    item = loops((("B", gpu_axis, n)), ("L", "c", m), first=1)
    own = access(made, 0, 1, 2, scope=scope)
    other: Expr = rng.choice(
        (
            Binary("-", Int(n - 1), Index(1)),
            Binary("%", Binary("+", Index(1), ONE), Int(n)),
            Int(rng.randrange(n)),
        )
    )
    read = access(made, 0, other, 2, scope=scope)
    first = nest(item, Equation(own, Binary("+", Index(1), Index(2))))
    second = nest(item, Equation(access(used, 0, 1, 2), Binary("*", read, TWO)))
    return case.followed_by(nest(outer, first, second))


def shared_crosses_blocks(rng: Random) -> Broken:
    return _handed_over(rng, rng.choice(("bx", "by", "bza")), "s")


def local_crosses_threads(rng: Random) -> Broken:
    return _handed_over(rng, rng.choice(("tx", "ty", "tza", "bx")), "l")


def crosses_blocks(rng: Random) -> Broken:
    return _handed_over(rng, rng.choice(("bx", "by", "bza")), "g")


def _bound(case: Case, place: tuple[tuple[int, ...], int, Loop], name: str) -> Case:
    path, k, loop = place
    return case.with_loop(path, k, Loop("B", name, loop.digits))


def axis_bound_twice(rng: Random) -> Broken:
    case = Case.random(rng, SERIAL)
    deep = [site for site in case.sites() if len(site.loops) > 1]
    if not deep:
        return None
    site = rng.choice(deep)
    places = [place for place in case.loop_places() if place[0] == site.path[: len(place[0])]]
    first, second = rng.sample(places, 2)
    axis = rng.choice(GPU_NAMES)
    return _bound(_bound(case, first, axis), second, axis + rng.choice("acd"))


def axis_extents(rng: Random) -> Broken:
    case = Case.random(rng, SERIAL)
    places = case.loop_places()
    pairs = [(p, q) for p in places for q in places if p[0][0] == q[0][0] and p[2].extent < q[2].extent]
    if not pairs:
        return None
    first, second = rng.choice(pairs)
    axis = rng.choice(GPU_NAMES)
    return _bound(_bound(case, first, axis), second, axis + rng.choice("acd"))


def outside_block(rng: Random) -> Broken:
    case = Case.random(rng, SERIAL)
    inner = []
    for place in case.loop_places():
        path = place[0]
        parent = case.at(path[:-1]) if len(path) > 1 else None
        if isinstance(parent, Nest) and len(parent.body) > 1:
            inner.append(place)
    if not inner:
        return None
    return _bound(case, rng.choice(inner), rng.choice(GPU_NAMES[:3]))


# ------------------------------------------------------------------------------------------------------------------------- limits


def _kernel(rng: Random, *bound: tuple[str, str, int]) -> Case:
    """A random program, then a kernel with these loops that writes one more tensor."""
    case = Case.random(rng)
    written = Equation(access(case.free_tensor(), *range(len(bound))), ONE)
    return replace(case.followed_by(nest(loops(*bound), written)), target="cuda")


def grid_limit(rng: Random) -> Broken:
    return _kernel(rng, ("B", rng.choice(("by", "bz")), 65536 + rng.randrange(1000)), ("B", "tx", rng.randint(1, 64)))


def thread_limit(rng: Random) -> Broken:
    if rng.random() < 0.3:
        return _kernel(rng, ("B", "tz", rng.randint(65, 1024)))
    if rng.random() < 0.5:
        return _kernel(rng, ("B", rng.choice(("tx", "ty")), rng.randint(1025, 4096)))
    x = rng.randint(33, 512)
    return _kernel(rng, ("B", "bx", 4), ("B", "tx", x), ("B", "ty", 1024 // x + 1))


def shared_memory(rng: Random) -> Broken:
    case = Case.random(rng)
    dtype, size = rng.choice((("f32", 4), ("f64", 8), ("f16", 2)))
    n, blocks = 48 * 1024 // size + rng.randint(1, 500), rng.randint(1, 4)
    tile = access(case.free_tensor(), 0, 1, dtype=dtype, scope="s")
    used = access("Zw", 0, 1, dtype=dtype)
    kernel = nest(loops(("B", "bx", blocks), ("L", "a", n)), Equation(tile, ONE), Equation(used, tile))
    return replace(case.followed_by(kernel), target="cuda")


def vector_access(rng: Random) -> Broken:
    case = Case.random(rng)
    width = rng.choice((2, 4))
    target = case.free_tensor()
    form = rng.random()
    subscripts: tuple[Expr, ...]
    if form < 0.3:
        width, subscripts = rng.choice((5, 8, 16)), (Index(0), Index(1))
    elif form < 0.6:
        subscripts = (Index(1), Index(0))  # the lanes step by whole rows
    elif form < 0.8:
        subscripts = (Index(0), Binary("+", Index(1), ONE))
    else:
        subscripts = (Index(0), Binary("*", Index(1), TWO))
    schedule = loops(("L", "a", rng.randint(3, 5)), ("V", "c", width))
    written = Equation(access(target, *subscripts), Binary("+", Index(0), Index(1)))
    return replace(case.followed_by(nest(schedule, written)), target="cuda")


KERNELS: Mapping[str, Callable[[Random], Broken]] = {
    "scope-escapes-kernel": scope_escapes_kernel,
    "shared-crosses-blocks": shared_crosses_blocks,
    "local-crosses-threads": local_crosses_threads,
    "crosses-blocks": crosses_blocks,
    "axis-bound-twice": axis_bound_twice,
    "axis-extents": axis_extents,
    "outside-block": outside_block,
    "grid-limit": grid_limit,
    "thread-limit": thread_limit,
    "shared-memory": shared_memory,
    "vector-access": vector_access,
}
