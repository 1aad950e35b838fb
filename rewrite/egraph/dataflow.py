"""A program as a dataflow: tensor values, and kernels that compute them from others (architecture.md, The e-graph).

In-place updates are versions of a tensor: every kernel makes new values, and what it changes is an operand as well. Everything is
interned and numbered, in the order of its making, so that numbers serve as names in egglog and nothing depends on hashing.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from leir.ir import Nest, Program, Signature
from leir.lift import flatten
from leir.shapes import ShapeError, temporary_shapes
from rewrite.egraph.templates import Template, dtypes, template, tensors, written

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A template and the values that it reads, by their numbers."""

    template: int
    operands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor value: output number ``output`` of kernel number ``kernel``, or the known tensor ``name`` where ``kernel`` is None.
    ``name`` is what the program called it where it was first met, and is only a wish when a program is put together."""

    kernel: int | None
    output: int
    name: str
    shape: Shape
    dtype: str


class NotEncodable(ValueError):
    """An expression names a tensor that has no value yet, in a read that no iteration carries out. The checker allows that; here
    every read has an operand."""


def has_operands(nests: Sequence[Nest], available: Container[str]) -> bool:
    """Whether every tensor that consecutive expressions read has a value there."""
    own: set[str] = set()
    for nest in nests:
        own.update(written(nest))
        if any(name not in available and name not in own for name in tensors(nest)):
            return False
    return True


@dataclass(slots=True)
class Dataflow:
    """The interned templates, kernels and values, and which value each output of the program must have."""

    signature: Signature
    templates: list[Template] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    place: list[int] = field(default_factory=list)  # per kernel: where it stood when it was first met
    roots: dict[str, int] = field(default_factory=dict)
    _template: dict[Template, int] = field(default_factory=dict)
    _kernel: dict[Kernel, int] = field(default_factory=dict)
    _outputs: list[tuple[int, ...]] = field(default_factory=list)
    _inputs: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.values = [Value(None, 0, t.name, t.shape, t.dtype) for t in self.signature.inputs]
        self._inputs = {value.name: number for number, value in enumerate(self.values)}

    def outputs(self, kernel: int) -> tuple[int, ...]:
        """The values that a kernel computes."""
        return self._outputs[kernel]

    def template_of(self, kernel: int) -> Template:
        return self.templates[self.kernels[kernel].template]

    def inputs(self) -> dict[str, int]:
        """The value of every tensor that has one before the program starts."""
        return dict(self._inputs)

    def add(
        self, nests: Sequence[Nest], versions: dict[str, int], shapes: Mapping[str, Shape], first: int
    ) -> tuple[tuple[int, ...], ...]:
        """The kernels of consecutive expressions, each as (kernel, operand values...). ``versions`` is the value of every tensor
        at that point, and is brought up to date; ``first`` is the number of the first expression in its program."""
        found = []
        for number, nest in enumerate(nests, first):
            plain, operands, outputs = template(nest, versions)
            kernel = self.kernel(plain, tuple(versions[name] for name in operands), outputs, shapes, dtypes(nest), number)
            versions.update(zip(outputs, self._outputs[kernel], strict=True))
            found.append((kernel, *self.kernels[kernel].operands))
        return tuple(found)

    def kernel(
        self,
        plain: Template,
        operands: tuple[int, ...],
        names: Sequence[str],
        shapes: Mapping[str, Shape],
        types: Mapping[str, str],
        number: int,
    ) -> int:
        """The number of a kernel, and of its outputs, which have ``names`` where they are met."""
        at = self._template.setdefault(plain, len(self.templates))
        if at == len(self.templates):
            self.templates.append(plain)
        kernel = Kernel(at, operands)
        found = self._kernel.get(kernel)
        if found is not None:
            return found
        found = self._kernel[kernel] = len(self.kernels)
        self.kernels.append(kernel)
        self.place.append(number)
        new = tuple(range(len(self.values), len(self.values) + len(names)))
        self.values += [Value(found, k, name, shapes.get(name, ()), types[name]) for k, name in enumerate(names)]
        self._outputs.append(new)
        return found


def encode(program: Program) -> Dataflow:
    """The dataflow of a program. Kernels are numbered as its expressions are, but for those that compute the same.

    Raises NotEncodable where a read has no operand."""
    flow = Dataflow(program.signature)
    versions = flow.inputs()
    if not has_operands(program.nests, versions):
        raise NotEncodable("an expression names a tensor that no earlier one writes")
    flow.add(program.nests, versions, all_shapes(program), 0)
    flow.roots = {t.name: versions[t.name] for t in program.signature.outputs if t.name in versions}
    return flow


def all_shapes(program: Program) -> dict[str, Shape]:
    """The shape of every tensor of a program; those of temporaries are missing where they have none."""
    shapes = {t.name: t.shape for t in program.signature.tensors}
    try:
        shapes |= temporary_shapes(program.signature, tuple(map(flatten, program.nests)))
    except ShapeError:
        return shapes
    return shapes
