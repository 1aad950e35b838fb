"""What lowering decides before it writes TIR, on flat nests: where accumulations start, and which loop kinds to keep.

*Initialisation.* An equation with ``init == "all"`` writes the identity to exactly the elements that it is about to accumulate. The
store goes right before the outermost loop that the target's subscripts do not name, and repeats the inner loops that they do name:

    L_a L_c L_d [X_{a,d}=X_{a,d}+e]    ->    for a { for d { X[a,d] = 0 }; for c { for d { X[a,d] += e } } }

That is right when no element is met again under another iteration of the loops outside the store, which injective subscripts
ensure: an element met twice would be reset. Otherwise, and where ``init`` is a set of elements, the whole tensor is filled at the
start of the function. Whatever is written before it is read overwrites the fill, so a fill is always right as long as the equations
that need one share their operator.

*Kinds.* The sequential reading is the meaning, so a kind that isl does not prove harmless is lowered as a serial loop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from leir.digits import whole
from leir.ir import Access, AccumulateOp, Equation, Index, Nest, Tensor, subexpressions
from leir.polyhedral import (
    Level,
    OverBudgetError,
    Statement,
    compare,
    conflict,
    conflict_kind,
    relation,
    statements,
    within_budget,
)

Path: TypeAlias = tuple[int, ...]
"""Item positions from the program down."""
LoopSite: TypeAlias = tuple[Path, int]
"""A loop: the path of its nest, and its position in the nest's schedule."""
Mode: TypeAlias = Literal["serial", "parallel", "vectorized", "unrolled"]
"""How a loop runs on a CPU."""

MAX_LANES = 64
"""The longest vectorized loop that stays one. Longer ones become serial; LLVM's own vectorizer then sees a plain loop."""
MAX_UNROLL = 64
"""The largest product of nested unrolled extents that is still expanded: TVM's time and memory grow with it (facts-tvm.md, b)."""


class LoweringRefused(Exception):
    """A program that cannot be lowered. ``code`` names the reason, ``where`` the tensor or the path."""

    def __init__(self, code: str, where: str, message: str) -> None:
        super().__init__(code, where, message)
        self.code = code
        self.where = where
        self.message = message

    def __str__(self) -> str:
        return f"{self.code}: {self.where}: {self.message}"


@dataclass(frozen=True, slots=True)
class Fill:
    """Every element of ``tensor`` starts from the identity of ``op``."""

    tensor: Tensor
    op: AccumulateOp


@dataclass(frozen=True, slots=True)
class Start:
    """The elements of ``target`` start from the identity of ``op``; the loops on ``axes`` (number, extent) are repeated for it."""

    target: Access
    op: AccumulateOp
    axes: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """``fills`` run first; ``before_loop`` and ``before_equation`` say which starts go right before what."""

    fills: tuple[Fill, ...]
    before_loop: dict[LoopSite, list[Start]]
    before_equation: dict[Path, list[Start]]
    modes: dict[LoopSite, Mode]


def plan(nests: Sequence[Nest]) -> Plan:
    """The plan for flat nests. Raises LoweringRefused."""
    result = Plan((), defaultdict(list), defaultdict(list), {})
    fills: dict[str, Fill] = {}
    for position, nest in enumerate(nests):
        _starts(nest, (position,), (), (), result, fills)
    _modes(nests, result)
    return Plan(tuple(fills.values()), result.before_loop, result.before_equation, result.modes)


# -------------------------------------------------------------------------------------------------------------- initialisation


def _starts(
    nest: Nest, path: Path, outer: tuple[LoopSite, ...], extents: tuple[int, ...], result: Plan, fills: dict[str, Fill]
) -> None:
    sites = outer + tuple((path, k) for k in range(len(nest.schedule)))
    extents = extents + nest.axes
    for position, item in enumerate(nest.body):
        here = (*path, position)
        if isinstance(item, Nest):
            _starts(item, here, sites, extents, result, fills)
        elif item.init is not None:
            _start(item, here, sites, extents, result, fills)


