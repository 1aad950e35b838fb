"""The conditions that every step must meet on top of its strategy's own (strategies.md, Common conditions): `init` predicates stay
what the text will be read with, and values in shared and local memory stay where they live."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from leir.initial import derive
from leir.ir import Equation, Nest, Program, equations
from leir.polyhedral import parse_set, touches
from rules.strategy import Proof, Refusal, Target


def with_init(program: Program, nests: tuple[Nest, ...], touched: Sequence[int]) -> tuple[Nest, ...] | Refusal:
    """The expressions as their text will be read; refused if that reads another initialisation than they carry."""
    if not _may_change(nests, touched):
        return nests
    derived = derive(program.signature, nests)
    if derived == nests:
        return nests
    for carried, read in zip(nests, derived, strict=True):
        for a, b in zip(equations(carried), equations(read), strict=True):
            if not _same_init(a.init, b.init):
                what = f"{a.target.tensor.name}, {_says(b)} instead of {_says(a)}"
                return Refusal("init-changes", f"the new text would be read with another initialisation of {what}")
    return derived


INIT_PROOF = Proof("init", "construction", "every accumulation starts where it did")


def _may_change(nests: tuple[Nest, ...], touched: Sequence[int]) -> bool:
    """Whether an accumulation in a touched expression has a competitor for the first write. Where it is the only writer of its
    tensor it always comes first."""
    written = [name for nest in nests for name in _written(nest)]
    return any(written.count(name) > 1 for k in touched for name in _accumulated(nests[k]))


@lru_cache(maxsize=50_000)
def _written(nest: Nest) -> tuple[str, ...]:
    return tuple(eq.target.tensor.name for eq in equations(nest))


@lru_cache(maxsize=50_000)
def _accumulated(nest: Nest) -> tuple[str, ...]:
    return tuple(dict.fromkeys(eq.target.tensor.name for eq in equations(nest) if touches(eq)[-1].role == "accumulate"))


def _same_init(a: str | None, b: str | None) -> bool:
    if a == b:
        return True
    if a is None or b is None or "all" in (a, b):
        return False
    return bool(parse_set(a).is_equal(parse_set(b)))


def _says(equation: Equation) -> str:
    return {None: "no element", "all": "every element"}.get(equation.init, f"the elements {equation.init}")


# ---------------------------------------------------------------------------------------------------------------------- scopes

_MEMORY_CODES = (
    "scope-escapes-kernel",
    "shared-crosses-blocks",
    "local-crosses-threads",
    "shared-memory",
    "vector-access",
    "undecided",
)


def memory_refusal(after: Program, touched: Sequence[int], target: Target) -> Refusal | None:
    """What the checker says about shared and local memory, and about vector accesses, in the expressions that a step touched and in
    those that share a tensor in such memory with them."""
    nests = after.nests
    scoped = frozenset().union(*(_scoped(nests[k]) for k in touched))
    elsewhere = frozenset().union(*(_scoped(nest) for k, nest in enumerate(nests) if k not in touched))
    for name in sorted(elsewhere - scoped):
        if any(name in _touched_names(nests[k]) for k in touched):
            return Refusal("tensor-scopes", f"{name} would be in global memory here, and in shared or local memory elsewhere")
    if not scoped and not (target == "cuda" and any(_vectorized(nests[k]) for k in touched)):
        return None
    from leir.check import check

    concerned = {*touched, *(k for k, nest in enumerate(nests) if scoped & _scoped(nest))}
    for found in check(after, target=target):
        if found.severity == "error" and found.code in _MEMORY_CODES and concerned.intersection(found.place.path[:1]):
            return Refusal(found.code, f"the result is no valid kernel: {found.message}")
    return None


@lru_cache(maxsize=50_000)
def _scoped(nest: Nest) -> frozenset[str]:
    """The tensors in shared or local memory that an expression touches."""
    accessed = (touch.access.tensor for eq in equations(nest) for touch in touches(eq))
    return frozenset(tensor.name for tensor in accessed if tensor.scope != "g")


@lru_cache(maxsize=50_000)
def _touched_names(nest: Nest) -> frozenset[str]:
    return frozenset(touch.access.tensor.name for eq in equations(nest) for touch in touches(eq))


@lru_cache(maxsize=50_000)
def _vectorized(nest: Nest) -> bool:
    return any(loop.kind == "V" for loop in nest.schedule) or any(_vectorized(item) for item in nest.body if isinstance(item, Nest))
