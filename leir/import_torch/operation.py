"""One operator of the graph, as the translations see it: no PyTorch type in sight."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from leir.import_torch.emit import Accumulation, Emitter
from leir.import_torch.values import Shape, Value
from leir.ir import Expr

LOW_PRECISION = ("f16", "bf16")


@dataclass(frozen=True, slots=True)
class Operation:
    """``arguments`` are by the names and in the order of the operator's schema, defaults filled in, tensors as Values.

    ``shape`` and ``dtype`` are those of the (first) result. ``compared`` is the dtype to which PyTorch promotes the arguments,
    where the result's dtype does not tell: in comparisons. ``output``: the result is an output of the module.
    """

    name: str
    arguments: Mapping[str, Any]
    shape: Shape
    dtype: str
    compared: str
    output: bool

    def __getitem__(self, argument: str) -> Any:
        return self.arguments[argument]

    def result(self, emitter: Emitter, element: Expr, *, over: Shape = (), accumulate: Accumulation = "+") -> Value:
        """Emit the operation's last expression, which computes its result."""
        return emitter.expression(self.shape, self.dtype, element, over=over, accumulate=accumulate, output=self.output)


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The operator is known, and these arguments of it have no translation."""

    reason: str


Result: TypeAlias = Value | Unsupported
"""Of an operator with several results, the first; another one is refused where it is used."""

Translation: TypeAlias = Callable[[Operation, Emitter], Result]


def accumulator(dtype: str) -> str:
    """The dtype in which PyTorch accumulates values of ``dtype``."""
    return "f32" if dtype in LOW_PRECISION else dtype
