"""Operators that reduce dimensions, and the normalisations that are made of reductions.

Sums of f16 and bf16 are accumulated in f32, as PyTorch does, and cast back in the expression that follows. A maximum is exact in
any dtype.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from leir.import_torch.emit import Accumulation, Emitter
from leir.import_torch.operation import Operation, Result, Translation, Unsupported, accumulator
from leir.import_torch.terms import Term, exp, log, sqrt
from leir.import_torch.values import Shape, Value, cast, expand
from leir.ir import Expr, Index


def _reduced(rank: int, dims: int | Sequence[int] | None) -> tuple[int, ...]:
    """The dimensions that are reduced, in order; none given means all."""
    if isinstance(dims, int):
        dims = (dims,)
    return tuple(sorted({dim % rank for dim in dims})) if dims and rank else tuple(range(rank))


def _spread(value: Value, dims: Sequence[int], keepdim: bool) -> tuple[Shape, Shape, Expr]:
    """The shape of a reduction's result, the extents that it runs over, and the element in the dimensions of both."""
    kept = [dim for dim in range(value.rank) if keepdim or dim not in dims]
    shape = tuple(1 if dim in dims else value.shape[dim] for dim in kept)
    over = tuple(value.shape[dim] for dim in dims)
    subscripts = [Index(len(shape) + dims.index(dim)) if dim in dims else Index(kept.index(dim)) for dim in range(value.rank)]
    return shape, over, value.at(subscripts, (*shape, *over))


def _reduce(
    value: Value, dims: Sequence[int], emitter: Emitter, *, dtype: str, accumulate: Accumulation = "+", keepdim: bool = True
) -> Value:
    """A temporary, in ``dtype``."""
    shape, over, element = _spread(value, dims, keepdim)
    return emitter.expression(shape, dtype, cast(element, value.dtype, dtype), over=over, accumulate=accumulate)


def _term(value: Value, shape: Shape, dtype: str) -> Term:
    """An element of ``value``, broadcast to ``shape``, in ``dtype``."""
    return Term(cast(expand(value, shape).element, value.dtype, dtype))


def _sum(op: Operation, emitter: Emitter) -> Result:
    value: Value = op["self"]
    if op.dtype == "bool":
        return Unsupported("a sum in bool")
    dims = _reduced(value.rank, op.arguments.get("dim"))
    keepdim = bool(op.arguments.get("keepdim", False))
    wide = accumulator(op.dtype)
    shape, over, element = _spread(value, dims, keepdim)
    element = cast(element, value.dtype, wide)
    if wide == op.dtype:
        return op.result(emitter, element, over=over)
    total = emitter.expression(shape, wide, element, over=over)
    return op.result(emitter, cast(total.element, wide, op.dtype))


def _mean(op: Operation, emitter: Emitter) -> Result:
    value: Value = op["self"]
    dims = _reduced(value.rank, op.arguments.get("dim"))
    wide = accumulator(op.dtype)
    total = _reduce(value, dims, emitter, dtype=wide, keepdim=bool(op.arguments.get("keepdim", False)))
    count = prod(value.shape[dim] for dim in dims)
    return op.result(emitter, cast((Term(total.element) / count).expr, wide, op.dtype))


def _extremum(accumulate: Accumulation) -> Translation:
    def translate(op: Operation, emitter: Emitter) -> Result:
        value: Value = op["self"]
        if op.dtype == "bool":
            return Unsupported("a maximum or minimum in bool")
        dims = _reduced(value.rank, op.arguments.get("dim"))
        _, over, element = _spread(value, dims, bool(op.arguments.get("keepdim", False)))
        return op.result(emitter, element, over=over, accumulate=accumulate)

    return translate


def _softmax(op: Operation, emitter: Emitter) -> Result:
    shifted, total = _shifted(op, emitter)
    return op.result(emitter, cast((exp(shifted) / total).expr, accumulator(op.dtype), op.dtype))


def _log_softmax(op: Operation, emitter: Emitter) -> Result:
    shifted, total = _shifted(op, emitter)
    return op.result(emitter, cast((shifted - log(total)).expr, accumulator(op.dtype), op.dtype))


def _shifted(op: Operation, emitter: Emitter) -> tuple[Term, Term]:
    """``x-max(x)``, and the sum of its exponentials, over the dimension: elements in the shape of the result, widened."""
    value: Value = op["self"]
    if value.dtype != op.dtype:  # softmax(x, dim, dtype=...) converts first
        value = Value(value.shape, op.dtype, cast(value.element, value.dtype, op.dtype))
    wide = accumulator(op.dtype)
    dims = _reduced(value.rank, op["dim"])
    largest = _reduce(value, dims, emitter, dtype=op.dtype, accumulate="max")
    shifted = _term(value, op.shape, wide) - _term(largest, op.shape, wide)
    total = _reduce(Value(op.shape, wide, exp(shifted).expr), dims, emitter, dtype=wide)
    return shifted, _term(total, op.shape, wide)


def _layer_norm(op: Operation, emitter: Emitter) -> Result:
    value: Value = op["input"]
    weight: Value | None = op["weight"]
    bias: Value | None = op["bias"]
    wide = accumulator(op.dtype)
    first = value.rank - len(op["normalized_shape"])
    dims = tuple(range(first, value.rank))
    count = prod(value.shape[first:])
    x = _term(value, value.shape, wide)
    total = _reduce(value, dims, emitter, dtype=wide)
    mean = emitter.expression(total.shape, wide, (Term(total.element) / count).expr)
    centred = x - _term(mean, value.shape, wide)
    squares = _reduce(Value(value.shape, wide, (centred**2).expr), dims, emitter, dtype=wide)
    result = centred / sqrt(_term(squares, value.shape, wide) / count + op["eps"])
    if weight is not None:
        result = result * _term(weight, value.shape, wide)
    if bias is not None:
        result = result + _term(bias, value.shape, wide)
    return op.result(emitter, cast(result.expr, wide, op.dtype))


REDUCTIONS: Mapping[str, Translation] = {
    "sum.default": _sum,
    "sum.dim_IntList": _sum,
    "mean.default": _mean,
    "mean.dim": _mean,
    "amax.default": _extremum("max"),
    "amin.default": _extremum("min"),
    "max.default": _extremum("max"),
    "min.default": _extremum("min"),
    "max.dim": _extremum("max"),
    "min.dim": _extremum("min"),
    "softmax.int": _softmax,
    "_softmax.default": _softmax,
    "log_softmax.int": _log_softmax,
    "_log_softmax.default": _log_softmax,
    "layer_norm.default": _layer_norm,
}
