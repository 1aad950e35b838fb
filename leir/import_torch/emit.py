"""Writing LEIR: known tensors, temporaries, and one expression at a time, with the order of names that the paper uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from leir import digits
from leir.import_torch.access_maps import compose
from leir.import_torch.values import Shape, Value, whole
from leir.ir import Access, Binary, Call, Equation, Expr, Index, Int, Known, Loop, Nest, Program, Role, Signature, Tensor
from leir.lift import make_program
from leir.names import index_name_problem, index_names, tensor_names

Bind: TypeAlias = Literal["none", "first"]
Accumulation: TypeAlias = Literal["+", "max", "min"]

WIDEST_BLOCK = 1024  # threadIdx.x has at most this many values


@dataclass(slots=True)
class Emitter:
    """Collects tensors and expressions. ``bind="first"`` binds the first spatial loop that fits in a block as ``tx``."""

    bind: Bind = "none"
    known: list[Known] = field(default_factory=list)
    nests: list[Nest] = field(default_factory=list)
    _names: Iterator[str] = field(default_factory=tensor_names)

    def tensor(self, shape: Shape, dtype: str, role: Role) -> Value:
        """A new known tensor, under the next free name."""
        name = next(self._names)
        self.known.append(Known(name, dtype, shape, role))
        return whole(Tensor(name, dtype, "g"), shape)

    def expression(
        self,
        shape: Shape,
        dtype: str,
        element: Expr,
        *,
        over: Shape = (),
        accumulate: Accumulation = "+",
        output: bool = False,
    ) -> Value:
        """One top-level expression that computes a tensor of the given shape, and the value that reads it.

        ``element`` is written in the dimensions of ``shape``, then in those of ``over``, over which it is accumulated. A dimension
        of extent 1 gets no loop; a temporary does not have it at all.
        """
        extents = (*shape, *over)
        walked = [axis for axis, extent in enumerate(extents) if extent > 1]
        env: list[Expr] = [Int(0)] * len(extents)
        for number, axis in enumerate(walked):
            env[axis] = Index(number)
        if output:
            tensor = Tensor(self.tensor(shape, dtype, "output").reads, dtype, "g")
            kept = list(range(len(shape)))
        else:
            tensor = Tensor(next(self._names), dtype, "g")
            kept = [axis for axis in walked if axis < len(shape)]
        target = Access(tensor, tuple(env[axis] for axis in kept))
        value = compose(element, env, [extents[axis] for axis in walked])
        if any(extent > 1 for extent in over):
            value = Binary("+", target, value) if accumulate == "+" else Call(accumulate, (target, value))
        loops = self._loops([extents[axis] for axis in walked], sum(axis < len(shape) for axis in walked))
        self.nests.append(Nest(tuple(loop.extent for loop in loops), loops, (Equation(target, value),)))
        return Value(shape, dtype, Access(tensor, tuple(Index(axis) if shape[axis] > 1 else Int(0) for axis in kept)))

    def is_output(self, value: Value) -> bool:
        """Whether the value is an output tensor, all of it, as it is."""
        known = next((known for known in self.known if known.name == value.reads and known.role == "output"), None)
        return known is not None and value.element is whole(Tensor(known.name, known.dtype, "g"), known.shape).element

    def copy(self, value: Value) -> Value:
        """An output tensor with the elements of ``value``."""
        return self.expression(value.shape, value.dtype, value.element, output=True)

    def _loops(self, extents: list[int], spatial: int) -> tuple[Loop, ...]:
        bound = next((k for k in range(spatial) if extents[k] <= WIDEST_BLOCK), None) if self.bind == "first" else None
        names = (name for name in index_names() if index_name_problem(name, bound=False) is None)
        return tuple(
            Loop("B", "tx", digits.whole(k, extent)) if k == bound else Loop("L", next(names), digits.whole(k, extent))
            for k, extent in enumerate(extents)
        )

    def program(self, name: str) -> Program:
        """The program in normal form: known tensors in the order inputs, parameters and constants, outputs."""
        return make_program(Signature(name, tuple(self.known)), self.nests)
