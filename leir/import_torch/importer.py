"""`import_module`: from a module and example inputs to a program, with the names that lead back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.export.exported_program import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec, OutputKind, TensorArgument
from torch.fx import Node
from torch.utils import _pytree as pytree

from leir.import_torch import graph
from leir.import_torch.emit import Bind, Emitter
from leir.import_torch.operation import Unsupported
from leir.import_torch.report import ImportRefused, Refused
from leir.import_torch.translations import TRANSLATIONS
from leir.import_torch.values import Value
from leir.ir import Int, Program, Role

_STATE_ROLES: Mapping[InputKind, Role] = {
    InputKind.PARAMETER: "param",
    InputKind.BUFFER: "constant",
    InputKind.CONSTANT_TENSOR: "constant",
}


@dataclass(frozen=True, slots=True)
class Import:
    """A program and the way back to the module.

    ``bindings`` maps each param and constant of the signature to its fully qualified name in the module (a constant that
    ``forward`` makes is ``lifted_tensor_0`` and so on), and ``state`` to its tensor. ``inputs`` are the tensor names of the
    module's tensor inputs, flattened, in order; ``outputs`` those of its outputs.
    """

    program: Program
    bindings: Mapping[str, str]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    state: Mapping[str, torch.Tensor] = field(repr=False)

    def arguments(self, inputs: Any) -> dict[str, NDArray[Any]]:
        """What `leir.interpret.interpret` takes: the module's present state, and these inputs.

        ``inputs`` is nested as the example inputs were; what is no tensor or array is passed over. bf16 becomes float32.
        Raises ValueError if their number is wrong.
        """
        given = [leaf for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor | np.ndarray)]
        if len(given) != len(self.inputs):
            raise ValueError(f"{self.program.name} takes {len(self.inputs)} tensors, {len(given)} given")
        tensors = {**dict(zip(self.inputs, given, strict=True)), **self.state}
        return {known.name: array(tensors[known.name]) for known in self.program.signature.inputs}


def array(tensor: torch.Tensor | NDArray[Any]) -> NDArray[Any]:
    """The tensor's values in NumPy; bf16 as float32."""
    if isinstance(tensor, np.ndarray):
        return tensor
    tensor = tensor.detach().cpu()
    result: NDArray[Any] = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).contiguous().numpy()
    return result


def import_module(
    module: torch.nn.Module, example_inputs: Sequence[Any], *, name: str | None = None, bind: Bind = "none"
) -> Import:
    """Translate ``module``, in eval mode, for inputs of these shapes and dtypes.

    ``name`` is the program's (the module's class by default). Loops are serial; ``bind="first"`` binds the first spatial loop of
    every expression whose extent is at most 1024 to ``tx``.
    Raises ImportRefused with every operator, dtype, input and output that has no translation.
    """
    title = name or type(module).__name__
    return _Importer(graph.export(module, tuple(example_inputs)), title, Emitter(bind)).run()


