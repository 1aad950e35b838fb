"""Breakers for names, tensors and types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from leir.digits import whole
from leir.ir import Access, Binary, Call, Equation, Expr, Index, Int, Loop, Real, Role, Tensor
from tests.illegal.case import INTEGER, ONE, TWO, Case, access, loops, nest, reads, replaced, role_of, with_subscript

Broken = Case | None


def signature_invalid(rng: Random) -> Broken:
    case = Case.random(rng)
    tensors = case.signature.tensors
    k = rng.randrange(len(tensors))
    known = tensors[k]
    bad = [
        replace(known, dtype="f8"),
        replace(known, role="weight"),  # type: ignore[arg-type]
        replace(known, shape=(0, *known.shape[1:])),
        replace(known, range=(3, 1)),
        replace(known, dtype="f32", range=(0, 1)),
    ]
    if rng.random() < 0.2:
        return case.with_known(*tensors, replace(known, role="input"))
    return case.with_known(*tensors[:k], rng.choice(bad), *tensors[k + 1 :])


def tensor_name(rng: Random) -> Broken:
    case = Case.random(rng)
    old, new = rng.choice(sorted(case.names())), rng.choice(("P", "L", "T", "B", "a", "AA", "Ab1", "A_", "X" + "a" * 40, ""))
    known = tuple(replace(t, name=new) if t.name == old else t for t in case.signature.tensors)
    return case.with_known(*known).mapped(lambda a: _renamed(a, new) if a.tensor.name == old else a)


def _renamed(found: Access, name: str) -> Access:
    return Access(Tensor(name, found.tensor.dtype, found.tensor.scope), found.subscripts)


def _loop_renamed(case: Case, rng: Random, names: tuple[str, ...]) -> Broken:
    serial = [place for place in case.loop_places() if place[2].kind != "B"]
    if not serial:
        return None
    path, k, loop = rng.choice(serial)
    return case.with_loop(path, k, Loop(loop.kind, rng.choice(names), loop.digits))


def index_name(rng: Random) -> Broken:
    return _loop_renamed(Case.random(rng), rng, ("e", "v", "inf", "at", "a1", "exp", "A", "", "cast_f32", "q" * 40, "y"))


def bound_prefix(rng: Random) -> Broken:
    case = Case.random(rng)
    if rng.random() < 0.5:
        return _loop_renamed(case, rng, ("tx", "txa", "bx", "bza", "ty"))
    path, k, loop = rng.choice(case.loop_places())
    return case.with_loop(path, k, Loop("B", rng.choice(("a", "c", "axz", "w")), loop.digits))


def duplicate_index(rng: Random) -> Broken:
    case = Case.random(rng)
    deep = [site for site in case.sites() if len(site.loops) > 1]
    if not deep:
        return None
    site = rng.choice(deep)
    around = [(path, k) for path, k, _ in case.loop_places() if path == site.path[: len(path)]]
    outer, inner = sorted(rng.sample(range(len(around)), 2))
    loop = site.loops[inner]
    return case.with_loop(*around[inner], Loop(loop.kind, site.loops[outer].name, loop.digits))


def loop_extent(rng: Random) -> Broken:
    case = Case.random(rng)
    path, k, loop = rng.choice(case.loop_places())
    return case.with_loop(path, k, Loop(loop.kind, loop.name, whole(loop.digits[0].axis, rng.choice((0, -1, 2**31, 2**40)))))


def _random_read(case: Case, rng: Random, *, rank: int = 0) -> tuple[tuple[int, ...], tuple[int, ...], Access] | None:
    found = [(s.path, p, a) for s in case.sites() for a, p in reads(s) if len(a.subscripts) >= rank]
    return rng.choice(found) if found else None


def _edit_read(case: Case, rng: Random, edit: Callable[[Access], Access], *, rank: int = 0) -> Broken:
    """With one read, chosen at random, edited."""
    place = _random_read(case, rng, rank=rank)
    if place is None:
        return None
    path, scalar, old = place
    site = next(s for s in case.sites() if s.path == path)
    return case.with_value(site, replaced(site.equation.value, scalar, edit(old)))


def unknown_tensor(rng: Random) -> Broken:
    case = Case.random(rng)
    return _edit_read(case, rng, lambda a: _renamed(a, case.free_tensor()))


def known_mismatch(rng: Random) -> Broken:
    case = Case.random(rng)
    known = {t.name for t in case.signature.tensors}
    places = [(s, a, p) for s in case.sites() for a, p in reads(s) if a.tensor.name in known]
    if not places:
        return None
    site, old, path = rng.choice(places)
    dtype, scope = rng.choice((("f64", "g"), (old.tensor.dtype, "s"), (old.tensor.dtype, "l")))
    new = Access(Tensor(old.tensor.name, dtype, scope), old.subscripts)  # type: ignore[arg-type]
    return case.with_value(site, replaced(site.equation.value, path, new))


def _one_access_of_temporary(rng: Random, change: Callable[[Tensor], Tensor]) -> Broken:
    case = Case.random(rng)
    known = {t.name for t in case.signature.tensors}
    places = [(s, a, p) for s in case.sites() for a, p in reads(s) if a.tensor.name not in known]
    if not places:
        return None
    site, old, path = rng.choice(places)
    return case.with_value(site, replaced(site.equation.value, path, Access(change(old.tensor), old.subscripts)))


def tensor_dtypes(rng: Random) -> Broken:
    return _one_access_of_temporary(rng, lambda t: Tensor(t.name, rng.choice(("f64", "f16", "i32")), t.scope))


def tensor_scopes(rng: Random) -> Broken:
    return _one_access_of_temporary(rng, lambda t: Tensor(t.name, t.dtype, rng.choice(("s", "l"))))


def rank_mismatch(rng: Random) -> Broken:
    case = Case.random(rng)
    if rng.random() < 0.3:
        others = [s for s in case.sites() if any(t.name == s.name and t.path != s.path for t in case.sites())]
        if others:  # two writers of different rank
            site = rng.choice(others)
            target = site.equation.target
            return case.mapped(lambda a: Access(a.tensor, (*a.subscripts, Int(0))) if a is target else a, site.path)
    if rng.random() < 0.5:
        return _edit_read(case, rng, lambda a: Access(a.tensor, a.subscripts[1:]), rank=1)
    return _edit_read(case, rng, lambda a: Access(a.tensor, (*a.subscripts, Int(0))))


def write_to_input(rng: Random) -> Broken:
    case = Case.random(rng)
    tensors = case.signature.tensors
    if rng.random() < 0.5:
        role: Role = rng.choice(("input", "param", "constant"))
        return case.with_known(*(role_of(t, role) if t.role == "output" else t for t in tensors))
    known = rng.choice([t for t in tensors if t.role != "output"])
    schedule = loops(*(("L", name, n) for name, n in zip("acd", known.shape, strict=False)))
    target = access(known.name, *range(len(known.shape)), dtype=known.dtype)
    return case.followed_by(nest(schedule, Equation(target, Binary("+", target, ONE) if rng.random() < 0.5 else ONE)))


def indirect_target(rng: Random) -> Broken:
    case = Case.random(rng)
    sites = [s for s in case.sites() if s.equation.target.subscripts and not s.accumulates]
    if not sites:
        return None
    site = rng.choice(sites)
    case, index = case.declared(rng.choice(("i64", "i32")), (), (0, 1))
    target = site.equation.target
    subscript: Expr = Access(index, ())
    if rng.random() < 0.5:
        subscript = Binary(rng.choice("+*"), subscript, ONE)
    return case.with_target(site, with_subscript(target, rng.randrange(len(target.subscripts)), subscript))


def tensor_too_large(rng: Random) -> Broken:
    case = Case.random(rng)
    huge = 2**31 - 1
    wide = [k for k, t in enumerate(case.signature.tensors) if len(t.shape) > 1 and t.role == "input"]
    read = {a.tensor.name for s in case.sites() for a, _ in reads(s)}
    wide = [k for k in wide if case.signature.tensors[k].name in read]
    if not wide or rng.random() < 0.3:
        schedule = loops(("L", "a", huge), ("L", "c", huge - rng.randrange(9)), ("L", "d", rng.randint(3, 9)))
        return case.followed_by(nest(schedule, Equation(access(case.free_tensor(), 0, 1, 2), ONE)))
    k = rng.choice(wide)
    tensors = list(case.signature.tensors)
    tensors[k] = replace(tensors[k], shape=tuple(huge for _ in tensors[k].shape))
    return case.with_known(*tensors)


# -------------------------------------------------------------------------------------------------------------------------- types


def _plus(case: Case, rng: Random, term: Expr, op: str = "+") -> Case:
    """With a term added to the value of one equation."""
    site = rng.choice(case.sites())
    return case.with_value(site, Binary(op, site.equation.value, term))


def dtype_mismatch(rng: Random) -> Broken:
    case, other = Case.random(rng).declared(rng.choice(("f64", "f16", "bf16", "i32", "bool")))
    if rng.random() < 0.3:
        site = rng.choice(case.sites())
        guard = Access(Tensor(other.name, "f64", "g"), ())
        case = case.with_known(*case.signature.tensors[:-1], replace(case.signature.tensors[-1], dtype="f64"))
        return case.with_value(site, Call("if_then_else", (guard, site.equation.value, ONE)))
    return _plus(case, rng, Access(other, ()), rng.choice("+*-"))


def dtype_domain(rng: Random) -> Broken:
    if rng.random() < 0.5:
        case, number = Case.random(rng).declared("f32")
        return _plus(case, rng, Binary(rng.choice(("//", "%")), Access(number, ()), TWO))
    case = Case.random(rng, INTEGER)
    case, number = case.declared(case.sites()[0].equation.target.tensor.dtype)
    read = Access(number, ())
    return _plus(case, rng, rng.choice((Binary("/", read, TWO), Call("exp", (read,)), Call("floor", (read,)))))


def literal_range(rng: Random) -> Broken:
    case = Case.random(rng, INTEGER)
    case, number = case.declared(case.sites()[0].equation.target.tensor.dtype)
    dtype = number.dtype
    huge = Int(2**31 if dtype == "i32" else 2**63)
    return _plus(case, rng, Binary("*", Access(number, ()), rng.choice((Real(0.5), Real(1.0), huge))))


def subscript_type(rng: Random) -> Broken:
    case, number = Case.random(rng).declared(rng.choice(("f32", "bool", "f64")))
    place = _random_read(case, rng, rank=1)
    if place is None:
        return None
    dimension = rng.randrange(len(place[2].subscripts))
    path, scalar, old = place
    site = next(s for s in case.sites() if s.path == path)
    new = with_subscript(old, dimension, rng.choice((Access(number, ()), Binary("+", Access(number, ()), ONE))))
    return case.with_value(site, replaced(site.equation.value, scalar, new))


def bool_accumulation(rng: Random) -> Broken:
    n = rng.randint(2, 4)
    case, mask = Case.random(rng).declared("bool", (n,))
    target = access(case.free_tensor(), dtype="bool")
    read = Access(mask, (Index(0),))
    op = rng.choice(("+", "*", "max", "min"))
    value = Binary(op, target, read) if op in "+*" else Call(op, rng.choice(((target, read), (read, target))))
    return case.followed_by(nest(loops(("L", "a", n)), Equation(target, value)))


def index_overflow(rng: Random) -> Broken:
    case = Case.random(rng)
    long = [(s, k) for s in case.sites() for k, loop in enumerate(s.loops) if loop.extent > 2]
    if not long:
        return None
    site, k = rng.choice(long)
    far = Binary("*", Index(k), Int(2**62)) if rng.random() < 0.6 else Binary("+", Index(k), Int(2**63 - 1))
    return case.with_value(site, Binary("+", site.equation.value, far))


STRUCTURE: Mapping[str, Callable[[Random], Broken]] = {
    "signature-invalid": signature_invalid,
    "tensor-name": tensor_name,
    "index-name": index_name,
    "bound-prefix": bound_prefix,
    "duplicate-index": duplicate_index,
    "loop-extent": loop_extent,
    "unknown-tensor": unknown_tensor,
    "known-mismatch": known_mismatch,
    "tensor-dtypes": tensor_dtypes,
    "tensor-scopes": tensor_scopes,
    "rank-mismatch": rank_mismatch,
    "write-to-input": write_to_input,
    "indirect-target": indirect_target,
    "tensor-too-large": tensor_too_large,
    "dtype-mismatch": dtype_mismatch,
    "dtype-domain": dtype_domain,
    "literal-range": literal_range,
    "subscript-type": subscript_type,
    "bool-accumulation": bool_accumulation,
    "index-overflow": index_overflow,
}
