"""The comparison that these tests stand on: the interpreter on an imported module, against PyTorch on the module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from leir.check import check
from leir.import_torch import Import, ImportRefused, Refused, import_module
from leir.import_torch.importer import array
from leir.interpret import interpret
from leir.parser import parse
from leir.printer import print_program

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

# Two or three units in the last place of the larger of 1 and the reference: both sides round once per operator, but sum in
# different orders and have different exp.
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 1e-6, torch.float64: 1e-14}


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, *inputs: Any) -> Any:
        return self.fn(*inputs)


def as_module(fn: torch.nn.Module | Callable[..., Any]) -> torch.nn.Module:
    return fn if isinstance(fn, torch.nn.Module) else Function(fn)


def randomise(module: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    """Parameters and float buffers from N(0, 1): a scale of 1 and a shift of 0 would hide that they are not read."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.is_floating_point():
                tensor.copy_(torch.randn(tensor.shape, generator=generator))
    return module


def randn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + 1000 * len(shape) + sum(shape))).to(dtype)


def agrees(fn: torch.nn.Module | Callable[..., Any], *inputs: Any, scale: float = 1.0) -> Import:
    """Import, check, interpret and compare every output; ``scale`` widens the tolerance (long reductions)."""
    module = as_module(fn)
    imported = import_module(module, inputs)
    program = imported.program
    assert [d for d in check(program) if d.severity == "error"] == []
    assert parse(print_program(program), program.signature) == program
    found = interpret(program, imported.arguments(inputs))
    with torch.no_grad():
        expected = pytree.tree_leaves(module.eval()(*inputs))
    assert len(imported.outputs) == len(expected)
    for number, (name, reference) in enumerate(zip(imported.outputs, expected, strict=True)):
        result, wanted = found[name], array(reference)
        assert result.shape == wanted.shape, (number, result.shape, wanted.shape)
        assert result.dtype == wanted.dtype, (number, result.dtype, wanted.dtype)
        if not reference.is_floating_point():
            np.testing.assert_array_equal(result, wanted, err_msg=f"output {number}")
            continue
        assert np.ptp(wanted) > 0.01 or wanted.size == 1, f"output {number} is constant, which is no evidence"
        bound = TOLERANCE[reference.dtype] * scale
        np.testing.assert_allclose(
            result.astype(np.float64), wanted.astype(np.float64), rtol=bound, atol=bound, err_msg=f"output {number}"
        )
    return imported


def text(fn: torch.nn.Module | Callable[..., Any], *inputs: Any, **options: Any) -> str:
    return print_program(import_module(as_module(fn), inputs, **options).program)


def refusals(fn: torch.nn.Module | Callable[..., Any], *inputs: Any) -> tuple[Refused, ...]:
    try:
        import_module(as_module(fn), inputs)
    except ImportRefused as refused:
        return refused.reasons
    raise AssertionError("the module was imported")


def names(reasons: Sequence[Refused]) -> list[str]:
    return [reason.op for reason in reasons]
