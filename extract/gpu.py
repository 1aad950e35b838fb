"""Seconds that a kernel takes on a GPU.

A kernel is a grid of blocks of threads; serial loops run in each thread. Threads of a warp turn together, so the sectors that a
warp touches in one access come from the strides of the thread loops: that is coalescing. The compute time is the longest of the
arithmetic units, the issue of warp instructions, the first level of memory, and the latency of one thread's own chain, which only
other warps can hide. The second level and the memory are asked for what the blocks' working sets do not find nearer. Few threads
keep few bytes in flight, and cannot use the whole bandwidth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from extract.address import Address
from extract.device import Device
from extract.features import Block, Kernel, Operation, PathLoop
from extract.footprint import lines
from extract.traffic import traffic


@dataclass(frozen=True, slots=True)
class GpuCost:
    """Seconds, as in `extract.cpu.CpuCost`; ``launch``: of starting the kernel, as often as serial loops around it do."""

    compute: float
    memory: Mapping[str, float]
    moved: Mapping[str, float]
    launch: float
    binds: str


def kernel_cost(kernel: Kernel, device: Device, warm: int) -> GpuCost:
    """``warm``: the innermost level, by number, that holds all data of the program from one run to the next."""
    grid, threads = kernel.grid, kernel.threads
    warps = ceil(threads / device["warp"])
    resident = max(1.0, min(device["blocks"], device["threads"] // (warps * device["warp"]), *_by_shared(kernel, device)))
    busy = min(device["multiprocessors"], grid)
    rounds = ceil(grid / busy)  # blocks that one multiprocessor gets, one after another or side by side
    waves = ceil(rounds / resident)

    work = _Thread(kernel, device)
    per_block = {
        "arithmetic": work.arithmetic * threads,
        "issue": work.instructions * warps / device["issue"],
        "first level": work.first_level * warps,
    }
    cycles = {name: spent * rounds for name, spent in per_block.items()}
    cycles["latency"] = work.latency * waves
    binds = max(cycles, key=lambda k: cycles[k])
    compute = kernel.launches * cycles[binds] / device["frequency"]

    concurrent = threads * min(grid, busy * resident)
    ceiling = concurrent * device["in_flight"] / device["memory_latency"]
    first, second, outside = device.levels
    room = max(first.capacity - kernel.shared_bytes * resident, first.line) / resident
    memory, moved = {}, {}
    for number, (capacity, inner, outer, apart) in enumerate(
        ((room, first, second, True), (second.capacity, second, outside, False))
    ):
        crossing = traffic(kernel.region, capacity, inner.line, inner.sets, resident=warm <= number and not apart, apart=apart)
        moved[outer.name] = crossing.lines * inner.line
        memory[outer.name] = moved[outer.name] / min(outer.bandwidth, ceiling)
    return GpuCost(compute, memory, moved, kernel.launches * device["launch"], binds)


def _by_shared(kernel: Kernel, device: Device) -> tuple[float, ...]:
    return (device["shared_memory"] // kernel.shared_bytes,) if kernel.shared_bytes else ()


class _Thread:
    """What one thread does, over all its serial iterations. Threads that a body does not use are taken as waiting, not as
    working."""

    def __init__(self, kernel: Kernel, device: Device) -> None:
        self.device = device
        self.arithmetic = 0.0
        """Cycles of a multiprocessor's arithmetic units."""
        self.instructions = 0.0
        self.first_level = 0.0
        """Cycles of a multiprocessor's first level per warp."""
        self.latency = 0.0
        for block in kernel.blocks:
            self._add(block, kernel.launches)

    def _add(self, block: Block, launches: int) -> None:
        loops = [loop for loop in block.loops if loop.gpu_axis is None]
        points = _points(loops, -1) / launches
        steps = 0.0
        for work in block.works:
            for operation in work.operations:
                count = max(1.0, _points(loops, operation.depends) / launches)
                native = self.device.calls.get(operation.cost, (1.0,))[0]
                self.arithmetic += count * native / self._rate(operation)
                self.instructions += count * native
                if operation.chain or not work.accumulates:
                    steps += native
            loaded = [(a, True) for a in work.reads]
            kept = loops and not work.target.moves & loops[-1].wheels
            loaded += [(work.target, False)] if not kept else []
            for address, read in loaded:
                if address.scope == "l":
                    continue
                count = max(1.0, _points(loops, address.moves) / launches)
                self.instructions += count
                self.first_level += count * self._sectors(block, address)
                if read and not work.accumulates:
                    steps += self.device["load_latency"] / self.device["latency"]
        # a sum's loads run ahead of it; what is carried, and what has nothing beside it, waits for each step
        unrolled = 1.0
        for loop in loops:
            unrolled *= loop.extent if loop.kind in ("U", "V") and all(w.target.moves & loop.wheels for w in block.works) else 1
        self.latency += self.device["latency"] * (steps + 2) * points / min(unrolled, 8.0)
        self.latency += self.device["load_latency"]

    def _rate(self, operation: Operation) -> float:
        return self.device.operations[operation.dtype][0]

    def _sectors(self, block: Block, address: Address) -> float:
        """Cycles of the first level for one access of a full warp."""
        sector = self.device.levels[0].line
        shape = []
        left = int(self.device["warp"])
        for number in _fastest_first(block):
            wheel = block.wheels[number]
            turns = min(wheel.extent, left)
            left = max(1, left // wheel.extent)
            stride = abs(address.strides[number])
            if stride and turns > 1:
                shape.append((max(stride, sector) if address.spread else stride, turns))
        return max(1.0, lines(tuple(shape), address.item, sector) * sector / self.device["first_level_bytes"])


def _fastest_first(block: Block) -> list[int]:
    """The wheels of thread loops, x fastest, each loop's innermost digit first."""
    threads = sorted((loop for loop in block.loops if (loop.gpu_axis or "").startswith("t")), key=lambda loop: loop.gpu_axis or "")
    found = []
    for loop in threads:
        found += [k for k in range(len(block.wheels) - 1, -1, -1) if loop.wheels >> k & 1]
    return found


def _points(loops: list[PathLoop], depends: int) -> float:
    """Iterations of the serial loops down to the innermost one that ``depends`` names; -1 names all."""
    count = total = 1.0
    for loop in loops:
        count *= loop.extent
        if loop.wheels & depends:
            total = count
    return total