class _Importer:
    """One pass over the graph. A refused node gets a stand-in, so that one report holds every refusal."""

    def __init__(self, exported: ExportedProgram, name: str, emitter: Emitter) -> None:
        self.exported = exported
        self.name = name
        self.emitter = emitter
        self.nodes = list(exported.graph.nodes)
        self.values: dict[Node, Value] = {}
        self.refusals: list[Refused] = []
        self.refused: set[Node] = set()
        self.unknown: set[Node] = set()  # refused nodes whose result LEIR could not hold
        self.bindings: dict[str, str] = {}
        self.state: dict[str, torch.Tensor] = {}
        self.inputs: list[str] = []

    def run(self) -> Import:
        self.declare_inputs()
        self.declare_state()
        returned = self.returned()
        direct = {graph.source(node) for node in returned}
        for node in self.nodes:
            if graph.computes(node):
                self.translate(node, node in direct)
        if self.refusals:
            raise ImportRefused(self.name, tuple(self.refusals))
        outputs = self.outputs(returned)
        return Import(self.emitter.program(self.name), self.bindings, tuple(self.inputs), outputs, self.state)

    # -------------------------------------------------------------------------------------------------------- what goes in

    def declare_inputs(self) -> None:
        """The user's inputs; those that are numbers are part of the graph."""
        for spec, node in self.placeholders():
            if spec.kind != InputKind.USER_INPUT:
                continue
            if isinstance(spec.arg, TensorArgument):
                self.inputs.append(self.declare(node, "input"))
            elif not isinstance(spec.arg, ConstantArgument):
                self.refuse(node, f"an input of kind {type(spec.arg).__name__}")

    def declare_state(self) -> None:
        """Parameters, buffers and constants that somebody reads."""
        for spec, node in self.placeholders():
            if spec.kind == InputKind.USER_INPUT or not node.users:
                continue
            if spec.kind not in _STATE_ROLES or spec.target is None:
                self.refuse(node, f"an input of kind {spec.kind.name}")
                continue
            name = self.declare(node, _STATE_ROLES[spec.kind])
            held = self.exported.state_dict if spec.target in self.exported.state_dict else self.exported.constants
            self.bindings[name] = spec.target
            self.state[name] = held[spec.target]

    def placeholders(self) -> Iterator[tuple[InputSpec, Node]]:
        nodes = (node for node in self.nodes if node.op == "placeholder")
        return zip(self.exported.graph_signature.input_specs, nodes, strict=True)

    def declare(self, node: Node, role: Role) -> str:
        """The name of a known tensor for the placeholder; a refused one has none."""
        tensor = node.meta["val"]
        problem = graph.tensor_problem(tensor)
        if problem is not None:
            self.refuse(node, problem)
            return ""
        self.values[node] = value = self.emitter.tensor(tuple(tensor.shape), graph.dtype_name(tensor), role)
        return value.reads

    # ------------------------------------------------------------------------------------------------------------ operators

    def translate(self, node: Node, output: bool) -> None:
        """Give the node its value, or refuse it."""
        origin = graph.source(node)
        if origin is not node:
            self.values[node] = self.values[origin]
            return
        problem = self.problem(node)
        follows = not self.unknown.isdisjoint(node.all_input_nodes)
        if follows and (problem is None or not graph.is_tensor(node)):
            self.stand_in(node)  # what it works on is refused already, and LEIR could not hold it
        elif problem is not None:
            self.refuse(node, problem)
        else:
            found = TRANSLATIONS[graph.operator_name(node)](graph.operation(node, self.values.__getitem__, output), self.emitter)
            if isinstance(found, Unsupported):
                self.refuse(node, found.reason)
            else:
                self.values[node] = found

    def problem(self, node: Node) -> str | None:
        """Why the node has no translation, as far as its name and its result tell."""
        if graph.is_result(node):
            return f"result {node.args[1]} is used, and only the first has a translation"
        if graph.operator_name(node) not in TRANSLATIONS:
            return "no translation for this operator"
        return graph.tensor_problem(graph.results(node)[0])

    def refuse(self, node: Node, reason: str) -> None:
        producer = graph.producer(node)
        if producer not in self.refused:
            self.refusals.append(graph.refused(producer, reason))
            self.refused.add(producer)
        self.stand_in(node)

    def stand_in(self, node: Node) -> None:
        """Something in the place of a refused result; the program is never built."""
        tensor = graph.results(node)[0]
        if graph.tensor_problem(tensor) is None:
            self.values[node] = Value(tuple(tensor.shape), graph.dtype_name(tensor), Int(0))
        else:
            self.values[node] = Value((), "f32", Int(0))
            self.unknown.add(node)

    # -------------------------------------------------------------------------------------------------------- what comes out

    def returned(self) -> list[Node]:
        """The nodes of the module's outputs, in order; what else ``forward`` returns or changes is refused."""
        output = self.nodes[-1]
        assert output.op == "output"
        results: Any = output.args[0]
        specs = list(zip(self.exported.graph_signature.output_specs, results, strict=True))
        for spec, _ in specs:
            if spec.kind != OutputKind.USER_OUTPUT:
                what = spec.kind.name.lower().replace("_", " ")
                self.refusals.append(Refused(what, "", (), f"forward changes {spec.target} in place"))
        found = [node for spec, node in specs if spec.kind == OutputKind.USER_OUTPUT]
        for number, node in enumerate(found):
            if not isinstance(node, Node):
                self.refusals.append(Refused("output", "", (), f"output {number} is the Python value {node!r}, not a tensor"))
        return [node for node in found if isinstance(node, Node)]

    def outputs(self, returned: Sequence[Node]) -> tuple[str, ...]:
        """The name of each output. A view, an input or a second use of one tensor is copied to a tensor of its own."""
        names: list[str] = []
        for node in returned:
            value = self.values[node]
            if not self.emitter.is_output(value) or value.reads in names:
                value = self.emitter.copy(value)
            names.append(value.reads)
        return tuple(names)
