"""GPU structure (leir.md, GPU reading): how an expression is one kernel, and what a device can launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import dropwhile
from math import prod

from leir.checker.carried import (
    BLOCK_AXES,
    Member,
    bound_axis,
    coordinates,
    ordered_pairs,
    report_clash,
    runs_under,
    same_axis,
)
from leir.checker.facts import ITEM_BYTES, Facts, LoopNode, Site, TensorUse, shown
from leir.checker.regions import linear
from leir.ir import GPU_AXES, Item, Nest
from leir.polyhedral import Map, OverBudgetError, Touch, compare, conflict, conflict_kind, sample, within_budget
from leir.printer import print_expr

GRID_LIMITS = {"bx": 2**31 - 1, "by": 65535, "bz": 65535}
THREAD_LIMITS = {"tx": 1024, "ty": 1024, "tz": 64}
BLOCK_THREADS = 1024
SHARED_BYTES = 48 * 1024
VECTOR_BYTES = 16


def launch_loops(nest: Nest) -> int:
    """How many loops, from the outermost, stand around the kernel: each combination of their values is one launch."""
    if not _binds(nest):
        return 0
    depth = 0
    while True:
        for loop in nest.schedule:
            if loop.kind == "B":
                return depth
            depth += 1
        if len(nest.body) != 1 or not isinstance(nest.body[0], Nest):
            return depth
        nest = nest.body[0]


def _binds(nest: Nest) -> bool:
    return any(loop.kind == "B" for loop in nest.schedule) or any(_binds(item) for item in nest.body if isinstance(item, Nest))


def check_kernels(facts: Facts) -> None:
    """Report GPU indices bound twice or to two extents, items outside a block loop of their kernel, and elements of global memory
    that blocks of one launch share."""
    for number in range(len(facts.nests)):
        sites = [site for site in facts.sites if site.path[0] == number]
        bound: dict[str, list[LoopNode]] = {}
        for node in facts.nodes:
            if node.nest[0] == number and node.loop.gpu_axis in GPU_AXES:
                bound.setdefault(node.loop.gpu_axis, []).append(node)
        for gpu_axis, nodes in bound.items():
            _check_axis(facts, gpu_axis, nodes)
            if gpu_axis in BLOCK_AXES:
                for site in sites:
                    if not any(runs_under(site, node) for node in nodes):
                        names = " and ".join(dict.fromkeys(node.loop.name for node in nodes))
                        facts.report("outside-block", f"the equation is not under the block loop {names} of its kernel", site.path)
        if any(gpu_axis in BLOCK_AXES for gpu_axis in bound):
            _check_blocks(facts, number, sites)
        if facts.target == "cuda":
            _check_limits(facts, bound)


def _check_axis(facts: Facts, gpu_axis: str, nodes: Sequence[LoopNode]) -> None:
    first = nodes[0]
    for node in nodes[1:]:
        if node.loop.extent != first.loop.extent:
            message = f"{gpu_axis} has the extents {first.loop.extent} and {node.loop.extent} in one kernel"
            facts.report("axis-extents", message, node.nest)
            break
    for k, node in enumerate(nodes):
        outer = next((o for o in nodes[:k] if node.nest[: len(o.nest)] == o.nest and o.axis < node.axis), None)
        if outer is not None:
            message = f"the loops {outer.loop.name} and {node.loop.name} on one path are both bound to {gpu_axis}"
            facts.report("axis-bound-twice", message, node.nest)


# ------------------------------------------------------------------------------------------------- global memory between blocks


def _check_blocks(facts: Facts, number: int, sites: Sequence[Site]) -> None:
    """Report the global tensors through which blocks of one launch meet: nothing orders blocks. What a parallel or bound loop
    carries is left to `check_carried`; here the two instances first differ in a loop that runs in order, or in their items."""
    launch = launch_loops(facts.nests[number])
    if _blocks_part_first(facts.nests[number], launch):
        return
    for use in facts.tensors.values():
        members = [(s, t) for s, t in use.accesses if s in sites and t.access.tensor.scope == "g"]
        if not use.sound or all(touch.role == "read" for _, touch in members):
            continue
        for first, second in ordered_pairs(members):
            if conflict_kind(first[0].statement, first[1], second[0].statement, second[1]) is None:
                continue
            try:
                points = within_budget(lambda a=first, b=second: _across(a, b, launch))
            except OverBudgetError as problem:
                facts.report("undecided", f"{use.name} may cross blocks: {problem}", second[0].path, second[1].scalar)
                break
            if points is not None:
                report_clash(facts, "crosses-blocks", f"{use.name} crosses blocks", first, second, points)
                break


def _blocks_part_first(nest: Nest, launch: int) -> bool:
    """Whether all block loops stand around the whole body, inside launch and bound loops only: two blocks then first differ in a
    bound loop."""
    inside = list(dropwhile(lambda loop: loop.kind == "B", nest.schedule[launch:]))
    return not any(loop.gpu_axis in BLOCK_AXES for loop in inside) and not any(map(_has_blocks, nest.body))


def _has_blocks(item: Item) -> bool:
    return isinstance(item, Nest) and (
        any(loop.gpu_axis in BLOCK_AXES for loop in item.schedule) or any(map(_has_blocks, item.body))
    )


def _across(first: Member, second: Member, launch: int) -> tuple[int, ...] | None:
    """An instance of ``first`` and a later one of ``second`` that touch one element in two blocks of one launch, or None."""
    (s, a), (t, b) = first, second
    pairs = conflict(s.statement, a, t.statement, b)
    for axis in range(launch):
        pairs = same_axis(pairs, s, axis, t, axis)
    shared = [block for block in BLOCK_AXES if bound_axis(s, block) is not None and bound_axis(t, block) is not None]
    for piece in _in_order(pairs, s, t) if shared else ():
        for block in shared:
            points = sample(coordinates(piece, s, t, block, "!="))
            if points is not None:
                return points
    return None


def _in_order(pairs: Map, s: Site, t: Site) -> Iterator[Map]:
    """The pieces of ``pairs`` in which the first runs before the second, by a serial or unrolled loop or by their items."""
    for level, other in zip(s.statement.timeline, t.statement.timeline, strict=False):
        if level.kind != "position":
            if level.kind in ("L", "U"):
                yield compare(pairs, s.statement, level, t.statement, other, "<")
            pairs = compare(pairs, s.statement, level, t.statement, other, "=")
        elif level.position != other.position:
            if level.position < other.position:
                yield pairs
            return


# ---------------------------------------------------------------------------------------------------------------- device limits


def _check_limits(facts: Facts, bound: dict[str, list[LoopNode]]) -> None:
    extents = {gpu_axis: max(node.loop.extent for node in nodes) for gpu_axis, nodes in bound.items()}
    for gpu_axis, extent in extents.items():
        limit = GRID_LIMITS.get(gpu_axis) or THREAD_LIMITS[gpu_axis]
        if extent > limit:
            code = "grid-limit" if gpu_axis in GRID_LIMITS else "thread-limit"
            facts.report(code, f"{gpu_axis} has {extent} values, and the limit is {limit}", bound[gpu_axis][0].nest)
    threads = {gpu_axis: extent for gpu_axis, extent in extents.items() if gpu_axis in THREAD_LIMITS}
    if prod(threads.values()) > BLOCK_THREADS and all(extent <= THREAD_LIMITS[a] for a, extent in threads.items()):
        product = "*".join(map(str, threads.values()))
        message = f"a block has {product} = {prod(threads.values())} threads, and the limit is {BLOCK_THREADS}"
        facts.report("thread-limit", message, next(iter(bound.values()))[0].nest[:1])


def check_shared_memory(facts: Facts) -> None:
    """Report kernels whose shared tensors do not fit into a block."""
    if facts.target != "cuda":
        return
    for number in range(len(facts.nests)):
        sizes: dict[str, int] = {}
        for use in facts.tensors.values():
            members = [(s, t) for s, t in use.accesses if s.path[0] == number and t.access.tensor.scope == "s"]
            if members and use.sound and use.shape is not None:
                sizes[use.name] = _block_elements(members, use.shape) * ITEM_BYTES[members[0][1].access.tensor.dtype]
        if sum(sizes.values()) > SHARED_BYTES:
            names = " + ".join(f"{name} {size}" for name, size in sizes.items())
            facts.report("shared-memory", f"{names} bytes of shared memory, and the limit is {SHARED_BYTES}", (number,))


def _block_elements(members: Sequence[Member], shape: Sequence[int]) -> int:
    """How many elements of a shared tensor one block holds: a dimension counts without what the block indices add to it."""
    return prod(min(size, _block_extent(members, k, size)) for k, size in enumerate(shape))


def _block_extent(members: Sequence[Member], dimension: int, size: int) -> int:
    shifts: set[tuple[tuple[str, int], ...]] = set()
    low, high = size, -1
    for site, touch in members:
        form = linear(touch.access.subscripts[dimension])
        if form is None:
            return size
        blocks = {axis: site.loops[axis].loop.gpu_axis for axis in form[1]}
        shifts.add(tuple(sorted((name, form[1][axis]) for axis, name in blocks.items() if name in BLOCK_AXES)))
        rest = [weight * (site.extents[axis] - 1) for axis, weight in form[1].items() if blocks[axis] not in BLOCK_AXES]
        low = min(low, form[0] + sum(r for r in rest if r < 0))
        high = max(high, form[0] + sum(r for r in rest if r > 0))
    return high - low + 1 if len(shifts) == 1 else size


# --------------------------------------------------------------------------------------------------------------- vector accesses


def check_vectors(facts: Facts) -> None:
    """Report accesses under V loops that are no vector accesses of the device."""
    if facts.target != "cuda":
        return
    for site in facts.sites:
        lanes = [node for node in site.loops if node.loop.kind == "V" and node.loop.extent > 1]
        for touch in site.touches if lanes else ():
            use = facts.tensors[touch.access.tensor.name]
            problem = _vector_problem(site, touch, use, lanes)
            if problem is not None:
                facts.report("vector-access", f"{shown(touch.access, site.names)}: {problem}", site.path, touch.scalar)


def _vector_problem(site: Site, touch: Touch, use: TensorUse, lanes: Sequence[LoopNode]) -> str | None:
    """Why the access is no vector of at most 16 bytes, unit-stride and aligned, under the V loop; None where it is, or does not
    depend on the lane."""
    if not use.sound or use.shape is None:
        return None
    lane = lanes[-1]
    weights: dict[int, int] = {}
    offset, stride = 0, 1
    for subscript, size in zip(reversed(touch.access.subscripts), reversed(use.shape), strict=True):
        form = linear(subscript)
        if form is None:
            return f"the subscript {print_expr(subscript, site.names)} is not linear under the V loop {lane.loop.name}"
        offset += form[0] * stride
        for axis, weight in form[1].items():
            weights[axis] = weights.get(axis, 0) + weight * stride
        stride *= size
    width, step = lane.loop.extent, weights.pop(lane.axis, 0)
    if step == 0 and touch.role == "read":
        return None
    size = width * ITEM_BYTES[touch.access.tensor.dtype]
    if len(lanes) > 1:
        return "it stands under two V loops"
    if size > VECTOR_BYTES:
        return f"{width} lanes of {touch.access.tensor.dtype} are {size} bytes, and the limit is {VECTOR_BYTES}"
    if step != 1:
        return f"the V loop {lane.loop.name} steps by {step} elements"
    if offset % width or any(weight % width for weight in weights.values()):
        return f"vectors of {width} start between multiples of {width} elements"
    return None
