"""Shared and local memory: every read gets its value from its own launch, and there from its own block or thread.

Values are followed, not elements: what counts is the last write before a read. `s` memory lives in one block of one launch, `l`
memory in one thread of one launch (leir.md, GPU reading).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from leir.checker.carried import BLOCK_AXES, coordinates, same_axis
from leir.checker.defined import shared_loops
from leir.checker.facts import Facts, Site, TensorUse, at_point, describe, shown
from leir.checker.kernels import launch_loops
from leir.checker.regions import axes_of, fills_box, ranges, within
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
    """Whether an earlier item of the reader's bracket writes all that it reads, and no loop on ``axes`` stands between the two."""
    if any(w.path[0] != reader.path[0] for w in use.writes):
        return False
    for writer in use.writes:
        shared = shared_loops(writer, reader)
        if shared is None or shared < launch_depth_of_bound(reader, axes) or shared < launch_depth_of_bound(writer, axes):
            continue
        between = [w for w in use.writes if w.path > writer.path and w.path <= reader.path]
        if any(shared < launch_depth_of_bound(w, axes) for w in between):
            continue
        if _fills_rows(writer, reader, touch, shared):
            return True
    return False


def launch_depth_of_bound(site: Site, axes: Sequence[str]) -> int:
    """How many loops, from the outermost, hold all loops on ``axes`` around the equation."""
    return max((node.axis + 1 for node in site.loops if node.loop.gpu_axis in axes), default=0)


def _fills_rows(writer: Site, reader: Site, touch: Touch, shared: int) -> bool:
    target = writer.equation.target
    read, written = ranges(touch.access, reader.extents), ranges(target, writer.extents)
    if read is None or written is None:
        return False
    own = []
    for r, w, span, reach in zip(touch.access.subscripts, target.subscripts, read, written, strict=True):
        axes = axes_of(w)
        if w is r and all(axis < shared for axis in axes):
            continue
        if any(axis < shared for axis in axes) or not within((span,), (reach,)):
            return False
        own.append(w)
    return fills_box(tuple(own), writer.extents)


# ------------------------------------------------------------------------------------------------------------------------- by isl


def _foreign(reader: Site, touch: Touch, writers: Sequence[Site], keep: Keep) -> tuple[int, ...] | None:
    """The least instance of the read whose value comes from a write that ``keep`` drops: the last write before it is no kept one."""
    depth = max(len(w.statement.timeline) for w in writers) if writers else 0
    kept: Map | None = None
    dropped: Map | None = None
    for writer in writers:
        pairs = conflict(reader.statement, touch, writer.statement, writer.written)
        times = _schedule(writer, depth)
        for piece in ordered(
            pairs, reader.statement, reader.statement.timeline, writer.statement, writer.statement.timeline, ">"
        ):
            inside = keep(piece, reader, writer)
            outside = piece if inside is None else piece.subtract(inside)
            if inside is not None:
                kept = _joined(kept, inside.apply_range(times))
            dropped = _joined(dropped, outside.apply_range(times))
    if dropped is None or dropped.is_empty():
        return None
    foreign = dropped.lexmax()
    if kept is None:
        return sample(foreign.domain())
    own = kept.lexmax()
    return sample(foreign.domain().subtract(foreign.lex_lt_map(own).domain()))


def _joined(total: Map | None, piece: Map) -> Map:
    return piece if total is None else total.union(piece)


def _schedule(site: Site, depth: int) -> Map:
    """``{ [instance] -> [time] }``, padded to ``depth``."""
    names = [f"i{k}" for k in range(len(site.extents))]
    times = [
        str(level.position) if level.kind == "position" else loop_text(level.digits, site.extents, "i")
        for level in site.statement.timeline
    ]
    return parse_map(f"{{ {tuple_text(names)} -> {tuple_text(times + ['0'] * (depth - len(times)))} }}")
