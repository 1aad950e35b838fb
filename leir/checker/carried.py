"""Loops that run their iterations at once: P, V and B loops carry no dependence (leir.md, section 5).

A loop carries a dependence when two instances that agree on all loops around it, and differ on it, touch one element and one of
them writes. Two blocks have different shared memory and two threads different local memory, so values there do not meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leir.checker.facts import Facts, LoopNode, Site, TensorUse, at_point, shown
from leir.checker.regions import linear
from leir.diagnostics import Witness
from leir.ir import GPU_AXES, Digit
from leir.polyhedral import (
    Level,
    Map,
    OverBudgetError,
    Touch,
    compare,
    conflict,
    conflict_kind,
    parse_map,
    sample,
    touch_relation,
    tuple_text,
    within_budget,
)

Member = tuple[Site, Touch]
BLOCK_AXES = GPU_AXES[:3]


@dataclass(frozen=True, slots=True)
class Finding:
    """A dependence that a loop carries, from an instance of ``first`` to a later one of ``second``; ``points`` are the two, or
    the reason why isl did not decide."""

    code: str
    node: LoopNode
    label: str
    first: Member
    second: Member
    points: tuple[int, ...] | str


def check_carried(facts: Facts) -> None:
    """Report the dependences that P, V and B loops carry: the first of each kind per loop and tensor."""
    for found in carried(facts):
        if isinstance(found.points, str):
            site, touch = found.second
            facts.report(found.code, f"it may be that {found.label}: {found.points}", site.path, touch.scalar)
        else:
            report_clash(facts, found.code, found.label, found.first, found.second, found.points)


def carried(facts: Facts) -> Iterator[Finding]:
    """What `check_carried` reports."""
    for node in facts.nodes:
        if node.loop.kind not in ("P", "V", "B") or node.loop.extent == 1:
            continue
        for use in facts.tensors.values():
            members = [(site, touch) for site, touch in use.accesses if runs_under(site, node)]
            written = any(touch.role != "read" for _, touch in members)
            if written and use.sound and not _private(use, node) and not pinned(members, node.axis):
                yield from _of_loop(use, node, members)


def runs_under(site: Site, node: LoopNode) -> bool:
    """Whether ``node`` is one of the loops around the equation."""
    return node.nest == site.path[: len(node.nest)]


def _private(use: TensorUse, node: LoopNode) -> bool:
    """Whether every iteration of the loop has its own copy of the tensor."""
    scopes = {t.access.tensor.scope for _, t in use.accesses}
    if node.loop.kind != "B" or len(scopes) != 1:
        return False
    return scopes == {"l"} or (scopes == {"s"} and node.loop.gpu_axis in BLOCK_AXES)


def pinned(members: Sequence[Member], axis: int) -> bool:
    """Whether one common subscript shows that instances which touch one element, and agree on the loops around ``axis``, agree
    on ``axis``: there its weight exceeds what the loops inside it can add."""
    common = set(enumerate(members[0][1].access.subscripts))
    for _, touch in members[1:]:
        common &= set(enumerate(touch.access.subscripts))
    for _, subscript in common:
        form = linear(subscript)
        if form is None or axis not in form[1]:
            continue
        inside = {k: abs(weight) for k, weight in form[1].items() if k > axis}
        added = max(sum(weight * (site.extents[k] - 1) for k, weight in inside.items()) for site, _ in members)
        if abs(form[1][axis]) > added:
            return True
    return False


def report_clash(facts: Facts, code: str, label: str, first: Member, second: Member, points: tuple[int, ...]) -> None:
    """Two instances touch one element. ``points`` is the earlier one, then the later one; ``label`` begins the message."""
    (s, a), (t, b) = first, second
    n = len(s.extents)
    earlier, later = at_point(s.names, points[:n]), at_point(t.names, points[n:])
    verbs = {"read": "reads", "write": "writes", "accumulate": "accumulates into"}
    again = "" if a.access is b.access and s is t else f" as {shown(a.access, s.names)}"
    message = f"{label}: {_words(later)} {verbs[b.role]} {shown(b.access, t.names)}, which {_words(earlier)} {verbs[a.role]}{again}"
    if not (touch_relation(s.statement, a).exact and touch_relation(t.statement, b).exact):
        message += ", if the data choose it"
    facts.report(code, message, t.path, b.scalar, witness=earlier + at_point(t.names, points[n:], "'"))


def _words(point: Witness) -> str:
    return ", ".join(f"{name}={value}" for name, value in point)


def _of_loop(use: TensorUse, node: LoopNode, members: Sequence[Member]) -> Iterator[Finding]:
    found: set[str] = set()
    for first, second in ordered_pairs(members):
        kind = conflict_kind(first[0].statement, first[1], second[0].statement, second[1])
        code = "reduction-bound" if kind == "commuting" and node.loop.kind == "B" else "carried-dependence"
        if kind is None or code in found:
            continue
        label = f"the {node.loop.kind} loop {node.loop.name} "
        label += f"runs a reduction over {use.name}" if kind == "commuting" else f"carries a dependence on {use.name}"
        points: tuple[int, ...] | str | None
        try:
            points = within_budget(lambda a=first, b=second: sample(_carried(a, b, node)))
        except OverBudgetError as problem:
            code, points = "undecided", str(problem)
        if points is not None and code not in found:
            found.add(code)
            yield Finding(code, node, label, first, second, points)


def ordered_pairs(members: Sequence[Member]) -> list[tuple[Member, Member]]:
    """Every ordered pair, flow before anti before output dependences."""
    rank = {"write": 0, "accumulate": 0, "read": 1}
    every = [(a, b) for a in members for b in members]
    return sorted(every, key=lambda pair: (rank[pair[0][1].role], -rank[pair[1][1].role]))


def _carried(first: Member, second: Member, node: LoopNode) -> Map:
    (s, a), (t, b) = first, second
    pairs = conflict(s.statement, a, t.statement, b)
    for axis in range(node.axis):
        pairs = same_axis(pairs, s, axis, t, axis)
    level_s, level_t = _level(s, node.axis), _level(t, node.axis)
    pairs = compare(pairs, s.statement, level_s, t.statement, level_t, "<")
    return same_memory(pairs, s, t, a.access.tensor.scope)


def _level(site: Site, axis: int) -> Level:
    return Level("L", (Digit(axis, site.extents[axis], 1),), 0)


def same_axis(pairs: Map, s: Site, axis_s: int, t: Site, axis_t: int) -> Map:
    """The pairs that agree on these loops."""
    return compare(pairs, s.statement, _level(s, axis_s), t.statement, _level(t, axis_t), "=")


# ----------------------------------------------------------------------------------------------------------------- GPU coordinates


def bound_axis(site: Site, gpu_axis: str) -> int | None:
    """The number of the loop that binds a GPU index around the equation; None stands for coordinate 0."""
    return next((node.axis for node in site.loops if node.loop.gpu_axis == gpu_axis), None)


def coordinates(pairs: Map, s: Site, t: Site, gpu_axis: str, op: str) -> Map:
    """The pairs whose coordinates on a GPU index are equal (``=``) or not (``!=``)."""
    x, y = bound_axis(s, gpu_axis), bound_axis(t, gpu_axis)
    if x is None and y is None and op == "=":
        return pairs
    left, right = "0" if x is None else f"x{x}", "0" if y is None else f"y{y}"
    xs, ys = (tuple_text([f"{p}{k}" for k in range(len(q.extents))]) for p, q in (("x", s), ("y", t)))
    return pairs.intersect(parse_map(f"{{ {xs} -> {ys} : {left} {op} {right} }}"))


def same_memory(pairs: Map, s: Site, t: Site, scope: str) -> Map:
    """The pairs that have one copy of a tensor of this scope: shared memory is a block's, local memory a thread's."""
    axes = {"g": (), "s": BLOCK_AXES, "l": GPU_AXES}[scope]
    for gpu_axis in axes:
        pairs = coordinates(pairs, s, t, gpu_axis, "=")
    return pairs
