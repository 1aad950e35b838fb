"""What a kernel does, read off its nest: operations by class and dtype, accesses as strided addresses, footprints per loop.

A kernel is a top-level nest in normal form. It is described twice:

* `Block`: the equations of one body with the loops around them, for what the arithmetic costs;
* `Region`: the tree of loops with what each touches, for what moving data costs. The footprint of a region is that of its access
  groups; accesses to one tensor that move alike count once.

Guards are not looked at: an access under ``if_then_else`` counts as always made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import frexp

from extract.address import Address, Addresses, Wheel, wheels_of
from extract.footprint import Shape, first_run, lines, sets_met
from leir.elaborate import Apply, Const, IndexValue, Load, Typed, elaborate
from leir.ir import FLOAT_DTYPES, Binary, Equation, Expr, Loop, Nest, accumulation, subexpressions
from leir.polyhedral import touches

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One scalar operation per point. ``cost``: its class, a key of a device's ``operations`` or ``calls``. ``depends``: the wheels
    that its value depends on, as bits. ``chain``: it needs the result of the previous point of an accumulation or recurrence."""

    cost: str
    dtype: str
    depends: int
    chain: bool


@dataclass(frozen=True, slots=True)
class Work:
    """One equation: the address it writes, those it reads (the accumulator left out), its operations.

    ``accumulates``: the operator; ``recurs``: it reads elements of its own tensor that other points write; ``starts``: it also
    writes an initial value."""

    target: Address
    reads: tuple[Address, ...]
    operations: tuple[Operation, ...]
    accumulates: str | None
    recurs: bool
    starts: bool

    @property
    def regroups(self) -> bool:
        """Whether the accumulation may be computed in another order without a change of value, so that compilers do."""
        return self.accumulates in ("max", "min") or (self.accumulates is not None and self.target.dtype not in FLOAT_DTYPES)


@dataclass(frozen=True, slots=True)
class PathLoop:
    """A loop of extent above 1 around a block. ``wheels``: its wheels, as bits; ``last``: the number of the innermost one."""

    kind: str
    gpu_axis: str | None
    extent: int
    wheels: int
    last: int
    digits: int


@dataclass(frozen=True, slots=True)
class Block:
    """The equations directly in one body. ``alone``: the body holds nothing else, so that its loops are innermost loops."""

    loops: tuple[PathLoop, ...]
    wheels: tuple[Wheel, ...]
    works: tuple[Work, ...]
    alone: bool


