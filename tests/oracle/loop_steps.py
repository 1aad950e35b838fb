"""Tiling, fusion, unrolling, parallelization and vectorization of loops by brute force, and where a reduction can be cut.

As in `tests.oracle.steps`: the parameter space is spelled out on the text, and the verdict is that of time and of addresses, point
by point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod

from leir.digits import whole
from leir.ir import Access, Binary, Call, Equation, Expr, Index, Loop, Nest
from tests.oracle.steps import Case, Levels, Space, _below, _cut_points, _label
from tests.oracle.trace import Loops, Point, _mentions, _parts, accumulator, equations_of, number

Sizes = Callable[[str], Point]
Radices = Callable[[tuple[int, ...], int], Sequence[int]]
BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "i32": 4, "i64": 8, "bool": 1}


def _case(
    space: Space,
    strategy: str,
    path: tuple[int, ...],
    arguments: tuple[tuple[str, object], ...],
    loops: tuple[Loop, ...],
    values: Callable[[Point], Sequence[int]],
) -> Case:
    """The verdict on walking ``loops`` at ``path`` instead of the loops there; ``values`` takes the old ones' values to theirs."""
    labels = [_label(loop) for loop in loops]

    def walk(point: Point) -> Levels:
        return list(zip(labels, values(point), strict=True))

    return Case(strategy, path, arguments, *space.judge(space.retimed(path, walk), space.with_loops(path, loops), path[0]))


def _refused(case: Case, reason: str) -> Case:
    return Case(case.strategy, case.path, case.arguments, False, reason, True) if reason else case


def _made(kind: str, name: str, extent: int) -> Loop:
    return Loop(kind, name, whole(0, extent))  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------------ tiling and fusion


