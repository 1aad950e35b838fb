"""Breakers for bounds, definedness and parallel loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from leir.ir import Access, Binary, Call, Compare, Expr, Index, Int, Kind, Loop, is_index_arithmetic, subexpressions
from leir.shapes import interval, temporary_shapes
from tests.generators import Options
from tests.illegal.case import ONE, PLAIN, ZERO, Case, Site, reads, replaced, with_subscript

Broken = Case | None
GPU_NAMES = ("bx", "by", "bz", "tx", "ty", "tz")


def _shapes(case: Case) -> dict[str, tuple[int, ...]]:
    return {**{t.name: t.shape for t in case.signature.tensors}, **temporary_shapes(case.signature, case.nests)}


def _plain_reads(case: Case) -> list[tuple[Site, Access, tuple[int, ...]]]:
    """Reads that always run, and whose subscripts are index arithmetic."""
    return [
        (site, found, path)
        for site in case.sites()
        for found, path in reads(site, guarded=False)
        if found.subscripts and all(is_index_arithmetic(s) for s in found.subscripts)
    ]


def _extents(site: Site) -> tuple[int, ...]:
    return tuple(loop.extent for loop in site.loops)


def out_of_bounds(rng: Random) -> Broken:
    case = Case.random(rng)
    if rng.random() < 0.3:
        return _negative_write(case, rng)
    places = _plain_reads(case)
    if not places:
        return None
    site, old, path = rng.choice(places)
    dimension = rng.randrange(len(old.subscripts))
    subscript, size = old.subscripts[dimension], _shapes(case)[old.tensor.name][dimension]
    low, high = interval(subscript, _extents(site))
    moved: Expr
    if rng.random() < 0.5:
        moved = Binary("+", subscript, Int(size - high + rng.randrange(3)))
    else:
        moved = Binary("-", subscript, Int(low + 1 + rng.randrange(3)))
    return case.with_value(site, replaced(site.equation.value, path, with_subscript(old, dimension, moved)))


def _negative_write(case: Case, rng: Random) -> Broken:
    sites = [site for site in case.sites() if site.equation.target.subscripts]
    if not sites:
        return None
    site = rng.choice(sites)
    target = site.equation.target
    dimension = rng.randrange(len(target.subscripts))
    return case.with_target(site, with_subscript(target, dimension, Binary("-", target.subscripts[dimension], ONE)))


def _gathered(rng: Random, ranged: bool) -> Broken:
    """With one subscript of a read taken from an integer tensor whose range is too wide, or not known."""
    case = Case.random(rng)
    places = _plain_reads(case)
    if not places:
        return None
    site, old, path = rng.choice(places)
    dimension = rng.randrange(len(old.subscripts))
    size = _shapes(case)[old.tensor.name][dimension]
    span = rng.choice(((0, size), (-1, size - 1), (-3, size + 2), (size, size)))
    k = rng.randrange(len(site.loops))
    case, index = case.declared(rng.choice(("i64", "i32")), (site.loops[k].extent,), span if ranged else None)
    new = with_subscript(old, dimension, Access(index, (Index(k),)))
    return case.with_value(site, replaced(site.equation.value, path, new))


def gather_out_of_range(rng: Random) -> Broken:
    return _gathered(rng, True)


def range_missing(rng: Random) -> Broken:
    return _gathered(rng, False)


def zero_divisor(rng: Random) -> Broken:
    case = Case.random(rng)
    site = rng.choice(case.sites())
    k = rng.randrange(len(site.loops))
    size = site.loops[k].extent
    divisor = rng.choice((Index(k), Binary("-", Index(k), Int(rng.randrange(size))), Binary("*", Index(k), Int(2)), ZERO))
    term = Binary(rng.choice(("//", "%")), rng.choice((Int(3), Index(k))), divisor)
    places = [p for p in _plain_reads(case) if p[0].path == site.path]
    if places and rng.random() < 0.5:
        _, old, path = rng.choice(places)
        new = with_subscript(old, rng.randrange(len(old.subscripts)), term)
        return case.with_value(site, replaced(site.equation.value, path, new))
    return case.with_value(site, Binary("+", site.equation.value, term))


def undefined_read(rng: Random) -> Broken:
    case = Case.random(rng)
    if rng.random() < 0.4:
        return _reads_itself(case, rng)
    writers: dict[str, set[int]] = {}
    for site in case.sites():
        writers.setdefault(site.name, set()).add(site.path[0])
    readers = [
        (found.tensor.name, site.path[0])
        for site in case.sites()
        for found, _ in reads(site, guarded=False)
        if site.path[0] not in writers.get(found.tensor.name, {site.path[0]})
    ]
    if not readers:
        return None
    name, reader = rng.choice(readers)
    late = writers[name]
    nests = [n for k, n in enumerate(case.nests) if k not in late] + [n for k, n in enumerate(case.nests) if k in late]
    return replace(case, nests=tuple(nests)) if reader not in late else None


def _reads_itself(case: Case, rng: Random) -> Broken:
    first: dict[str, Site] = {}
    for site in case.sites():
        first.setdefault(site.name, site)
    sites = [site for site in first.values() if not site.accumulates]
    if not sites:
        return None
    site = rng.choice(sites)
    return case.with_value(site, Binary("-", site.equation.value, site.equation.target))


def output_unwritten(rng: Random) -> Broken:
    case = Case.random(rng)
    tensors = list(case.signature.tensors)
    k = next(k for k, t in enumerate(tensors) if t.role == "output")
    shape = list(tensors[k].shape)
    if not shape:
        return None
    shape[rng.randrange(len(shape))] += rng.randint(1, 3)
    tensors[k] = replace(tensors[k], shape=tuple(shape))
    return case.with_known(*tensors)


def undecided(rng: Random) -> Broken:
    """A product of indices that its guard keeps in bounds, in a way that no quasi-affine set can express."""
    case, tensor = Case.random(rng).declared("f32", (1,))
    long = [(s, k) for s in case.sites() for k, loop in enumerate(s.loops) if loop.extent > 1]
    if not long:
        return None
    site, k = rng.choice(long)
    other = rng.choice([j for s, j in long if s is site])
    guard = Compare((Binary("+", Index(k), Index(other)), ONE), ("<",))
    read = Call("if_then_else", (guard, Access(tensor, (Binary("*", Index(k), Index(other)),)), ZERO))
    return case.with_value(site, Binary("+", site.equation.value, read))


# ----------------------------------------------------------------------------------------------------------------- parallel loops


def _with_kind(case: Case, site: Site, axis: int, kind: Kind, rng: Random) -> Case:
    """With the loop of one axis around an equation made ``kind``."""
    around = [(path, k) for path, k, _ in case.loop_places() if path == site.path[: len(path)]]
    taken = {loop.name[:2] for path, _, loop in case.loop_places() if path[0] == site.path[0]}
    loop = site.loops[axis]
    name = rng.choice([n for n in GPU_NAMES if n not in taken]) + rng.choice(("", "a")) if kind == "B" else loop.name
    return case.with_loop(*around[axis], Loop(kind, name, loop.digits))


def _reduced_axes(site: Site) -> list[int]:
    """The loops over which an equation accumulates."""
    kept = {e.axis for s in site.equation.target.subscripts for e in subexpressions(s) if isinstance(e, Index)}
    return [k for k, loop in enumerate(site.loops) if k not in kept and loop.extent > 1] if site.accumulates else []


def reduction_bound(rng: Random) -> Broken:
    case = Case.random(rng, replace(PLAIN, kinds=False))
    places = [(site, axis) for site in case.sites() for axis in _reduced_axes(site)]
    if not places:
        return None
    return _with_kind(case, *rng.choice(places), "B", rng)


def _whole(site: Site) -> tuple[Index, ...]:
    return tuple(Index(k) for k in range(len(site.loops)))


RECURRENT: Options = replace(PLAIN, kinds=False, nested=False, guards=False)


def carried_dependence(rng: Random) -> Broken:
    case = Case.random(rng, RECURRENT)
    places: list[tuple[Site, int, Kind]] = []
    for site in case.sites():
        for axis in _reduced_axes(site):
            places += [(site, axis, "P"), (site, axis, "V")]
        for found, _ in reads(site):
            if found.tensor is site.equation.target.tensor and site.equation.target.subscripts == _whole(site):
                moved = [k for k, sub in enumerate(found.subscripts) if sub is not Index(k)]
                if moved:  # the outermost loop along which it looks back or ahead carries it
                    places += [(site, moved[0], "P"), (site, moved[0], "V"), (site, moved[0], "B")]
    if not places:
        return None
    site, axis, kind = rng.choice(places)
    return _with_kind(case, site, axis, kind, rng)


VALUES: Mapping[str, Callable[[Random], Broken]] = {
    "out-of-bounds": out_of_bounds,
    "gather-out-of-range": gather_out_of_range,
    "range-missing": range_missing,
    "zero-divisor": zero_divisor,
    "undefined-read": undefined_read,
    "output-unwritten": output_unwritten,
    "undecided": undecided,
    "reduction-bound": reduction_bound,
    "carried-dependence": carried_dependence,
}
