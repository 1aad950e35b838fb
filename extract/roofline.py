"""The roofline cost of a program: for each kernel, the longest of its compute time and of what each level of memory takes, plus
what it costs to start.

    cost(program, load("cpu")).seconds
    print(cost(program, load("h200")).explain())

Costs are deterministic, and memoised per interned nest: a neighbouring program pays for the kernels that changed. They are meant to
order candidates, not to predict seconds: `benchmarks/roofline.py` prints the rank correlation with measured times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from extract import cpu, gpu
from extract.address import ITEM_BYTES
from extract.device import Device
from extract.features import kernel as features
from leir.ir import Access, Nest, Program, equations, subexpressions
from leir.lift import flatten_program
from leir.shapes import temporary_shapes

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KernelCost:
    """One kernel. ``parts``: what competes, in seconds ("compute" and the levels of memory); the longest is ``bound``. ``launch``
    comes on top. ``moved``: bytes taken from each level. ``binds``: what the compute time is spent on. ``operations``: scalar
    operations by class and dtype."""

    seconds: float
    bound: str
    parts: tuple[tuple[str, float], ...]
    launch: float
    moved: tuple[tuple[str, float], ...]
    binds: str
    operations: tuple[tuple[str, str, float], ...]

    def explain(self) -> str:
        """One line: the time, what bounds it, and the others beside it."""
        why = f"{self.bound} ({self.binds})" if self.bound == "compute" else self.bound
        beside = ", ".join(f"{name} {time_text(s)}" for name, s in self.parts if name != self.bound and s > 0)
        parts = [f"{time_text(self.seconds)}, bound by {why}"]
        if self.launch > 0:
            parts.append(f"{time_text(self.launch)} of it to start")
        if beside:
            parts.append(f"beside it {beside}")
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class Cost:
    """``seconds`` of one run, with data where the run before left it."""

    seconds: float
    device: str
    per_kernel: tuple[KernelCost, ...]

    def explain(self) -> str:
        """One line per kernel, in program order."""
        lines = [f"{time_text(self.seconds)} on {self.device}"]
        lines += [f"  kernel {k}: {one.explain()}" for k, one in enumerate(self.per_kernel)]
        return "\n".join(lines)


def cost(program: Program, device: Device) -> Cost:
    """The cost of ``program`` on ``device``. Raises `leir.shapes.ShapeError` and `leir.elaborate.TypingError` on programs that the
    checker rejects for these."""
    shapes = tensor_shapes(program)
    warm = warm_level(program.nests, shapes, device)
    kernels = tuple(kernel_cost(nest, shapes, device, warm) for nest in program.nests)
    once = device["call"] if device.kind == "cpu" else 0.0
    return Cost(sum(k.seconds for k in kernels) + once, device.name, kernels)


def kernel_cost(nest: Nest, shapes: Mapping[str, Shape], device: Device, warm: int) -> KernelCost:
    """The cost of one kernel. ``shapes``: of every tensor that it touches, by name; ``warm``: see `warm_level`."""
    return _kernel_cost(nest, tuple((name, shapes[name]) for name in tensors(nest)), device, warm)


def tensor_shapes(program: Program) -> dict[str, Shape]:
    """The shape of every tensor of ``program``, by name."""
    known = {t.name: t.shape for t in program.signature.tensors}
    return known | temporary_shapes(program.signature, flatten_program(program))


def warm_level(nests: Sequence[Nest], shapes: Mapping[str, Shape], device: Device) -> int:
    """The innermost level, by number, that holds everything that ``nests`` touch: what a run finds there from the run
    before."""
    size = 0
    seen: set[str] = set()
    for nest in nests:
        for name in tensors(nest):
            if name not in seen:
                seen.add(name)
                size += prod(shapes[name]) * ITEM_BYTES[dict(_dtypes(nest))[name]]
    return next(k for k, level in enumerate(device.levels) if size <= level.capacity)


@lru_cache(maxsize=100_000)
def tensors(nest: Nest) -> tuple[str, ...]:
    """The tensors that a nest touches, in the order of the text."""
    return tuple(dict.fromkeys(name for name, _ in _dtypes(nest)))


@lru_cache(maxsize=100_000)
def _dtypes(nest: Nest) -> tuple[tuple[str, str], ...]:
    return tuple(dict.fromkeys((a.tensor.name, a.tensor.dtype) for a in _accesses(nest)))


def _accesses(nest: Nest) -> Iterator[Access]:
    for equation in equations(nest):
        for expr in (equation.target, equation.value):
            for e in subexpressions(expr):
                if isinstance(e, Access):
                    yield e


@lru_cache(maxsize=100_000)
def _kernel_cost(nest: Nest, shapes: tuple[tuple[str, Shape], ...], device: Device, warm: int) -> KernelCost:
    model: cpu.CpuCost | gpu.GpuCost
    if device.kind == "cpu":
        found = features(nest, dict(shapes), walk=lambda block: cpu.walk(block, device))
        model = cpu.kernel_cost(found, device, warm)
    else:
        found = features(nest, dict(shapes), gpu=True)
        model = gpu.kernel_cost(found, device, warm)
    parts = (("compute", model.compute), *model.memory.items())
    bound = max(parts, key=lambda part: part[1])[0]
    return KernelCost(
        dict(parts)[bound] + model.launch,
        bound,
        parts,
        model.launch,
        tuple(model.moved.items()),
        model.binds,
        tuple((op, dtype, count) for (op, dtype), count in found.operations.items()),
    )


def time_text(seconds: float) -> str:
    """``seconds`` with three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
