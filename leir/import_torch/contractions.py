"""Matrix products: one accumulating expression each, over broadcast batch dimensions."""

from __future__ import annotations

from collections.abc import Mapping

from leir.import_torch.emit import Emitter
from leir.import_torch.operation import Operation, Result, Translation, Unsupported, accumulator
from leir.import_torch.terms import Term
from leir.import_torch.values import Shape, Value, cast, expand, permute
from leir.ir import Expr, Index


def _product(left: Value, right: Value, dtype: str) -> tuple[Shape, Shape, Expr]:
    """The shape of ``left @ right``, the extent that it sums over, and the term of the sum, in ``dtype``.

    As `torch.matmul`: the last two dimensions are matrices, those before them are broadcast, a vector is a row on the left and a
    column on the right and drops out of the result.
    """
    rows = left.shape[-2:-1] if left.rank > 1 else ()
    columns = right.shape[-1:] if right.rank > 1 else ()
    inner = left.shape[-1]
    batch = _broadcast(left.shape[:-2], right.shape[:-2])
    shape = (*batch, *rows, *columns)
    outer = list(map(Index, range(len(batch))))
    row = [Index(len(batch))] if rows else []
    column = [Index(len(batch) + len(rows))] if columns else []
    k = Index(len(shape))
    left = expand(left, (*batch, *rows, inner)) if rows else left
    right = expand(right, (*batch, inner, *columns)) if columns else right
    extents = (*shape, inner)
    a = left.at([*(outer if rows else []), *row, k], extents)
    b = right.at([*(outer if columns else []), k, *column], extents)
    product = Term(cast(a, left.dtype, dtype)) * Term(cast(b, right.dtype, dtype))
    return shape, (inner,), product.expr


def _broadcast(left: Shape, right: Shape) -> Shape:
    rank = max(len(left), len(right))
    padded = [(1,) * (rank - len(shape)) + shape for shape in (left, right)]
    return tuple(max(pair) for pair in zip(*padded, strict=True))


def _contract(op: Operation, emitter: Emitter, left: Value, right: Value) -> Result:
    if op.dtype == "bool":
        return Unsupported("a matrix product in bool")
    wide = accumulator(op.dtype)
    shape, over, product = _product(left, right, wide)
    if wide == op.dtype:
        return op.result(emitter, product, over=over)
    total = emitter.expression(shape, wide, product, over=over)
    return op.result(emitter, cast(total.element, wide, op.dtype))


def _matmul(left: str, right: str) -> Translation:
    return lambda op, emitter: _contract(op, emitter, op[left], op[right])


def _linear(op: Operation, emitter: Emitter) -> Result:
    value: Value = op["input"]
    weight: Value = op["weight"]
    bias: Value | None = op["bias"]
    if weight.rank != 2:
        return Unsupported("a weight that is no matrix")
    weight = permute(weight, (1, 0))
    if bias is None:
        return _contract(op, emitter, value, weight)
    return _affine(op, emitter, value, weight, bias)


def _addmm(op: Operation, emitter: Emitter) -> Result:
    left, right = (op[name] for name in op.arguments if name.startswith(("mat", "batch", "vec")))
    return _affine(op, emitter, left, right, op["self"], op["alpha"], op["beta"])


def _affine(op: Operation, emitter: Emitter, left: Value, right: Value, bias: Value, alpha: float = 1, beta: float = 1) -> Result:
    """``(left @ right)*alpha+bias*beta``, rounded once at its end."""
    if op.dtype == "bool":
        return Unsupported("a matrix product in bool")
    wide = accumulator(op.dtype)
    shape, over, product = _product(left, right, wide)
    total = Term(emitter.expression(shape, wide, product, over=over).element)
    addend = Term(cast(expand(bias, op.shape).element, bias.dtype, wide))
    result = total if alpha == 1 else total * alpha
    if beta != 0:  # as PyTorch: with beta=0 the bias is not read, whatever it holds
        result = result + (addend if beta == 1 else addend * beta)
    return op.result(emitter, cast(result.expr, wide, op.dtype))


CONTRACTIONS: Mapping[str, Translation] = {
    "mm.default": _matmul("self", "mat2"),
    "bmm.default": _matmul("self", "mat2"),
    "mv.default": _matmul("self", "vec"),
    "dot.default": _matmul("self", "tensor"),
    "matmul.default": _matmul("self", "other"),
    "linear.default": _linear,
    "addmm.default": _addmm,
    "baddbmm.default": _addmm,
    "addmv.default": _addmm,
}
