"""What the checker should find, by walking the program point by point: faults of reads, outputs, parallel loops and scopes.

Shares with the checker nothing but the IR. Subscripts are index arithmetic; a guard that reads data lets both branches run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from leir.ir import Access, Call, Expr, Nest, Signature, children
from tests.oracle.trace import Loops, Point, accumulator, decide, equations_of, number, points, sequential_time

_MEMORY: Mapping[str, tuple[str, ...]] = {"g": (), "s": ("bx", "by", "bz"), "l": ("bx", "by", "bz", "tx", "ty", "tz")}
"""The GPU indices that tell the memories of a scope apart."""

Finding = tuple[str, tuple[int, ...], tuple[int, ...] | None]
"""A code, the equation, and the scalar path of the access (None: the target)."""


@dataclass(frozen=True, slots=True)
class Event:
    """One instance touching one element; ``wrote`` and ``read`` say how."""

    equation: Loops
    point: Point
    scalar: tuple[int, ...] | None
    access: Access
    element: Point
    read: bool
    wrote: bool


def events(nests: Sequence[Nest]) -> Iterator[Event]:
    """Everything that happens, in order: the reads of an instance before its write."""
    instances = [(sequential_time(eq, point), eq, point) for eq in equations_of(nests) for point in points(eq)]
    for _, eq, point in sorted(instances, key=lambda e: e[0]):
        skip = accumulator(eq.equation)
        for found, scalar in _reads(eq.equation.value, (), point):
            if found is not skip:
                yield Event(eq, point, scalar, found, _element(found, point), True, False)
        target = eq.equation.target
        yield Event(eq, point, None, target, _element(target, point), skip is not None, True)


def _reads(expr: Expr, path: tuple[int, ...], point: Point) -> Iterator[tuple[Access, tuple[int, ...]]]:
    if isinstance(expr, Access):
        yield expr, path
        return
    truth = decide(expr.args[0], point) if isinstance(expr, Call) and expr.fn == "if_then_else" else None
    for k, part in enumerate(children(expr)):
        if truth is None or k == 0 or (k == 1) == truth:
            yield from _reads(part, (*path, k), point)


def _element(access: Access, point: Point) -> Point:
    values = [number(s, point) for s in access.subscripts]
    assert None not in values, "the oracle takes no gathers"
    return tuple(v for v in values if v is not None)


def shapes(signature: Signature, nests: Sequence[Nest]) -> dict[str, Point]:
    """Shapes by name; a temporary reaches as far as it is written."""
    found: dict[str, Point] = {}
    for event in events(nests):
        if event.wrote:
            name = event.access.tensor.name
            seen = found.get(name, event.element)
            found[name] = tuple(max(a, b) for a, b in zip(seen, event.element, strict=True))
    found = {name: tuple(max(k + 1, 0) for k in most) for name, most in found.items()}
    return {**found, **{t.name: t.shape for t in signature.tensors}}


def value_faults(signature: Signature, nests: Sequence[Nest]) -> dict[Finding, set[Point]]:
    """Accesses out of bounds, reads of what nobody wrote and elements of outputs never written, with the points that show them."""
    sizes = shapes(signature, nests)
    written: dict[str, set[Point]] = defaultdict(set)
    for tensor in signature.inputs:
        written[tensor.name].update(product(*(range(n) for n in tensor.shape)))
    faults: dict[Finding, set[Point]] = defaultdict(set)
    for event in events(nests):
        name = event.access.tensor.name
        where = event.equation.path, event.scalar
        if name not in sizes:
            faults["unknown-tensor", *where].add(event.point)
        elif not all(0 <= k < n for k, n in zip(event.element, sizes[name], strict=True)):
            faults["out-of-bounds", *where].add(event.point)
        elif event.wrote:
            written[name].add(event.element)
        elif event.element not in written[name]:
            faults["undefined-read", *where].add(event.point)
    for tensor in signature.outputs:
        missing = set(product(*(range(n) for n in tensor.shape))) - written[tensor.name]
        first = next((eq.path for eq in equations_of(nests) if eq.equation.target.tensor.name == tensor.name), ())
        if missing:
            faults["output-unwritten", first, None].update(missing)
    return dict(faults)


def carried(nests: Sequence[Nest]) -> set[tuple[tuple[int, ...], int, str, str]]:
    """(path of the nest, axis, tensor, code) of every dependence that a P, V or B loop carries. A block has its own shared
    memory, a thread its own local memory."""
    by_element: dict[tuple[str, Point, Point], list[Event]] = defaultdict(list)
    for event in events(nests):
        memory = tuple(_coordinate(event, axis) for axis in _MEMORY[event.access.tensor.scope])
        by_element[event.access.tensor.name, event.element, memory].append(event)
    found: set[tuple[tuple[int, ...], int, str, str]] = set()
    for (name, _, _), group in by_element.items():
        for a, b in product(group, group):
            if not (a.wrote or b.wrote) or a.point == b.point:
                continue
            level = _first_difference(a, b)
            if level is None:
                continue
            nest, axis, kind = level
            if kind in "PVB":
                both = a.read and a.wrote and b.read and b.wrote and a.equation.path == b.equation.path
                found.add((nest, axis, name, "reduction-bound" if both and kind == "B" else "carried-dependence"))
    return found


def _first_difference(a: Event, b: Event) -> tuple[tuple[int, ...], int, str] | None:
    """The loop around both in which two instances first differ, as (path of its nest, axis, kind)."""
    axis = 0
    for depth, count in enumerate(a.equation.shape, 1):
        if a.equation.path[:depth] != b.equation.path[:depth]:
            return None
        for _ in range(count):
            if a.point[axis] != b.point[axis]:
                return a.equation.path[:depth], axis, a.equation.loops[axis][0]
            axis += 1
    return None


def foreign_reads(nests: Sequence[Nest], launch: Mapping[int, int]) -> dict[Finding, set[Point]]:
    """Reads of shared and local values from another launch, block or thread. ``launch`` is the number of launch loops by
    expression."""
    last: dict[tuple[str, Point], Event] = {}
    faults: dict[Finding, set[Point]] = defaultdict(set)
    for event in events(nests):
        key = event.access.tensor.name, event.element
        scope = event.access.tensor.scope
        source = last.get(key)
        if event.read and source is not None and scope != "g":
            code = _crossing(source, event, scope, launch)
            if code is not None:
                faults[code, event.equation.path, event.scalar].add(event.point)
        if event.wrote:
            last[key] = event
    return dict(faults)


def _crossing(source: Event, reader: Event, scope: str, launch: Mapping[int, int]) -> str | None:
    number = reader.equation.path[0]
    if source.equation.path[0] != number or source.point[: launch[number]] != reader.point[: launch[number]]:
        return "scope-escapes-kernel"
    if all(_coordinate(source, axis) == _coordinate(reader, axis) for axis in _MEMORY[scope]):
        return None
    return "shared-crosses-blocks" if scope == "s" else "local-crosses-threads"


def _coordinate(event: Event, gpu_axis: str) -> int:
    loops = zip(event.point, event.equation.loops, strict=True)
    return next((value for value, (kind, name, _) in loops if kind == "B" and name[:2] == gpu_axis), 0)


def blocks_crossed(nests: Sequence[Nest], launch: Mapping[int, int]) -> dict[tuple[int, str], set[Point]]:
    """By (expression, tensor): pairs of points, the earlier one first, that touch one element of global memory in two blocks of one
    launch, one of them writing, and that first differ in no parallel or bound loop (`carried` has those)."""
    groups: dict[tuple[str, Point, int, Point], list[Event]] = defaultdict(list)
    for event in events(nests):
        if event.access.tensor.scope == "g":
            number = event.equation.path[0]
            groups[event.access.tensor.name, event.element, number, event.point[: launch[number]]].append(event)
    found: dict[tuple[int, str], set[Point]] = defaultdict(set)
    for (name, _, number, _), group in groups.items():
        for a, b in combinations(group, 2):
            level = _first_difference(a, b)
            if (a.wrote or b.wrote) and _in_two_blocks(a, b) and (level is None or level[2] in "LU"):
                found[number, name].add(a.point + b.point)
    return dict(found)


def _in_two_blocks(a: Event, b: Event) -> bool:
    """Whether two instances differ on a block index that is bound around both."""
    mine, theirs = _blocks(a), _blocks(b)
    return any(mine[axis] != theirs[axis] for axis in mine if axis in theirs)


def _blocks(event: Event) -> dict[str, int]:
    loops = zip(event.point, event.equation.loops, strict=True)
    return {name[:2]: value for value, (kind, name, _) in loops if kind == "B" and name[0] == "b"}
