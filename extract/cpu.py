"""Seconds that a kernel takes on a CPU, as LLVM compiles it (facts-tvm.md, b).

What LLVM makes of a loop nest decides more than the operations in it, so the model follows it:

* a ``V`` loop is vector code; inner ``U`` loops, and ``L`` loops small enough for LLVM's full unrolling, become straight-line code;
* the loop around that, the *running* loop, keeps in registers what it does not move: accumulators are neither loaded nor stored in
  it;
* without a ``V`` loop LLVM vectorizes the running loop, if no float sum and no function call stands in its way and memory is
  contiguous or in small strides; straight-line code is vectorized only where its results stay in registers;
* a sum that is carried from iteration to iteration waits for its own latency, unless independent sums run beside it: those of the
  straight-line code, and those of the next entries of the loop, as far as they fit into the window of instructions in flight.

The compute time is that of the slowest of: arithmetic, loads, stores, issue, latency. The kernel takes the longer of it and of the
time that each level of memory takes, and pays for the start of parallel loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, log2

from extract.address import ITEM_BYTES, Address
from extract.device import Device
from extract.features import Block, Kernel, Operation, PathLoop, Work
from extract.traffic import traffic

MAX_LANES = 64
"""The longest V loop that is lowered to vector code (`lower.plan`)."""
MAX_UNROLL = 64
"""The largest product of nested U loops that is lowered to straight-line code (`lower.plan`)."""


@dataclass(frozen=True, slots=True)
class CpuCost:
    """Seconds: of the arithmetic with its loads and stores, of each memory level from L2 on, of starting parallel loops. ``binds``:
    what the compute time is spent on, of the block that takes longest."""

    compute: float
    memory: Mapping[str, float]
    moved: Mapping[str, float]
    launch: float
    binds: str


def kernel_cost(kernel: Kernel, device: Device, warm: int) -> CpuCost:
    """``warm``: the innermost level, by number, that holds all data of the program from one run to the next."""
    cores = _cores_used(kernel, device)
    cycles, binds = 0.0, "nothing"
    longest = -1.0
    for block in kernel.blocks:
        spent, what = _Code(block, device).cycles()
        cycles += spent
        if spent > longest:
            longest, binds = spent, what
    memory, moved = {}, {}
    for number, (inner, outer) in enumerate(zip(device.levels, device.levels[1:], strict=False)):
        crossing = traffic(kernel.region, inner.capacity, inner.line, inner.sets, resident=warm <= number)
        seconds = crossing.streamed * inner.line / outer.bandwidth
        queue = crossing.reads_queued * inner.set_time + crossing.writes_queued * inner.set_write_time
        seconds += max(crossing.scattered * outer.line_time, queue)
        memory[outer.name] = seconds / (1 if outer.shared and number + 2 == len(device.levels) else cores)
        moved[outer.name] = crossing.lines * inner.line
    launches = sum(around for around, _ in kernel.parallel)
    return CpuCost(cycles / device["frequency"] / cores, memory, moved, launches * device["parallel_launch"], binds)


def _cores_used(kernel: Kernel, device: Device) -> float:
    """By how much the parallel loops divide the time, if they hold all of the work; iterations that do not divide evenly wait."""
    if not kernel.parallel:
        return 1.0
    cores = device["cores"]
    return min(extent / ceil(extent / cores) for _, extent in kernel.parallel)


def walk(block: Block, device: Device) -> tuple[int, ...]:
    """The wheels that compiled code turns first: where a loop around straight-line code is vectorized, its lanes run innermost."""
    code = _Code(block, device)
    if code.running is None or code.vector is not code.running or not code.straight:
        return ()
    return tuple(k for k in range(len(block.wheels) - 1, -1, -1) if code.running.wheels >> k & 1)


class _Code:
    """A block as LLVM compiles it: ``outer`` loops, the ``running`` loop, and ``straight`` code in it."""

    def __init__(self, block: Block, device: Device) -> None:
        self.block = block
        self.device = device
        self.loops = block.loops
        self.works = block.works
        self.vector: PathLoop | None = None
        """The loop whose iterations are lanes: the V loop, one of the straight-line code, or the running one."""
        self.scalar_straight = False
        self._size = float("inf")
        """The instructions of one iteration of the running loop."""
        self.called = any(o.cost in device.calls for w in self.works for o in w.operations)
        split = self._straight_from()
        self.straight = self.loops[split:]
        self.running = self.loops[split - 1] if split else None
        self.outer = self.loops[: max(split - 1, 0)]
        self._vectorize()

    # ---------------------------------------------------------------------------------------------------------------- structure

    def _straight_from(self) -> int:
        """The number of the first loop that becomes straight-line code."""
        split = len(self.loops)
        if not self.block.alone or not split:
            return split
        last = self.loops[-1]
        if last.kind == "V" and last.extent <= MAX_LANES and self._spatial(last):
            self.vector = last
            split -= 1
        size = self._instructions(split)
        copies = 1
        while split:
            loop = self.loops[split - 1]
            unrolled = loop.kind == "U" and copies * loop.extent <= MAX_UNROLL
            if not unrolled and (loop.kind == "P" or size * loop.extent > self._threshold(loop)):
                break
            split -= 1
            size *= loop.extent
            copies *= loop.extent if unrolled else 1
        self._size = size
        return split

    def _threshold(self, loop: PathLoop) -> float:
        """The size up to which LLVM unrolls a loop: more where its index stands in divisions, which become constants."""
        divided = loop.digits > 1 or any(o.cost == "int_div" and o.depends & loop.wheels for w in self.works for o in w.operations)
        boosted = divided and loop.extent <= self.device["unroll_boosted"]
        return self.device["unroll"] * (self.device["unroll_boost"] if boosted else 1.0)

    def _instructions(self, split: int) -> float:
        """The instructions of one point within the innermost loop: operations, accesses and their addresses."""
        inner = self.loops[split - 1].wheels if split else -1
        size = 0.0
        for work in self.works:
            size += sum(2.0 for a in work.reads if a.moves & inner)
            if work.target.moves & inner:
                size += 3.0 if work.accumulates else 2.0
            size += sum(2.0 if o.cost == "fma" else 1.0 for o in work.operations if o.chain or o.depends & inner)
        return size * (self._registers_of(self.vector.extent) if self.vector else 1)

    def _registers_of(self, lanes: int) -> int:
        return max(1, ceil(lanes * max(w.target.item for w in self.works) / self.device["simd"]))

    def _spatial(self, loop: PathLoop) -> bool:
        """Whether different iterations write different elements and read none that another one writes."""
        return all(w.target.moves & loop.wheels and not w.recurs for w in self.works)

    def _vectorize(self) -> None:
        if self.vector is not None or self.called:
            return
        if self.running is not None and all(not w.target.moves & self.running.wheels for w in self.works):
            for loop in reversed(self.straight):  # results stay in registers, so only what is read must lie side by side
                if self._spatial(loop) and self._contiguous(loop, 1, reads_only=True):
                    self.vector = loop
                    return
        running = self.running
        limit = int(self.device["interleave"])
        copies = 1
        for loop in self.straight:
            copies *= loop.extent
        if running is not None and self.block.alone and self._contiguous(running, limit) and self._parallel_lanes(running):
            self.vector = running
        else:
            self.scalar_straight = copies > limit

    def _parallel_lanes(self, loop: PathLoop) -> bool:
        """Whether iterations may become lanes: no recurrence, and no float sum over them."""
        for work in self.works:
            if work.recurs:
                return False
            if work.accumulates and not work.regroups and not work.target.moves & loop.wheels:
                return False
        return True

    def _contiguous(self, loop: PathLoop, limit: int, *, reads_only: bool = False) -> bool:
        """Whether every access moves by at most ``limit`` elements an iteration, or not at all, and what is written leaves no
        gaps."""
        for work in self.works:
            if not all(self._in_step(a, loop, limit) for a in work.reads):
                return False
            if not reads_only and not (self._in_step(work.target, loop, limit) and self._covers(work.target, loop)):
                return False
        return True

    def _in_step(self, address: Address, loop: PathLoop, limit: int) -> bool:
        step = abs(address.strides[loop.last])
        if address.spread or step > limit * address.item:
            return False
        if step and loop.digits > 1:  # a loop of several digits: they must count on as one
            expected = step
            for k in range(loop.last, -1, -1):
                if loop.wheels >> k & 1:
                    if abs(address.strides[k]) != expected:
                        return False
                    expected *= self.block.wheels[k].extent
        return True

    def _covers(self, target: Address, loop: PathLoop) -> bool:
        """Whether the straight-line code writes all elements between one iteration and the next."""
        step = abs(target.strides[loop.last])
        written = target.item
        for inner in self.straight:
            if 0 < abs(target.strides[inner.last]) < step:
                written *= inner.extent
        return written >= step

    # -------------------------------------------------------------------------------------------------------------------- cycles

    def cycles(self) -> tuple[float, str]:
        """Cycles of all iterations, and what they are spent on."""
        entries = 1.0
        around = 0.0
        for loop in self.outer:
            entries *= loop.extent
            around += entries * self.device["loop_iteration"] * (0.0 if loop.kind == "U" else 1.0) / 2
        if self.running is None:
            per, what = self._iteration(1.0)
            return entries * per + around, what
        trips, lanes = self._trips()
        per, what = self._iteration(trips)
        total = per * trips
        if lanes > 1:
            rest = self.running.extent - int(trips) * lanes
            total += rest * per / 2  # the remainder runs in narrower vectors, then one by one
            total += self._horizontal(lanes)
        if trips * self._size > self.device["unroll"] or not self.block.alone:
            total += self.device["loop_entry"]
        if self.block.alone and trips > self.device["predicted_trips"]:
            total += self.device["mispredict"]
        return entries * total + around + entries * self._hoisted(), what

    def _trips(self) -> tuple[float, int]:
        """Iterations of the running loop as compiled, and how many points one of them is."""
        assert self.running is not None
        if self.vector is not self.running:
            return float(self.running.extent), 1
        lanes = int(self.device["simd"]) // max(a.item for w in self.works for a in (w.target, *w.reads))
        while lanes > self.running.extent:
            lanes //= 2
        return float(self.running.extent // max(lanes, 1)), max(lanes, 1)

    def _horizontal(self, lanes: int) -> float:
        """Cycles to reduce the lanes of a vectorized maximum or integer sum to one value."""
        assert self.running is not None
        folded = [w for w in self.works if w.accumulates and not w.target.moves & self.running.wheels]
        return sum(log2(lanes) * (1 + self._latency(w)) for w in folded)

    def _iteration(self, trips: float) -> tuple[float, str]:
        """Cycles of one iteration of the running loop."""
        device = self.device
        loads = stores = arithmetic = slow = calls = issued = 0.0
        chain = inside = 0.0  # what waits from one iteration to the next, and within one
        accesses = 0.0
        seen: set[Address] = set()
        for work in self.works:
            moved = self._moves(work.target)
            count = self._count(work.target)
            if moved:
                stores += count
                loads += count if work.accumulates and work.target not in seen else 0
                accesses += count * (2 if work.accumulates else 1)
            for read in work.reads:
                if read not in seen and self._moves(read):
                    loads += self._count(read)
                    accesses += self._count(read)
                seen.add(read)
            seen.add(work.target)
            for operation in work.operations:
                if operation.cost in device.calls:
                    if self._varies(operation):
                        calls += self._points(operation) * self._call(operation)
                elif self._varies(operation):
                    registers = self._instances(operation, work)
                    cycles = registers * device.operations[self._class(operation)][0]
                    if operation.cost in ("div", "sqrt"):
                        slow += cycles
                    else:
                        arithmetic += cycles
                    issued += registers
            if work.recurs or work.accumulates:
                link = self._latency(work)
                if work.recurs:
                    chain = max(chain, link)
                elif moved:
                    inside = max(inside, link * (self._depth(work) - 1))
                else:
                    chain = max(chain, (link + (device["spill"] if self.called else 0)) * self._depth(work))
        loads += self._reloads()
        # an operand in memory is part of the instruction that uses it
        issued = max(loads, issued) + stores + device["loop_iteration"] + calls * device["call_rate"]
        window = device["window"] / max(issued, 1.0)
        times = {
            "arithmetic": max(arithmetic, slow) + calls,
            "loads": loads / device["loads"],
            "stores": stores / device["stores"],
            "issue": issued / device["issue"],
            "latency": max(chain / (1 + window / max(trips, 1.0)), inside / (1 + window)),
        }
        if self.scalar_straight:
            times["straight-line code"] = accesses * device["straight_line"]
        what = max(times, key=lambda k: times[k])
        return times[what], "calls" if what == "arithmetic" and calls > arithmetic else what

    def _reloads(self) -> float:
        """Loads in every iteration of what could stay in a register if there were enough of them."""
        if self.running is None:
            return 0.0
        kept = {a for w in self.works for a in (w.target, *w.reads) if not self._moves(a)}
        return max(0.0, sum(map(self._count, kept)) + 2 - self.device["registers"])

    def _class(self, operation: Operation) -> str:
        return operation.cost if operation.cost in self.device.operations else "simple"

    def _call(self, operation: Operation) -> float:
        """Cycles of one call."""
        return self.device.calls[operation.cost][ITEM_BYTES[operation.dtype] == 8]

    def _latency(self, work: Work) -> float:
        """Cycles from one value of an accumulation or recurrence to the next."""
        return sum(
            3 * self._call(o) if o.cost in self.device.calls else self.device.operations[self._class(o)][1]
            for o in work.operations
            if o.chain
        )

    def _moves(self, address: Address) -> bool:
        """Whether the running loop moves it, so that it is loaded or stored in every iteration."""
        return self.running is None or address.spread or bool(address.moves & self.running.wheels)

    def _varies(self, operation: Operation) -> bool:
        """Whether it is computed in every iteration of the running loop; LLVM takes the others out."""
        return self.running is None or bool(operation.depends & self.running.wheels) or operation.chain

    def _count(self, address: Address) -> float:
        """Loads or stores of one access in one iteration: what equal iterations of the straight-line code share counts once."""
        count = 1.0
        for loop in self.straight:
            if not address.moves & loop.wheels:
                continue
            if loop is not self.vector:
                count *= loop.extent
            elif abs(address.strides[loop.last]) == address.item:
                count *= max(1, ceil(loop.extent * address.item / self.device["simd"]))
            else:
                count *= loop.extent
        if self.vector is self.running and self.running is not None and address.moves & self.running.wheels:
            # steps of several elements are loaded as whole vectors, which the copies of the straight-line code share
            return max(count, abs(address.strides[self.running.last]) // address.item)
        return count

    def _points(self, operation: Operation) -> float:
        """How often a call is made in one iteration."""
        count = 1.0
        for loop in self.straight:
            count *= loop.extent if operation.depends & loop.wheels else 1
        return count

    def _instances(self, operation: Operation, work: Work) -> float:
        """Vector (or scalar) instructions of one operation in one iteration."""
        count = folded = 1.0
        for loop in self.straight:
            if not operation.depends & loop.wheels:
                continue
            if loop is self.vector:
                count *= self._registers_of(loop.extent)
            elif operation.chain and self._folds(work) and not work.target.moves & loop.wheels:
                folded *= loop.extent
            else:
                count *= loop.extent
        lanes = self.device["simd"] / work.target.item
        return count * (folded if folded < lanes else folded / lanes + 2 * log2(lanes))

    def _depth(self, work: Work) -> float:
        """How many accumulations of one element the straight-line code makes in a row; a tree where they may be regrouped."""
        depth = 1.0
        for loop in self.straight:
            depth *= 1 if work.target.moves & loop.wheels else loop.extent
        return 1 + log2(depth) if self._folds(work) else depth

    def _folds(self, work: Work) -> bool:
        """Whether the straight-line code reduces by vectors and a tree."""
        return work.regroups and bool(self.straight) and self._contiguous(self.straight[-1], 1, reads_only=True)

    def _hoisted(self) -> float:
        """Cycles per entry of the running loop for what was taken out of it: calls and divisions, and results kept in registers."""
        total = 0.0
        assert self.running is not None
        for work in self.works:
            if not self._moves(work.target):
                total += 2 * self._count(work.target) / self.device["stores"]
            elif work.starts:
                total += self._count(work.target) / self.device["stores"] / max(1.0, self._reduced(work))
            for operation in work.operations:
                if self._varies(operation) or not self._entered(operation):
                    continue
                if operation.cost in self.device.calls:
                    total += self._points(operation) * self._call(operation)
                else:
                    total += self.device.operations[self._class(operation)][0]
        return total

    def _entered(self, operation: Operation) -> bool:
        """Whether a hoisted operation is computed at every entry of the running loop, and not further out."""
        return not self.outer or bool(operation.depends & self.outer[-1].wheels)

    def _reduced(self, work: Work) -> float:
        count = 1.0
        for loop in self.loops:
            count *= 1 if work.target.moves & loop.wheels else loop.extent
        return count