def tilings(space: Space, radices: Radices) -> Iterator[Case]:
    for path, nest, _ in space.sites():
        for k in range(len(nest.schedule) - 1):
            first, second = nest.schedule[k : k + 2]
            for f, g in product(_cut_points(radices(path, k)), _cut_points(radices(path, k + 1))):
                outer = (_made("L", "?", first.extent // f), _made("L", "?", second.extent // g))
                inner = (_made(first.kind, first.name, f), _made(second.kind, second.name, g))

                def values(p: Point, k: int = k, f: int = f, g: int = g) -> Sequence[int]:
                    return (*p[:k], p[k] // f, p[k + 1] // g, p[k] % f, p[k + 1] % g, *p[k + 2 :])

                loops = (*nest.schedule[:k], *outer, *inner, *nest.schedule[k + 2 :])
                yield _case(space, "loop_tiling", path, (("pair", k), ("factors", (f, g))), loops, values)


def loop_fusions(space: Space) -> Iterator[Case]:
    for path, nest, around in space.sites():
        for k in range(len(nest.schedule) - 1):
            first, second = nest.schedule[k : k + 2]
            kinds = first.kind + second.kind
            like = first if kinds == "BL" else second
            fused = _made(like.kind, like.name, first.extent * second.extent)

            def values(p: Point, k: int = k, size: int = second.extent) -> Sequence[int]:
                return (*p[:k], p[k] * size + p[k + 1], *p[k + 2 :])

            loops = (*nest.schedule[:k], fused, *nest.schedule[k + 2 :])
            case = _case(space, "loop_fusion", path, (("pair", k),), loops, values)
            if kinds[0] != kinds[1] and kinds not in ("LB", "BL"):
                case = _refused(case, "kinds")
            depth = len(around)
            for eq in equations_of((nest,)):
                spatial = [_occurs(eq.equation.target, depth + j) for j in (k, k + 1)]
                if accumulator(eq.equation) is not None and first.extent > 1 and second.extent > 1 and len(set(spatial)) > 1:
                    case = _refused(case, "a reduction with a spatial loop")
            yield case


def _occurs(expr: Expr, axis: int) -> bool:
    return (isinstance(expr, Index) and expr.axis == axis) or any(_occurs(part, axis) for part in _parts(expr))


# ------------------------------------------------------------------------------------------------------------------------ kinds


def _kinds(space: Space, strategy: str, kind: str) -> Iterator[tuple[Case, Nest, tuple[Loop, ...], int]]:
    """Every serial loop with its kind changed: the verdict, its nest, the loops around that, its place."""
    for path, nest, around in space.sites():
        for k, loop in enumerate(nest.schedule):
            if loop.kind == "L":
                loops = (*nest.schedule[:k], _made(kind, loop.name, loop.extent), *nest.schedule[k + 1 :])
                yield _case(space, strategy, path, (("loop", k),), loops, lambda p: p), nest, around, k


def unrollings(space: Space) -> Iterator[Case]:
    for case, nest, around, k in _kinds(space, "loop_unrolling", "U"):
        copies = prod(loop.extent for j, loop in enumerate((*around, *nest.schedule)) if loop.kind == "U" or j == len(around) + k)
        below = [prod(extent for kind, _, extent in eq.loops[len(nest.schedule) :] if kind == "U") for eq in equations_of((nest,))]
        yield _refused(case, "copies" if copies * max(below) > 256 else "")


def parallelizations(space: Space) -> Iterator[Case]:
    for case, nest, around, k in _kinds(space, "loop_parallelization", "P"):
        if not any(loop.kind in "PV" for loop in (*around, *nest.schedule[:k])):
            yield case


def vectorizations(space: Space, sizes: Sizes, target: str) -> Iterator[Case]:
    for case, nest, _, k in _kinds(space, "loop_vectorization", "V"):
        if k == len(nest.schedule) - 1 and not list(_below(nest)) and nest.schedule[k].extent in (2, 3, 4, 8, 16):
            inside = [eq for p, eq in space.equations.items() if p[: len(case.path)] == case.path]
            bad = [eq for eq in inside if not _vectors(eq, sizes, target)]
            yield _refused(case, "no vector" if case.legal and bad else "")


def _vectors(eq: Loops, sizes: Sizes, target: str) -> bool:
    """Whether the store, and on a GPU every read that depends on the lane, is a vector of the innermost loop's iterations."""
    target_access = eq.equation.target
    if target == "llvm":
        return _is_vector(eq, target_access, sizes)
    reads = [a for a in _read(eq.equation.value) if a is not target_access]
    if any(not _linear(sub) for a in (target_access, *reads) for sub in a.subscripts):
        return False
    size = eq.loops[-1][2] * BYTES[target_access.tensor.dtype]
    lane = len(eq.loops) - 1
    moving = [a for a in reads if any(_occurs(sub, lane) for sub in a.subscripts)]
    wide = [eq.loops[-1][2] * BYTES[a.tensor.dtype] for a in moving]
    return max(size, *wide, 0) <= 16 and all(_is_vector(eq, a, sizes) for a in (target_access, *moving))


def _is_vector(eq: Loops, access: Access, sizes: Sizes) -> bool:
    """Whether the iterations of the innermost loop touch neighbouring elements, the first at a multiple of their number."""
    shape, lanes = sizes(access.tensor.name), eq.loops[-1][2]
    for outer in product(*(range(extent) for _, _, extent in eq.loops[:-1])):
        row = []
        for lane in range(lanes):
            place = 0
            for sub, size in zip(access.subscripts, shape, strict=True):
                value = number(sub, (*outer, lane))
                assert value is not None
                place = place * size + value
            row.append(place)
        if row != list(range(row[0], row[0] + lanes)) or row[0] % lanes:
            return False
    return True


def _read(expr: Expr) -> Iterator[Access]:
    if isinstance(expr, Access):
        yield expr
    for part in _parts(expr):
        yield from _read(part)


def _linear(expr: Expr) -> bool:
    """Whether index arithmetic is written as a sum of multiples of loops."""
    return (
        not isinstance(expr, Access | Call)
        and (not isinstance(expr, Binary) or expr.op in ("+", "-", "*"))
        and (all(map(_linear, _parts(expr))))
    )


# ------------------------------------------------------------------------------------------------------------------- reductions


def reduction_cuts(space: Space, radices: Radices) -> Iterator[Case]:
    """Every loop of an outermost nest over which some equation combines what it wrote, with every way to cut it. Legal where the
    body is one accumulation; the reassociating operators are those of floats."""
    for number_, nest in enumerate(space.nests):
        inside = [eq.equation for path, eq in space.equations.items() if path[0] == number_]
        alone = nest.body[0] if len(nest.body) == 1 else None
        reason = "" if isinstance(alone, Equation) else "several items"
        if isinstance(alone, Equation) and accumulator(alone) is None:
            reason = "no accumulation"
        for k, loop in enumerate(nest.schedule):
            if not any(_mentions(eq.value, eq.target.tensor.name) and not _occurs(eq.target, k) for eq in inside):
                continue
            cuts: list[tuple[tuple[str, object], ...]] = [
                (("loop", k), ("shape", "axis"), ("factor", f)) for f in _cut_points(radices((number_,), k)) if f <= 1024
            ]
            cuts += [
                (("loop", k), ("shape", "pair"), ("cut", s)) for s in sorted({1, loop.extent // 2} & set(range(1, loop.extent)))
            ]
            for arguments in cuts:
                yield Case("reduction_factorization", (number_,), arguments, not reason, reason, not _rounds(inside[0]))


def _rounds(equation: Equation) -> bool:
    value = equation.value
    return equation.target.tensor.dtype in ("f16", "bf16", "f32", "f64") and not (
        isinstance(value, Call) and value.fn in ("max", "min")
    )
