"""Shared and local memory: every read gets its value from its own launch, and there from its own block or thread.

Values are followed, not elements: what counts is the last write before a read. `s` memory lives in one block of one launch, `l`
memory in one thread of one launch (leir.md, GPU reading).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from leir.checker.carried import BLOCK_AXES, coordinates, same_axis
from leir.checker.defined import fills_rows, shared_loops
from leir.checker.facts import Facts, Site, TensorUse, at_point, describe, shown
from leir.checker.kernels import launch_loops
from leir.checker.regions import ranges
from leir.ir import GPU_AXES
from leir.polyhedral import (
    Map,
    OverBudgetError,
    Touch,
    conflict,
    loop_text,
    ordered,
    parse_map,
    sample,
    tuple_text,
    within_budget,
)

Keep = Callable[[Map, Site, Site], "Map | None"]
"""The part of some pairs (read, earlier write) that stays in one memory; None if none does."""


def check_scopes(facts: Facts) -> None:
    """Report reads of shared and local values from another launch, block or thread."""
    for use in facts.tensors.values():
        scope = next((t.access.tensor.scope for _, t in use.accesses), "g")
        if scope == "g" or use.known is not None or not use.sound:
            continue
        readers = use.reads + [(site, site.written) for site in use.writes if site.written.role == "accumulate"]
        for site, touch in readers:
            if not _plainly_private(use, site, touch, GPU_AXES if scope == "l" else BLOCK_AXES):
                _check_reader(facts, use, site, touch, scope)


def _check_reader(facts: Facts, use: TensorUse, site: Site, touch: Touch, scope: str) -> None:
    axes = GPU_AXES if scope == "l" else BLOCK_AXES
    launch = launch_loops(facts.nests[site.path[0]])

    def one_launch(pairs: Map, s: Site, t: Site) -> Map | None:
        if s.path[0] != t.path[0]:
            return None
        for axis in range(launch):
            pairs = same_axis(pairs, s, axis, t, axis)
        return pairs

    def one_memory(pairs: Map, s: Site, t: Site) -> Map | None:
        for gpu_axis in axes:
            pairs = coordinates(pairs, s, t, gpu_axis, "=")
        return pairs

    crossing = "shared-crosses-blocks" if scope == "s" else "local-crosses-threads"
    word = "shared" if scope == "s" else "local"
    own = [w for w in use.writes if w.path[0] == site.path[0]]
    questions = (
        ("scope-escapes-kernel", "launch", use.writes, one_launch),
        (crossing, "block" if scope == "s" else "thread", own, one_memory),
    )
    for code, where, writers, keep in questions:
        try:
            point = within_budget(lambda w=writers, k=keep: _foreign(site, touch, w, k))
        except OverBudgetError as problem:
            facts.report("undecided", f"{use.name} may be read in another {where}: {problem}", site.path, touch.scalar)
            return
        if point is not None:
            witness = at_point(site.names, point)
            verb = "reads" if touch.role == "read" else "accumulates into"
            message = f"{describe(witness)}{verb} the {word} {shown(touch.access, site.names)}, written in another {where}"
            facts.report(code, message, site.path, touch.scalar, witness=witness)
            return


def _plainly_private(use: TensorUse, reader: Site, touch: Touch, axes: Sequence[str]) -> bool:
    """Whether an earlier item of the reader's bracket writes all that it reads, and all loops on ``axes`` enclose that bracket."""
    if any(w.path[0] != reader.path[0] for w in use.writes):
        return False
    read = ranges(touch.access, reader.extents)
    bound = max(_bound_loops(site, axes) for site in (reader, *use.writes))
    for writer in use.writes:
        shared = shared_loops(writer, reader)
        if read is not None and shared is not None and shared >= bound and fills_rows(writer, touch.access, read, shared):
            return True
    return False


def _bound_loops(site: Site, axes: Sequence[str]) -> int:
    """How many loops, from the outermost, it takes to have all loops on ``axes`` around the equation."""
    return max((node.axis + 1 for node in site.loops if node.loop.gpu_axis in axes), default=0)


# ------------------------------------------------------------------------------------------------------------------------- by isl


def _foreign(reader: Site, touch: Touch, writers: Sequence[Site], keep: Keep) -> tuple[int, ...] | None:
    """The least instance of the read whose value comes from a write that ``keep`` drops: the last one before it is not kept."""
    depth = max((len(w.statement.timeline) for w in writers), default=0)
    every: list[Map] = []
    dropped: list[Map] = []
    for writer in writers:
        pairs = conflict(reader.statement, touch, writer.statement, writer.written)
        times = _schedule(writer, depth)
        mine, theirs = reader.statement, writer.statement
        for piece in ordered(pairs, mine, mine.timeline, theirs, theirs.timeline, ">"):
            kept = keep(piece, reader, writer)
            every.append(piece.apply_range(times))
            dropped.append(every[-1] if kept is None else piece.subtract(kept).apply_range(times))
    if all(piece.is_empty() for piece in dropped):
        return None
    return sample(_union(every).lexmax().intersect(_union(dropped)).domain())  # a time is that of one write


def _union(pieces: Sequence[Map]) -> Map:
    total = pieces[0]
    for piece in pieces[1:]:
        total = total.union(piece)
    return total


def _schedule(site: Site, depth: int) -> Map:
    """``{ [instance] -> [time] }``, padded to ``depth``."""
    names = [f"i{k}" for k in range(len(site.extents))]
    times = [
        str(level.position) if level.kind == "position" else loop_text(level.digits, site.extents, "i")
        for level in site.statement.timeline
    ]
    return parse_map(f"{{ {tuple_text(names)} -> {tuple_text(times + ['0'] * (depth - len(times)))} }}")
