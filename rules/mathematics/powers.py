"""The strategy ``powsimp``: reciprocals, powers and exponentials in a product are combined.

A product is looked at as a tree: what is combined is replaced where its first part stands, and everything else stays. A combination
that is not itself a part of the tree computes a value that was not computed before, which may overflow: it is ``real+range``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce

from leir.ir import INT_DTYPES, Binary, Call, Expr, Index, Int, Real, Unary, children, with_children
from rules.mathematics.identity import Identity, is_path, unwieldy, verified
from rules.mathematics.ranges import SAFE_EXPONENT, range_of
from rules.mathematics.shape import at, has_infinity, is_arithmetic, is_number, paths_in, replace, restored, shape_of
from rules.mathematics.sums import Term, products_in, sum_of
from rules.strategy import Arguments, Proof, Proposal, Refusal, Rounding, ScalarUnit

MAX_POWER = 64  # that the lowering still takes for integers

Path = tuple[int, ...]


def parameters(unit: ScalarUnit) -> Iterator[Arguments]:
    """Every combination: ``rule`` and ``at``, the scalar path within the site of what it works on.

    ``quotient``: a product with a reciprocal. ``tower``: a power of a power. ``power``: a maximal product in which a base occurs
    more than once, the one that stands at ``base``, a path within it. ``exponential``: a maximal product with several exponentials.
    """
    shape = shape_of(unit.expr).expr
    if unwieldy(shape) is not None:
        yield (("rule", "quotient"), ("at", ()))
        return
    for path, node in paths_in(shape):
        if isinstance(node, Binary) and node.op in ("*", "**"):
            rule = "quotient" if node.op == "*" else "tower"
            if _combined(unit, path, rule, ()) is not None:
                yield (("rule", rule), ("at", path))
    for path, _ in products_in(shape):
        product = at(unit.expr, path)
        assert product is not None
        for base in _repeated(product):
            if _combined(unit, path, "power", base) is not None:
                yield (("rule", "power"), ("at", path), ("base", base))
        if _combined(unit, path, "exponential", ()) is not None:
            yield (("rule", "exponential"), ("at", path))


def propose(unit: ScalarUnit, arguments: Arguments) -> Proposal | Refusal:
    """A reciprocal in a product becomes a divisor, factors with one base become one power, exponentials become one.

    before::

        # A f32[4,8] input
        # E f32[4,8] output
        L^{4}_{a=0}L^{8}_{c=0}[E^{f32,g}_{a,c}=A^{f32,g}_{a,c}*(1/(1+exp(-A^{f32,g}_{a,c})));];

    step::

        powsimp 0.0: rule=quotient at=,

    after::

        # A f32[4,8] input
        # E f32[4,8] output
        L^{4}_{a=0}L^{8}_{c=0}[E^{f32,g}_{a,c}=A^{f32,g}_{a,c}/(1+exp(-A^{f32,g}_{a,c}));];

    Always equal over the reals: nothing cancels, not even ``x*(1/x)``, and powers with other than positive literal exponents are
    left alone. Of the class ``real+range``, so offered on request only: a power that gathers factors from several places, and
    ``exp(x)*exp(y)`` to ``exp(x+y)``. The latter is the better computed of the two, but where one factor overflows and the other
    vanishes the product was infinite, NaN or 0 and the result is a number. Where bounds of x and y exclude that it is ``real``.

    From Table 10 of the paper.
    """
    given = dict(arguments)
    rule, path, base = given.get("rule"), given.get("at"), given.get("base", ())
    if not isinstance(rule, str) or not is_path(path) or not is_path(base) or (rule == "power") != ("base" in given):
        return Refusal("no-such-form", f"{arguments!r} does not say which factors are meant")
    shape = shape_of(unit.expr).expr
    if (reason := unwieldy(shape)) is not None:
        return Refusal("term-too-large", reason)
    known = [p for p, _ in (products_in(shape) if rule in ("power", "exponential") else paths_in(shape))]
    outcome = _combined(unit, path, rule, base) if path in known else None
    if outcome is None:
        return Refusal("no-such-form", f"there is no {rule} at {path}")
    if isinstance(outcome, Refusal):
        return outcome
    result, rounding, proofs = outcome
    return Proposal(replace(unit.expr, path, result), rounding, proofs)


def _combined(unit: ScalarUnit, path: Path, rule: str, base: Path) -> tuple[Expr, Rounding, tuple[Proof, ...]] | Refusal | None:
    """What the product or power at ``path`` becomes, the rounding class, and the proofs."""
    found = at(unit.expr, path)
    assert found is not None
    integers = unit.dtype in INT_DTYPES
    numbers: dict[Expr, Index] = {}
    exposed = _exposed(found, numbers)
    combination = combine(exposed, rule, base)
    if combination is None or isinstance(combination, Refusal):
        return combination
    leaves = tuple(numbers)
    proofs = combination.identity.proofs(integers)
    if integers:
        return restored(combination.result, leaves), "bitwise", proofs
    if not combination.in_place:
        return restored(combination.result, leaves), "real+range", proofs
    if rule == "exponential":
        limit = SAFE_EXPONENT[unit.dtype]
        exponents = [restored(e, leaves) for e in combination.exponents]
        bounds = [range_of(e) for e in exponents]
        if not all(-limit <= low and high <= limit for low, high in bounds):
            return restored(combination.result, leaves), "real+range", proofs
        shown = ", ".join(f"[{low:g}, {high:g}]" for low, high in bounds)
        proofs += (Proof("neither overflows nor vanishes", "analysis", f"the exponents, the new one last, lie in {shown}"),)
    return restored(combination.result, leaves), "real", proofs


def _exposed(expr: Expr, numbers: dict[Expr, Index]) -> Expr:
    """A shape (`rules.mathematics.shape`) that also shows exponentials and powers with the exponent -1, and hides infinities."""
    if is_number(expr) and not has_infinity(expr):
        return expr
    if is_arithmetic(expr) or _is_inverse(expr):
        return with_children(expr, tuple(_exposed(child, numbers) for child in children(expr)))
    if isinstance(expr, Call) and expr.fn == "exp":
        (exponent,) = expr.args
        return Call("exp", (numbers.setdefault(exponent, Index(len(numbers))),))
    return numbers.setdefault(expr, Index(len(numbers)))


def _is_inverse(expr: Expr) -> bool:
    return isinstance(expr, Binary) and expr.op == "**" and expr.right is Unary("-", Int(1))


# ------------------------------------------------------------------------------------------------------------------- combining


@dataclass(frozen=True, slots=True)
class Combination:
    """``in_place``: what is combined was a part of the tree, so no other value is new. ``exponents``: those of the exponentials
    that are combined, and the new one."""

    result: Expr
    identity: Identity
    in_place: bool = True
    exponents: tuple[Expr, ...] = ()


@lru_cache(maxsize=4096)
def combine(exposed: Expr, rule: str, base: Path) -> Combination | Refusal | None:
    """One combination in a product or power over numbered leaves; None where there is none.

    Refused as ``needs-nonzero`` where a literal zero divides.
    """
    match rule:
        case "quotient":
            found = _quotient(exposed)
        case "tower":
            found = _tower(exposed)
        case "power":
            found = _power(exposed, base)
        case "exponential":
            found = _exponential(exposed)
        case _:
            return None
    if found is None:
        return None
    result, in_place, exponents = found
    identity = verified(exposed, Term(False, result))
    return identity if isinstance(identity, Refusal) else Combination(result, identity, in_place, exponents)


Found = tuple[Expr, bool, tuple[Expr, ...]] | None


def _quotient(node: Expr) -> Found:
    """``a*(1/b)`` and ``(1/b)*a``."""
    if not (isinstance(node, Binary) and node.op == "*"):
        return None
    for factor, other in ((node.right, node.left), (node.left, node.right)):
        match factor:
            case Binary(op="/", left=Int(value=1) | Real(value=1.0), right=divisor):
                return Binary("/", other, divisor), True, ()
            case Binary(op="**", left=divisor, right=Unary()):
                return Binary("/", other, divisor), True, ()
    return None


def _tower(node: Expr) -> Found:
    """``(x**2)**3``."""
    match node:
        case Binary(op="**", left=Binary(op="**", left=base, right=Int(value=inner)), right=Int(value=outer)):
            return (Binary("**", base, Int(inner * outer)), True, ()) if inner * outer <= MAX_POWER else None
    return None


def _power(product: Expr, base: Path) -> Found:
    """All factors with the base of the one at ``base``, gathered there."""
    factors = list(_factors(product))
    chosen = dict(factors).get(base)
    if chosen is None:
        return None
    wanted = _base(chosen)[0]
    paths = [path for path, expr in factors if _base(expr)[0] is wanted]
    exponent = sum(_base(expr)[1] for path, expr in factors if path in paths)
    if len(paths) < 2 or paths[0] != base or exponent > MAX_POWER or is_number(wanted):
        return None
    return _gathered(product, paths, Binary("**", wanted, Int(exponent)), ())


def _exponential(product: Expr) -> Found:
    """All exponentials among factors and divisors, gathered where the first factor of them stands."""
    factors, divisors = list(_factors(product)), list(_divisors(product))
    over = [path for path, expr in factors if _is_exponential(expr)]
    under = [path for path, expr in divisors if _is_exponential(expr)]
    if not over or len(over) + len(under) < 2:
        return None
    exponents = [Term(path in under, children(_at(product, path))[0]) for path in sorted([*over, *under])]
    exponents.sort(key=lambda term: term.negative)
    total = sum_of(exponents)
    shown = (*(term.expr for term in exponents), total)
    return _gathered(product, [*over, *under], Call("exp", (total,)), shown)


def _gathered(product: Expr, paths: list[Path], new: Expr, exponents: tuple[Expr, ...]) -> Found:
    """The product with ``new`` at the first of ``paths`` and without the others: in place where ``paths`` are all that there is in
    a part of the product."""
    common = _common(paths)
    everything = [path for path, _ in (*_factors(product), *_divisors(product))]
    if {path for path in everything if path[: len(common)] == common} == set(paths):
        part = _at(product, common)
        signed = Unary("-", new) if _signs(part) % 2 else new
        return replace(product, common, signed), True, exponents
    result = _without(product, (), frozenset(paths[1:]), paths[0], new)
    return None if result is None else (result, False, exponents)


def _signs(product: Expr) -> int:
    """How many minus signs stand before factors."""
    match product:
        case Binary(op="*"):
            return _signs(product.left) + _signs(product.right)
        case Binary(op="/"):
            return _signs(product.left)
        case Unary(op="-") if not is_number(product):
            return 1 + _signs(product.operand)
    return 0


def _without(product: Expr, path: Path, gone: frozenset[Path], place: Path, new: Expr) -> Expr | None:
    """The product with ``new`` at ``place`` and without the factors and divisors at ``gone``; None where nothing is left."""
    if path in gone:
        return None
    if path == place:
        return new
    match product:
        case Binary(op="*" | "/" as op):
            left = _without(product.left, (*path, 0), gone, place, new)
            right = None if (*path, 1) in gone else product.right
            if op == "*" and right is not None:
                right = _without(right, (*path, 1), gone, place, new)
            if left is None and op == "/" and right is not None:
                return Binary("/", Int(1), right)
            return left if right is None else right if left is None else Binary(op, left, right)
        case Unary(op="-") if not is_number(product):
            operand = _without(product.operand, (*path, 0), gone, place, new)
            return Unary("-", Int(1) if operand is None else operand)
    return product


def _factors(product: Expr, path: Path = ()) -> Iterator[tuple[Path, Expr]]:
    """The factors above the fraction bar, with their paths. A power is one factor, and so is a sum."""
    match product:
        case Binary(op="*"):
            yield from _factors(product.left, (*path, 0))
            yield from _factors(product.right, (*path, 1))
        case Binary(op="/"):
            yield from _factors(product.left, (*path, 0))
        case Unary(op="-") if not is_number(product):
            yield from _factors(product.operand, (*path, 0))
        case _:
            yield path, product


def _divisors(product: Expr, path: Path = ()) -> Iterator[tuple[Path, Expr]]:
    match product:
        case Binary(op="*"):
            yield from _divisors(product.left, (*path, 0))
            yield from _divisors(product.right, (*path, 1))
        case Binary(op="/"):
            yield from _divisors(product.left, (*path, 0))
            yield (*path, 1), product.right
        case Unary(op="-") if not is_number(product):
            yield from _divisors(product.operand, (*path, 0))


def _repeated(product: Expr) -> list[Path]:
    """Where each base that occurs more than once stands first."""
    first: dict[Expr, Path] = {}
    found: dict[Path, None] = {}
    for path, expr in _factors(product):
        base = _base(expr)[0]
        if base in first:
            found[first[base]] = None
        else:
            first[base] = path
    return list(found)


def _base(factor: Expr) -> tuple[Expr, int]:
    match factor:
        case Binary(op="**", left=base, right=Int(value=exponent)) if exponent > 0:
            return base, exponent
    return factor, 1


def _is_exponential(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.fn == "exp"


def _at(expr: Expr, path: Path) -> Expr:
    found = at(expr, path)
    assert found is not None
    return found


def _common(paths: Sequence[Path]) -> Path:
    """The longest path that all of them begin with."""

    def shared(a: Path, b: Path) -> Path:
        length = next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
        return a[:length]

    return reduce(shared, paths)
