"""PyTorch's side: a module becomes a functional graph of ATen operators, and each of its nodes an `Operation`."""

from __future__ import annotations

import io
import operator
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import torch
from torch.export.exported_program import ExportedProgram
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from leir.import_torch import decompositions
from leir.import_torch.operation import Operation
from leir.import_torch.report import ImportRefused, Refused
from leir.import_torch.views import IDENTITIES, IDENTITIES_AT_SAME_SHAPE

DTYPES = {
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.int8: "i8",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.bool: "bool",
}

_TORCH = str(Path(torch.__file__).parent)
_HERE = str(Path(__file__).parent)
_NO_OPERATION = ("aten._assert_", "aten.sym_constrain_")


def export(module: torch.nn.Module, inputs: tuple[Any, ...]) -> ExportedProgram:
    """The functional graph of ``module`` in eval mode, decomposed by our table.

    Raises ImportRefused where PyTorch itself cannot trace the module: control flow on data, or an error of its own code.
    """
    said = io.StringIO()
    with warnings.catch_warnings(), redirect_stderr(said), _evaluating(module), torch.no_grad():
        # Copying a graph trips over PyTorch's own deprecation; nobody who imports a module can do anything about it.
        warnings.filterwarnings("ignore", r"`isinstance\(treespec, LeafSpec\)` is deprecated", FutureWarning)
        try:
            exported = torch.export.export(module, inputs, strict=False)
            functional: ExportedProgram = exported.run_decompositions(decompositions.table())
        except Exception as problem:  # PyTorch has printed the graph so far; the refusal says what matters
            raise ImportRefused(type(module).__name__, (_untraceable(problem),)) from problem
    sys.stderr.write(said.getvalue())
    return functional


def _untraceable(problem: Exception) -> Refused:
    if isinstance(problem, GuardOnDataDependentSymNode):
        reason = "control flow or a shape depends on data"
    else:
        reason = f"{type(problem).__name__} while PyTorch traced it: {str(problem).strip().partition(chr(10))[0]}"
    frames = [f for f in traceback.extract_tb(problem.__traceback__) if not f.filename.startswith((_TORCH, _HERE))]
    line = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}: {frames[-1].line}" if frames else ""
    return Refused("torch.export", "", (), reason, line)


@contextmanager
def _evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Every submodule in eval mode, and as it was afterwards."""
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in before:
            part.training = training


# ----------------------------------------------------------------------------------------------------------------------- nodes


def operator_name(node: Node) -> str:
    """``add.Tensor``, or the full name of what is no ATen operator."""
    return full_name(node).removeprefix("aten.")


def full_name(node: Node) -> str:
    """``aten.add.Tensor``."""
    if isinstance(node.target, torch._ops.OpOverload):
        return str(node.target)
    return getattr(node.target, "__name__", str(node.target))


def computes(node: Node) -> bool:
    """Whether the node is an operator whose result somebody uses."""
    return node.op == "call_function" and bool(node.users) and not full_name(node).startswith(_NO_OPERATION)


def source(node: Node) -> Node:
    """The node whose elements ``node`` has: the node itself, but for operators that change none and for first results."""
    while node.op == "call_function":
        if not (is_first_result(node) or _changes_nothing(node)):
            break
        node = _node(node.args[0])
    return node


def is_result(node: Node) -> bool:
    """Whether the node picks one result of an operator that has several."""
    return node.target is operator.getitem


def is_first_result(node: Node) -> bool:
    return is_result(node) and bool(node.args[1] == 0)


def producer(node: Node) -> Node:
    """The operator behind a result."""
    return _node(node.args[0]) if is_result(node) else node


def _changes_nothing(node: Node) -> bool:
    name = operator_name(node)
    if name in IDENTITIES:
        return True
    if name == "dropout.default":
        return node.args[2] is False
    if name not in IDENTITIES_AT_SAME_SHAPE and name != "_to_copy.default":
        return False
    before, after = _node(node.args[0]).meta["val"], node.meta["val"]
    return bool(before.shape == after.shape and before.dtype == after.dtype)


def _node(argument: Any) -> Node:
    assert isinstance(argument, Node)
    return argument


def operation(node: Node, value_of: Callable[[Node], Any], output: bool) -> Operation:
    """The node as the translations see it; ``value_of`` gives the Value of an argument's node."""
    target = node.target
    assert isinstance(target, torch._ops.OpOverload)
    arguments: dict[str, Any] = {}
    for position, parameter in enumerate(target._schema.arguments):
        if position < len(node.args):
            given = node.args[position]
        elif parameter.name in node.kwargs:
            given = node.kwargs[parameter.name]
        else:
            given = parameter.default_value
        arguments[parameter.name] = torch.fx.node.map_arg(given, value_of)
    first = results(node)[0]
    return Operation(operator_name(node), arguments, tuple(first.shape), dtype_name(first), _compared(node), output)


def _compared(node: Node) -> str:
    operands: list[Any] = [arg.meta["val"] if isinstance(arg, Node) else arg for arg in node.args[:2]]
    numeric = len(operands) == 2 and all(isinstance(x, torch.Tensor | int | float) for x in operands)
    if not numeric or not any(isinstance(x, torch.Tensor) for x in operands):
        return ""
    return DTYPES.get(torch.result_type(*operands), "")


def results(node: Node) -> tuple[Any, ...]:
    """The fake tensors that the node computes."""
    value = node.meta.get("val")
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def is_tensor(node: Node) -> bool:
    return isinstance(results(node)[0], torch.Tensor)


def dtype_name(tensor: Any) -> str:
    return DTYPES[tensor.dtype]


def tensor_problem(tensor: Any) -> str | None:
    """Why LEIR has no such tensor, or None."""
    if not isinstance(tensor, torch.Tensor):
        return f"the result {tensor!r} is no tensor"
    if tensor.is_sparse or tensor.is_quantized or tensor.dtype not in DTYPES:
        return f"LEIR has no tensors of {tensor.dtype}".replace("torch.", "")
    if not all(isinstance(extent, int) for extent in tensor.shape):
        return "the shape depends on data"
    return "a tensor without elements" if 0 in tensor.shape else None


# ------------------------------------------------------------------------------------------------------------------- refusals


def refused(node: Node, reason: str) -> Refused:
    """The refusal of a node, with its place in the module."""
    stack = node.meta.get("nn_module_stack") or {}
    path = next(reversed(stack.values()))[0] if stack else ""
    shapes = tuple(described(arg.meta["val"]) for arg in node.all_input_nodes if isinstance(arg.meta.get("val"), torch.Tensor))
    return Refused(full_name(node), path, shapes, reason, _line(node.meta.get("stack_trace") or ""))


def described(tensor: Any) -> str:
    """``f32[3,4]``."""
    dtype = DTYPES.get(tensor.dtype, str(tensor.dtype).removeprefix("torch."))
    return f"{dtype}[{','.join(str(extent) for extent in tensor.shape)}]"


def _line(stack_trace: str) -> str:
    """The innermost line of the trace that is not PyTorch's own: ``model.py:12: y=torch.sort(x)``."""
    found = ""
    lines: Sequence[str] = stack_trace.splitlines()
    for number, line in enumerate(lines):
        frame = line.strip()
        if not frame.startswith('File "'):
            continue
        file, _, rest = frame.removeprefix('File "').partition('", line ')
        code = lines[number + 1].strip() if number + 1 < len(lines) else ""
        if not file.startswith(_TORCH):
            found = f"{Path(file).name}:{rest.partition(',')[0]}: {code}"
    return found