def _start(
    equation: Equation, path: Path, sites: tuple[LoopSite, ...], extents: tuple[int, ...], result: Plan, fills: dict[str, Fill]
) -> None:
    op = equation.accumulates
    assert op is not None, "only an accumulation has init"
    target = equation.target
    if equation.init != "all" or not is_injective(target, extents):
        fill = fills.setdefault(target.tensor.name, Fill(target.tensor, op))
        if fill.op != op:
            raise LoweringRefused(
                "mixed-initialisation",
                target.tensor.name,
                f"elements start from the identity of {fill.op} and of {op}, and which ones is no plain rectangle;"
                " write the initial values with equations of their own",
            )
        return
    named = named_axes(target)
    outermost = next((axis for axis in range(len(extents)) if axis not in named), len(extents))
    start = Start(target, op, tuple((axis, extents[axis]) for axis in range(outermost, len(extents)) if axis in named))
    if outermost == len(extents):
        result.before_equation[path].append(start)
    else:
        result.before_loop[sites[outermost]].append(start)


def named_axes(access: Access) -> frozenset[int]:
    """The axes in the subscripts of ``access``."""
    return frozenset(e.axis for e in subexpressions(access) if isinstance(e, Index))


def is_injective(access: Access, extents: tuple[int, ...]) -> bool:
    """Whether the axes that ``access`` names, over their extents, reach every element at most once. False if isl cannot say."""
    named = named_axes(access)
    box = tuple(size if axis in named else 1 for axis, size in enumerate(extents))
    found = relation(box, access, ())
    if not found.exact:
        return False
    try:
        return bool(within_budget(found.map.is_injective))
    except OverBudgetError:
        return False


# ----------------------------------------------------------------------------------------------------------------------- kinds


def _modes(nests: Sequence[Nest], result: Plan) -> None:
    below = _Below(nests)
    for position, nest in enumerate(nests):
        _nest_modes(nest, (position,), 0, 1, False, below, result)


def _nest_modes(nest: Nest, path: Path, depth: int, unrolled: int, parallel: bool, below: _Below, result: Plan) -> None:
    for k, loop in enumerate(nest.schedule):
        mode: Mode = "serial"
        if loop.kind == "U" and unrolled * loop.extent <= MAX_UNROLL:
            mode = "unrolled"
            unrolled *= loop.extent
        elif loop.kind == "P" and not parallel and not below.carries(path, depth + k):
            mode = "parallel"
            parallel = True
        elif loop.kind == "V" and k == len(nest.schedule) - 1 and 1 < loop.extent <= MAX_LANES:
            innermost = not any(isinstance(item, Nest) for item in nest.body)
            if innermost and not below.carries(path, depth + k):
                mode = "vectorized"
        result.modes[path, k] = mode
    for position, item in enumerate(nest.body):
        if isinstance(item, Nest):
            _nest_modes(item, (*path, position), depth + len(nest.schedule), unrolled, parallel, below, result)


class _Below:
    """The statements of a program, asked for what a loop carries."""

    def __init__(self, nests: Sequence[Nest]) -> None:
        self.nests = nests
        self.all: list[Statement] | None = None

    def carries(self, path: Path, axis: int) -> bool:
        """Whether two iterations of the loop on ``axis`` of the nest at ``path``, equal in all outer loops, touch one element and
        one of them writes it. True if isl cannot say."""
        if self.all is None:
            self.all = statements(self.nests)
        inside = [s for s in self.all if s.path[: len(path)] == path]
        try:
            return bool(within_budget(lambda: any(_carried(s, t, axis) for s in inside for t in inside)))
        except OverBudgetError:
            return True


def _carried(s: Statement, t: Statement, axis: int) -> bool:
    for a in s.touches:
        for b in t.touches:
            if conflict_kind(s, a, t, b) is None:
                continue
            pairs = conflict(s, a, t, b)
            for outer in range(axis):
                pairs = compare(pairs, s, _level(s, outer), t, _level(t, outer), "=")
            if not compare(pairs, s, _level(s, axis), t, _level(t, axis), "<").is_empty():
                return True
    return False


def _level(statement: Statement, axis: int) -> Level:
    return Level("L", whole(axis, statement.extents[axis]), 0)