@dataclass(frozen=True, slots=True)
class Group:
    """Accesses that move alike. ``strides``: of the wheels outside the region; ``shape``: inside it, innermost first."""

    tensor: str
    item: int
    size: int
    strides: tuple[int, ...]
    shape: Shape
    offset: int
    written: bool
    spread: bool

    def lines(self, line: int) -> int:
        return min(lines(self.shape, self.item, line), -(-self.size // line))

    def sets_met(self, line: int, sets: int) -> int:
        """How many sets of a cache its lines fall into."""
        return sets if self.spread else sets_met(self.shape, self.item, line, sets)

    def run(self, line: int) -> int:
        """Contiguous bytes before the first jump."""
        return self.item if self.spread else first_run(self.shape, self.item, line)


@dataclass(frozen=True, eq=False)
class Region:
    """``extent`` iterations of ``children`` in order. ``role``: "grid" or "thread" for a loop bound to the GPU, else ""."""

    extent: int
    children: tuple[Region, ...]
    groups: tuple[Group, ...]
    role: str = ""

    @cached_property
    def _needs(self) -> dict[tuple[int, int | None], float]:
        return {}

    def needs(self, line: int, sets: int | None) -> float:
        """The lines of a cache that hold the region: those that it touches, or more where it meets few of the ``sets``."""
        found = self._needs.get((line, sets))
        if found is None:
            count = crowded = 0.0
            for group in self.groups:
                own = group.lines(line)
                count += own
                if sets is not None and (met := group.sets_met(line, sets)) < min(own, sets):
                    crowded += own * sets / met
            found = self._needs[line, sets] = max(count, crowded)
        return found


@dataclass(frozen=True, eq=False)
class Kernel:
    """Everything about one top-level nest. ``grid``, ``threads``: GPU blocks, and threads per block; ``bound``: whether it has a
    bound loop at all; ``launches``: iterations of serial loops around the outermost bound loop; ``parallel``: (iterations around,
    extent) of every outermost P loop."""

    blocks: tuple[Block, ...]
    region: Region
    bound: bool
    grid: int
    threads: int
    launches: int
    parallel: tuple[tuple[int, int], ...]
    shared_bytes: int
    operations: Mapping[tuple[str, str], float]


# ------------------------------------------------------------------------------------------------------------------- the kernel


Walk = Callable[[Block], Sequence[int]]


def kernel(nest: Nest, shapes: Shapes, *, gpu: bool = False, walk: Walk | None = None) -> Kernel:
    """The features of ``nest``. ``shapes``: of every tensor it touches. With ``gpu``, loops bound to threads turn innermost,
    as threads run side by side. ``walk``: the wheels of a block's own loops in the order in which compiled code turns them, the
    fastest first; by default as the loops are written."""
    reader = _Reader(shapes, gpu, walk)
    region = reader.nest(nest, (), (), (), frozenset())
    totals: dict[tuple[str, str], float] = {}
    for block in reader.blocks:
        for work in block.works:
            for operation in work.operations:
                count = 1.0
                for k, wheel in enumerate(block.wheels):
                    count *= wheel.extent if operation.depends >> k & 1 else 1
                totals[operation.cost, operation.dtype] = totals.get((operation.cost, operation.dtype), 0.0) + count
    axes = reader.bound
    return Kernel(
        tuple(reader.blocks),
        region,
        bool(axes),
        _product(n for axis, n in axes.items() if axis[0] == "b"),
        _product(n for axis, n in axes.items() if axis[0] == "t"),
        reader.launches,
        tuple(reader.parallel),
        sum(size for _, size in sorted(reader.shared.items())),
        totals,
    )


def _product(values: Iterable[int]) -> int:
    total = 1
    for value in values:
        total *= value
    return total


class _Reader:
    def __init__(self, shapes: Shapes, gpu: bool, walk: Walk | None) -> None:
        self.shapes = shapes
        self.gpu = gpu
        self.walk = walk
        self.blocks: list[Block] = []
        self.bound: dict[str, int] = {}
        self.launches = 1
        self.parallel: list[tuple[int, int]] = []
        self.shared: dict[str, int] = {}

    def nest(
        self, nest: Nest, loops: tuple[Loop, ...], wheels: tuple[Wheel, ...], sunk: tuple[int, ...], named: frozenset[int]
    ) -> Region:
        """``loops`` and ``wheels`` along the path; ``sunk``: the wheels of thread loops further out, still to be turned."""
        self._note(nest, loops)
        own = wheels_of(nest, len(loops))
        loops = (*loops, *nest.schedule)
        first, wheels = len(wheels), (*wheels, *own)
        threads = tuple(k for k in range(first, len(wheels)) if self.gpu and (loops[wheels[k].loop].gpu_axis or "").startswith("t"))
        sunk = (*sunk, *threads)
        addresses = Addresses(wheels, self.shapes)
        equations = [item for item in nest.body if isinstance(item, Equation)]
        works = {id(e): _work(e, addresses) for e in equations}
        self._note_shared(works.values(), wheels, loops)
        if equations:
            self.blocks.append(
                Block(_path(loops, wheels), wheels, tuple(works[id(e)] for e in equations), len(equations) == len(nest.body))
            )
        children = []
        for item in nest.body:
            if isinstance(item, Equation):
                leaf = _leaf(works[id(item)], self.gpu)
                children.append(self._turned(leaf, self._threads_last(sunk, wheels, loops), wheels, loops))
            else:
                children.append(_below(self.nest(item, loops, wheels, sunk, named), len(wheels)))
        region = children[0] if len(children) == 1 else Region(1, tuple(children), _merged(children))
        order = [k for k in range(len(wheels) - 1, first - 1, -1) if k not in threads]
        if self.walk is not None and len(equations) == len(nest.body):
            fast = [k for k in self.walk(self.blocks[-1]) if k in order]
            order = [*fast, *(k for k in order if k not in fast)]
        region = self._turned(region, order, wheels, loops)
        return _below(region, first)

    def _note(self, nest: Nest, outer: tuple[Loop, ...]) -> None:
        """What the launch needs to know of a nest's own loops."""
        around = _product(loop.extent for loop in outer)
        inside = any(loop.kind == "P" for loop in outer)
        for position, loop in enumerate(nest.schedule):
            if loop.gpu_axis:
                if not self.bound:
                    before = (*outer, *nest.schedule[:position])
                    self.launches = _product(one.extent for one in before)
                self.bound[loop.gpu_axis] = max(self.bound.get(loop.gpu_axis, 1), loop.extent)
            elif loop.kind == "P" and not inside:
                self.parallel.append((around, loop.extent))
                inside = True
            around *= loop.extent

    def _note_shared(self, works: Iterable[Work], wheels: Sequence[Wheel], loops: Sequence[Loop]) -> None:
        """The bytes of shared tensors that one block holds: dimensions that follow a block index are not its own."""
        for work in works:
            for a in (work.target, *work.reads):
                if a.scope == "s":
                    grid = [k for k, w in enumerate(wheels) if a.strides[k] and (loops[w.loop].gpu_axis or "").startswith("b")]
                    self.shared[a.tensor] = a.size // _product(wheels[k].extent for k in grid)

    def _threads_last(self, sunk: tuple[int, ...], wheels: Sequence[Wheel], loops: Sequence[Loop]) -> list[int]:
        """The thread wheels in the order in which they turn, x fastest."""
        return sorted(sunk, key=lambda k: (loops[wheels[k].loop].gpu_axis or "", -k))

    def _turned(self, region: Region, order: Sequence[int], wheels: Sequence[Wheel], loops: Sequence[Loop]) -> Region:
        """``region`` inside loops over the wheels of ``order``, the first one innermost."""
        for k in order:
            axis = loops[wheels[k].loop].gpu_axis if self.gpu else None
            role = "" if axis is None else "grid" if axis.startswith("b") else "thread"
            region = Region(wheels[k].extent, (region,), _joined(_turn(g, k, wheels[k].extent) for g in region.groups), role)
        return region


def _path(loops: Sequence[Loop], wheels: Sequence[Wheel]) -> tuple[PathLoop, ...]:
    found = []
    for number, loop in enumerate(loops):
        own = [k for k, wheel in enumerate(wheels) if wheel.loop == number]
        if own:
            found.append(PathLoop(loop.kind, loop.gpu_axis, loop.extent, sum(1 << k for k in own), own[-1], len(own)))
    return tuple(found)


# ----------------------------------------------------------------------------------------------------------------- access groups


def _leaf(work: Work, gpu: bool) -> Region:
    """One point. On a GPU, shared and local tensors are not in the memory that caches serve."""
    groups = [
        Group(a.tensor, a.item, a.size, a.strides, (), a.offset, a is work.target, a.spread)
        for a in (work.target, *work.reads)
        if not gpu or a.scope == "g"
    ]
    return Region(1, (), _joined(groups))


def _turn(group: Group, wheel: int, extent: int) -> Group:
    """The group over all values of a wheel."""
    stride = abs(group.strides[wheel])
    if not stride:
        return group
    if group.spread:
        stride = max(stride, 4096)  # a subscript that reads memory may jump anywhere
    strides = (*group.strides[:wheel], 0, *group.strides[wheel + 1 :])
    return Group(
        group.tensor,
        group.item,
        group.size,
        strides,
        (*group.shape, (stride, extent)),
        group.offset,
        group.written,
        group.spread,
    )


def _below(region: Region, count: int) -> Region:
    """The region for an outer path of ``count`` wheels: its own have all been turned."""
    if all(len(g.strides) == count for g in region.groups):
        return region
    groups = tuple(
        Group(g.tensor, g.item, g.size, g.strides[:count], g.shape, g.offset, g.written, g.spread) for g in region.groups
    )
    return Region(region.extent, region.children, _joined(groups), region.role)


def _merged(regions: Iterable[Region]) -> tuple[Group, ...]:
    return _joined(g for region in regions for g in region.groups)


def _joined(groups: Iterable[Group]) -> tuple[Group, ...]:
    """Groups of one tensor that move alike and overlap, as one."""
    found: dict[tuple[object, ...], list[Group]] = {}
    for group in groups:
        like = found.setdefault((group.tensor, group.strides, tuple(sorted(group.shape))), [])
        reach = max(64, sum(stride * (count - 1) for stride, count in group.shape))
        for k, other in enumerate(like):
            if abs(other.offset - group.offset) < reach:
                if group.written and not other.written:
                    like[k] = group
                break
        else:
            like.append(group)
    return tuple(g for like in found.values() for g in like)


# -------------------------------------------------------------------------------------------------------------------- operations


def _work(equation: Equation, addresses: Addresses) -> Work:
    found = touches(equation)
    target = addresses.of(equation.target)
    split = accumulation(equation)
    reads = tuple(addresses.of(t.access) for t in found if t.role == "read")
    recurs = split is None and any(t.role == "read" and t.access.tensor.name == target.tensor for t in found)
    chain_tensor = target.tensor if split or recurs else None
    operations: list[Operation] = []
    _operations(elaborate(equation), addresses, chain_tensor, operations, {})
    return Work(target, reads, tuple(operations), split[0] if split else None, recurs, equation.init is not None)


_FLOAT_CLASS = {"+": "add", "-": "add", "*": "mul", "/": "div", "max": "max", "min": "max", "sqrt": "sqrt", "**": "pow"}
_INT_CLASS = {"*": "int_mul", "//": "int_div", "%": "int_div", "**": "int_mul"}
_SIMPLE = ("neg", "abs", "floor", "ceil")


def operation_class(op: str, dtype: str) -> str:
    """The class of an operation of `leir.elaborate`, by which devices list their rates."""
    if op == "cast":
        return "cast"
    if op in ("if_then_else", "not", "&", "|", "<", "<=", ">", ">=", "==", "!="):
        return "select"
    if dtype in FLOAT_DTYPES:
        return "simple" if op in _SIMPLE else _FLOAT_CLASS.get(op, op)
    return _INT_CLASS.get(op, "int_add")


def _operations(
    typed: Typed, addresses: Addresses, chain: str | None, found: list[Operation], seen: dict[Typed, tuple[int, bool]]
) -> tuple[int, bool]:
    """Collects the operations below ``typed``, equal ones once; returns the wheels that it depends on, and whether it holds the
    value that is carried from point to point."""
    known = seen.get(typed)
    if known is None:
        known = seen[typed] = _new_operations(typed, addresses, chain, found, seen)
    return known


def _new_operations(
    typed: Typed, addresses: Addresses, chain: str | None, found: list[Operation], seen: dict[Typed, tuple[int, bool]]
) -> tuple[int, bool]:
    match typed:
        case Const():
            return 0, False
        case IndexValue():
            depends = addresses.depends(typed.expr)
            found.append(Operation("cast", typed.dtype, depends, chain=False))
            return depends, False
        case Load():
            if typed.access.tensor.name == chain:
                return (1 << len(addresses.wheels)) - 1, True
            moves = 0
            for subscript in typed.access.subscripts:
                moves |= addresses.depends(subscript)
                if divisions := _divisions(subscript):
                    found += [Operation("int_div", "i64", addresses.depends(subscript), chain=False)] * divisions
            return moves, False
    below = [_operations(a, addresses, chain, found, seen) for a in typed.args]
    depends, carried = 0, False
    for moves, carries in below:
        depends |= moves
        carried = carried or carries
    cost = operation_class(typed.op, typed.dtype)
    last = typed.args[-1]
    if typed.op == "**" and isinstance(last, Const) and last.value in (2, 3, 4):
        found += [Operation("mul", typed.dtype, depends, carried)] * (int(last.value) // 2)
        return depends, carried
    if cost == "add" and _fuses(typed, below, found):
        cost = "fma"
    if cost == "div" and isinstance(last, Const) and last.value and abs(frexp(last.value)[0]) == 0.5:
        cost = "mul"  # by a power of two is exact, so compilers multiply
    found.append(Operation(cost, typed.dtype, depends, carried))
    return depends, carried


def _fuses(typed: Apply, below: Sequence[tuple[int, bool]], found: list[Operation]) -> bool:
    """Takes the product under a sum out of ``found``, where they become one fused multiply-add."""
    for argument, (depends, carried) in zip(typed.args, below, strict=True):
        if isinstance(argument, Apply) and argument.op == "*":
            product = Operation("mul", argument.dtype, depends, carried)
            if product in found:
                found.reverse()
                found.remove(product)
                found.reverse()
                return True
    return False


@lru_cache(maxsize=50_000)
def _divisions(subscript: Expr) -> int:
    return sum(isinstance(e, Binary) and e.op in ("//", "%") for e in subexpressions(subscript))
