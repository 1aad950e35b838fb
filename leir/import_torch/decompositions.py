"""The fixed decomposition table: operators that PyTorch's graph holds whole and that are several operators to us.

What has a translation of its own (`leir.import_torch.translations`) stays whole, so that a softmax or a matrix product keeps its
shape; an operator in neither table is refused. PyTorch's default table is not used: it takes contractions and norms apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten


def _addcmul(x: Any, y: Any, z: Any, *, value: float = 1) -> Any:
    return aten.add.Tensor(x, aten.mul.Tensor(y, z), alpha=value)


def _addcdiv(x: Any, y: Any, z: Any, *, value: float = 1) -> Any:
    return aten.add.Tensor(x, aten.div.Tensor(y, z), alpha=value)


def _prelu(x: Any, weight: Any) -> Any:
    """The weight is per channel, which is dimension 1."""
    if weight.numel() > 1:
        weight = aten.view.default(weight, [-1, *([1] * (x.dim() - 2))])
    else:
        weight = aten.view.default(weight, [1] * x.dim())
    return aten._prelu_kernel.default(x, weight)


def table() -> dict[Any, Callable[..., Any]]:
    """A fresh copy of the table, as `torch.export.ExportedProgram.run_decompositions` takes it."""
    return {
        aten.addcmul.default: _addcmul,
        aten.addcdiv.default: _addcdiv,
        aten.prelu.default: _prelu,
    }
