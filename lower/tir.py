"""LEIR nests to a TIR function for a CPU (design: leir.md, section 3; facts-tvm.md, a).

Plain loops without blocks, in int64. Parameters are the known tensors in signature order; temporaries of every scope are allocated
in full at the top of the function, so a thread's or a block's copy is simply an element of a larger tensor. Loops bound to the GPU
run serially.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import DataType
from tvm import tirx as tir

from leir.elaborate import elaborate
from leir.ir import Equation, Nest, Program, Tensor
from leir.lift import flatten_program
from leir.scalars import identity
from leir.shapes import ShapeError, temporary_shapes, walk_equations
from lower.plan import Fill, LoweringRefused, Mode, Path, Plan, Start, plan
from lower.tir_arithmetic import STORE, Prim, int64, plain_literal, store_bf16
from lower.tir_expr import Scalars, sequence

_FOR_KIND: dict[Mode, Prim] = {
    "serial": tir.ForKind.SERIAL,
    "parallel": tir.ForKind.PARALLEL,
    "vectorized": tir.ForKind.VECTORIZED,
    "unrolled": tir.ForKind.UNROLLED,
}
ENTRY = "main"


def lower(program: Program) -> Prim:
    """The PrimFunc of ``program``. Raises LoweringRefused, and TypingError on ill-typed equations."""
    nests = flatten_program(program)
    return _Lowering(program, nests).function(nests)


class _Lowering:
    def __init__(self, program: Program, nests: Sequence[Nest]) -> None:
        try:
            shapes = temporary_shapes(program.signature, nests)
        except ShapeError as problem:
            raise LoweringRefused("shape", program.name, str(problem)) from problem
        self.params = {t.name: _buffer(t.name, t.dtype, t.shape) for t in program.signature.tensors}
        self.shapes = {t.name: t.shape for t in program.signature.tensors} | shapes
        dtypes = {e.target.tensor.name: e.target.tensor.dtype for _, _, e in walk_equations(nests)}
        self.temporaries = {name: _buffer(name, dtypes[name], shape) for name, shape in shapes.items()}
        self.buffers = self.params | self.temporaries
        self.plan: Plan = plan(nests)
        self.axes: list[Prim] = []

    def function(self, nests: Sequence[Nest]) -> Prim:
        body = [tir.AllocBuffer(b) for b in self.temporaries.values()]
        body += [self.fill(f) for f in self.plan.fills]
        for position, nest in enumerate(nests):
            body += self.loops(nest, 0, (position,))
        function = tir.PrimFunc(list(self.params.values()), sequence(body))
        return function.with_attr("global_symbol", ENTRY).with_attr("tirx.noalias", True).with_attr("s_tir", True)

    def loops(self, nest: Nest, position: int, path: Path) -> list[Prim]:
        """The statements of ``nest`` from its loop ``position`` inwards."""
        if position == len(nest.schedule):
            return [statement for k, item in enumerate(nest.body) for statement in self.item(item, (*path, k))]
        before = [self.start(s) for s in self.plan.before_loop.get((path, position), ())]
        variable = tir.Var(nest.schedule[position].name, "int64")
        self.axes.append(variable)
        body = self.loops(nest, position + 1, path)
        self.axes.pop()
        mode = self.plan.modes[path, position]
        if mode == "vectorized" and not all(isinstance(s, tir.BufferStore) for s in body):
            mode = "serial"  # a lane has no statements of its own; LLVM may still vectorize the loop
        return [*before, _for(variable, nest.schedule[position].extent, sequence(body), mode)]

    def item(self, item: Equation | Nest, path: Path) -> list[Prim]:
        if isinstance(item, Nest):
            return self.loops(item, 0, path)
        before = [self.start(s) for s in self.plan.before_equation.get(path, ())]
        scalars = Scalars(self.buffers, self.axes)
        value = scalars.value(elaborate(item))
        return [*before, *scalars.statements, self.store(item.target.tensor, value, scalars.subscripts(item.target))]

    def start(self, start: Start) -> Prim:
        """The identity at the elements of one target, looping over its axes that lie further in."""
        fresh = {axis: tir.Var(f"s{axis}", "int64") for axis, _ in start.axes}
        count = max((*fresh, len(self.axes) - 1), default=-1) + 1
        axes = [fresh[k] if k in fresh else self.axes[k] if k < len(self.axes) else None for k in range(count)]
        value = self.identity(start.target.tensor, start.op)
        statement = self.store(start.target.tensor, value, Scalars(self.buffers, axes).subscripts(start.target))
        for axis, extent in reversed(start.axes):
            statement = _for(fresh[axis], extent, statement, "serial")
        return statement

    def fill(self, fill: Fill) -> Prim:
        """The identity at every element of a tensor."""
        shape = self.shapes[fill.tensor.name]
        axes = [tir.Var(f"s{k}", "int64") for k in range(len(shape))]
        statement = self.store(fill.tensor, self.identity(fill.tensor, fill.op), axes)
        for axis, extent in reversed(list(zip(axes, shape, strict=True))):
            statement = _for(axis, extent, statement, "serial")
        return statement

    def identity(self, tensor: Tensor, op: str) -> Prim:
        value = identity(op, tensor.dtype)
        return plain_literal(value.item(), tensor.dtype)

    def store(self, tensor: Tensor, value: Prim, subscripts: list[Prim]) -> Prim:
        return tir.BufferStore(self.buffers[tensor.name], store_bf16(value) if tensor.dtype == "bf16" else value, subscripts)


def _buffer(name: str, dtype: str, shape: tuple[int, ...]) -> Prim:
    # TVM believes the alignment it is told, and NumPy promises no more than that of an element
    alignment = (DataType(STORE[dtype]).bits + 7) // 8
    return tir.decl_buffer([int64(size) for size in shape], STORE[dtype], name, data_alignment=alignment, layout=None)


def _for(variable: Prim, extent: int, body: Prim, mode: Mode) -> Prim:
    return tir.For(variable, int64(0), int64(extent), _FOR_KIND[mode], body)
