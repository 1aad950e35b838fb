"""Definedness: every element that is read has been written before, and every element of an output is written.

An accumulator needs no such proof: an element that nobody wrote starts from the operator's identity (leir.md, Implicit
initialisation). The usual cases are decided by looking: one earlier equation fills the box that is read, or an earlier item of the
same bracket does so for the rows of this iteration. The rest is one isl subtraction: what is read, less what was written before.
"""

from __future__ import annotations

from collections.abc import Sequence

from leir.checker.bounds import point_of
from leir.checker.facts import Facts, Site, TensorUse, describe, element
from leir.checker.opaque import Exposed, expose
from leir.checker.regions import axes_of, clipped, filled_box, ranges, within
from leir.elaborate import subscript_is_integer
from leir.ir import Access, Expr
from leir.polyhedral import Map, OverBudgetError, Touch, box, conflict, ordered, relation, sample, within_budget
from leir.shapes import Interval


def check_defined(facts: Facts) -> None:
    """Report reads of elements that nothing wrote."""
    for use in facts.tensors.values():
        if not use.sound or use.shape is None or (use.known is not None and use.known.role != "output"):
            continue
        for site, touch in use.reads:
            if site.path in facts.no_value:
                continue
            if not use.writes:
                facts.report("undefined-read", f"{use.name} is never written", site.path, touch.scalar)
            elif all(subscript_is_integer(s) for s in touch.access.subscripts):
                _check_read(facts, use, use.shape, site, touch)


def _check_read(facts: Facts, use: TensorUse, shape: tuple[int, ...], site: Site, touch: Touch) -> None:
    exposed = expose(facts, site, touch)
    reached = ranges(exposed.touch.access, exposed.extents)
    region = clipped(reached, shape) if reached is not None else tuple((0, size - 1) for size in shape)
    if region is None or any(_covers(writer, site, exposed, region) for writer in use.writes):
        return
    try:
        point = within_budget(lambda: _undefined(use.writes, shape, exposed, region))
    except OverBudgetError as problem:
        facts.report("undecided", f"{use.name} may be read before it is written: {problem}", site.path, touch.scalar)
        return
    if point is None:
        return
    instance, cell = point[: len(exposed.extents)], point[len(exposed.extents) :]
    witness = point_of(site, exposed, instance)
    message = f"{describe(witness)}reads {element(use.name, cell)}, which nothing has written before"
    inexact = any(not relation(w.extents, w.equation.target, ()).exact for w in use.writes)
    if inexact or exposed.has("not affine"):
        facts.report(
            "undecided", f"a subscript of {use.name} is not quasi-affine: it may be that {message}", site.path, touch.scalar
        )
    else:
        facts.report("undefined-read", message, site.path, touch.scalar, witness=witness)


# --------------------------------------------------------------------------------------------------------------------- by looking


def _covers(writer: Site, reader: Site, exposed: Exposed, region: Sequence[Interval]) -> bool:
    """Whether ``writer`` has plainly written everything that the read can reach, before each instance of it."""
    if writer.path[0] < reader.path[0]:
        return _fills(writer, region)
    shared = shared_loops(writer, reader)
    return shared is not None and fills_rows(writer, exposed.touch.access, region, shared)


def fills_rows(writer: Site, read: Access, region: Sequence[Interval], shared: int) -> bool:
    """Whether one iteration of the ``shared`` loops of a writer and a later item writes all that the item reads of ``region``:
    subscripts over shared loops are the same in both, and the others fill a box."""
    own: list[Expr] = []
    rest: list[Interval] = []
    for r, w, span in zip(read.subscripts, writer.equation.target.subscripts, region, strict=True):
        outer = [axis < shared for axis in axes_of(w)]
        if w is r and all(outer):
            continue
        if any(outer):
            return False
        own.append(w)
        rest.append(span)
    box = filled_box(tuple(own), writer.extents)
    return box is not None and within(rest, box)


def _fills(writer: Site, region: Sequence[Interval]) -> bool:
    """Whether a writer writes every element of a box."""
    box = filled_box(writer.equation.target.subscripts, writer.extents)
    return box is not None and within(region, box)


def shared_loops(first: Site, second: Site) -> int | None:
    """The number of loops around both equations, if ``first`` stands in an earlier item of their common bracket; else None."""
    a, b = first.path, second.path
    depth = next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    if depth is None or depth == 0 or a[depth] > b[depth]:
        return None
    return sum(node.nest in {a[:k] for k in range(1, depth + 1)} for node in first.loops)


# ------------------------------------------------------------------------------------------------------------------------- by isl


def _undefined(
    writers: Sequence[Site], shape: tuple[int, ...], exposed: Exposed, region: Sequence[Interval]
) -> tuple[int, ...] | None:
    """The least instance and element of the read, inside the tensor, that no earlier instance of a writer wrote."""
    reads = relation(exposed.extents, exposed.touch.access, exposed.touch.guards).map.intersect_range(box(shape))
    missing: Map = reads
    for writer in writers:
        if not _meets(writer, region):
            continue
        for earlier in _written_before(writer, exposed):
            missing = missing.subtract(earlier)
    return sample(missing)


def _meets(writer: Site, region: Sequence[Interval]) -> bool:
    """Whether the writer is exact, and can write an element of the region."""
    written = ranges(writer.equation.target, writer.extents)
    return (
        written is not None
        and all(low <= b and a <= high for (a, b), (low, high) in zip(region, written, strict=True))
        and relation(writer.extents, writer.equation.target, ()).exact
    )


def _written_before(writer: Site, exposed: Exposed) -> list[Map]:
    """``{ [instance of the read] -> [element] }`` that the writer wrote before, in pieces."""
    reader, touch = exposed.statement, exposed.touch
    pairs = conflict(reader, touch, writer.statement, writer.written)
    elements = relation(writer.extents, writer.equation.target, ()).map
    pieces = ordered(pairs, reader, reader.timeline, writer.statement, writer.statement.timeline, ">")
    return [piece.apply_range(elements) for piece in pieces]


# ------------------------------------------------------------------------------------------------------------------------ outputs


def check_outputs(facts: Facts) -> None:
    """Report elements of outputs that nothing writes."""
    for known in facts.signature.outputs:
        use = facts.tensors[known.name]
        if not use.sound or use.shape != known.shape:
            continue
        whole = tuple((0, size - 1) for size in known.shape)
        if any(_fills(site, whole) for site in use.writes):
            continue
        if not use.writes:
            facts.report("output-unwritten", f"the output {known.name} is never written")
            continue
        try:
            cell = within_budget(lambda sites=use.writes, shape=known.shape: _unwritten(sites, shape))
        except OverBudgetError as problem:
            facts.report("undecided", f"elements of the output {known.name} may never be written: {problem}")
            continue
        if cell is None:
            continue
        message = f"{element(known.name, cell)} is never written, shape {list(known.shape)}"
        if all(relation(s.extents, s.equation.target, ()).exact for s in use.writes):
            witness = tuple((f"dimension {k}", value) for k, value in enumerate(cell))
            facts.report("output-unwritten", message, use.writes[0].path, witness=witness)
        else:
            facts.report(
                "undecided", f"a subscript of {known.name} is not quasi-affine: it may be that {message}", use.writes[0].path
            )


def _unwritten(sites: Sequence[Site], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    missing = box(shape)
    for site in sites:
        written = relation(site.extents, site.equation.target, ())
        if written.exact:
            missing = missing.subtract(written.map.range())
    return sample(missing)
