"""Operators that act element by element: a table of formulas, one expression each.

A formula's arguments are those of the operator's schema, in its order: tensors as terms, in the dtype in which PyTorch computes,
and numbers as Python's. The formulas are those of PyTorch's own kernels, so that rounding agrees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from leir.elaborate import TypingError, elaborate_value
from leir.import_torch.emit import Emitter
from leir.import_torch.operation import LOW_PRECISION, Operation, Result, Translation, Unsupported
from leir.import_torch.terms import (
    Number,
    Operand,
    Term,
    absolute,
    call,
    compare,
    erf,
    exp,
    expression,
    log,
    maximum,
    minimum,
    rounds_once,
    sigmoid,
    sqrt,
    tanh,
    where,
)
from leir.import_torch.values import Value, cast, expand
from leir.ir import INT_DTYPES, Expr

Formula = Callable[..., Term]


def _times(x: Operand, factor: Number) -> Any:
    return x if factor == 1 else x * factor


def _elu(x: Term, alpha: Number, scale: Number, input_scale: Number) -> Term:
    return where(compare(">", x, 0), _times(x, scale), (exp(_times(x, input_scale)) - 1) * (alpha * scale))


def _gelu(x: Term, approximate: str) -> Term:
    if approximate == "tanh":
        return x * 0.5 * (1 + tanh((x + x**3 * 0.044715) * math.sqrt(2 / math.pi)))
    return x * 0.5 * (1 + erf(x * math.sqrt(0.5)))


def _softplus(x: Term, beta: Number, threshold: Number) -> Term:
    soft = log(1 + exp(_times(x, beta)))
    return where(compare(">", _times(x, beta), threshold), x, soft if beta == 1 else soft / beta)


def _clamp(x: Term, low: Operand | None = None, high: Operand | None = None) -> Term:
    x = x if low is None else maximum(x, low)
    return x if high is None else minimum(x, high)


def _power(x: Term, exponent: Operand) -> Term:
    if exponent == 0.5:
        return sqrt(x)  # as PyTorch does; x**0.5 differs at -inf and -0
    if exponent == 1:
        return x
    return 1 / x if exponent == -1 else x**exponent


def _selu(x: Term) -> Term:
    return _elu(x, 1.6732632423543772, 1.0507009873554805, 1)


def _unary(fn: str) -> Formula:
    return lambda x: call(fn, x)


# Computed in the dtype of the result.
ARITHMETIC: Mapping[str, Formula] = {
    "add.Tensor": lambda x, y, alpha: x + _times(y, alpha),
    "add.Scalar": lambda x, y, alpha: x + y * alpha,
    "sub.Tensor": lambda x, y, alpha: x - _times(y, alpha),
    "sub.Scalar": lambda x, y, alpha: x - y * alpha,
    "rsub.Tensor": lambda x, y, alpha: y - _times(x, alpha),
    "rsub.Scalar": lambda x, y, alpha: y - _times(x, alpha),
    "mul.Tensor": lambda x, y: x * y,
    "mul.Scalar": lambda x, y: x * y,
    "div.Tensor": lambda x, y: x / y,
    "div.Scalar": lambda x, y: x / y,
    "neg.default": lambda x: -x,
    "abs.default": absolute,
    "reciprocal.default": lambda x: 1 / x,
    "square.default": lambda x: x**2,
    "sqrt.default": sqrt,
    "rsqrt.default": lambda x: 1 / sqrt(x),
    "exp.default": exp,
    "log.default": log,
    "pow.Tensor_Scalar": _power,
    "pow.Tensor_Tensor": lambda x, y: x**y,
    "pow.Scalar": lambda x, y: x**y,
    **{f"{fn}.default": _unary(fn) for fn in ("sin", "cos", "floor", "ceil", "erf", "tanh", "sigmoid")},
    "maximum.default": maximum,
    "minimum.default": minimum,
    "max.other": maximum,
    "min.other": minimum,
    "clamp.default": _clamp,
    "clamp.Tensor": _clamp,
    "clamp_min.default": _clamp,
    "clamp_min.Tensor": _clamp,
    "clamp_max.default": lambda x, high: _clamp(x, None, high),
    "clamp_max.Tensor": lambda x, high: _clamp(x, None, high),
    "relu.default": lambda x: maximum(x, 0),
    "relu6.default": lambda x: _clamp(x, 0, 6),
    "hardtanh.default": _clamp,
    "hardsigmoid.default": lambda x: _clamp(x + 3, 0, 6) / 6,
    "hardswish.default": lambda x: x * _clamp(x + 3, 0, 6) / 6,
    "leaky_relu.default": lambda x, slope: where(compare(">", x, 0), x, x * slope),
    "_prelu_kernel.default": lambda x, slope: where(compare(">", x, 0), x, x * slope),
    "threshold.default": lambda x, threshold, value: where(compare("<=", x, threshold), value, x),
    "elu.default": _elu,
    "selu.default": _selu,
    "celu.default": lambda x, alpha: _elu(x, alpha, 1, 1 / alpha),
    "gelu.default": _gelu,
    "silu.default": lambda x: x * sigmoid(x),
    "mish.default": lambda x: x * tanh(log(1 + exp(x))),
    "softplus.default": _softplus,
    "log_sigmoid.default": lambda x: minimum(x, 0) - log(1 + exp(-absolute(x))),
}

_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}

# Computed in the dtype to which the operands are promoted; the result is bool.
COMPARISON: Mapping[str, Formula] = {
    f"{name}.{overload}": (lambda x, y, op=op: compare(op, x, y))
    for name, op in _COMPARISONS.items()
    for overload in ("Tensor", "Scalar")
}

# On bool.
LOGIC: Mapping[str, Formula] = {
    "logical_not.default": lambda x: ~x,
    "logical_and.default": lambda x, y: x & y,
    "logical_or.default": lambda x, y: x | y,
    "bitwise_not.default": lambda x: ~x,
    "bitwise_and.Tensor": lambda x, y: x & y,
    "bitwise_or.Tensor": lambda x, y: x | y,
    "__and__.Tensor": lambda x, y: x & y,
    "__or__.Tensor": lambda x, y: x | y,
}

# The first argument is the condition.
SELECTION: Mapping[str, Formula] = {
    "where.self": where,
    "where.ScalarSelf": where,
    "where.ScalarOther": where,
    "where.Scalar": where,
}


def _translate(op: Operation, emitter: Emitter, formula: Formula, dtypes: Callable[[int], str]) -> Result:
    """One expression by ``formula``; ``dtypes(k)`` is the dtype in which argument ``k`` is wanted."""
    bad = next((a for a in op.arguments.values() if isinstance(a, complex) or (isinstance(a, float) and math.isnan(a))), None)
    if bad is not None:
        return Unsupported(f"the constant {bad} has no literal in LEIR")
    element = _apply(op, formula, dtypes)
    if op.dtype in LOW_PRECISION and not rounds_once(element, op.dtype):
        wide = _apply(op, formula, lambda k: "f32" if dtypes(k) in LOW_PRECISION else dtypes(k))
        element = cast(wide, "f32", op.dtype)
    try:
        elaborate_value(element, op.dtype)
    except TypingError as problem:
        return Unsupported(f"{problem}: PyTorch computes this in {op.dtype}, and LEIR does not")
    return op.result(emitter, element)


def _apply(op: Operation, formula: Formula, dtypes: Callable[[int], str]) -> Expr:
    arguments: list[Any] = []
    for position, argument in enumerate(op.arguments.values()):
        if isinstance(argument, Value):
            arguments.append(Term(_element(argument, op, dtypes(position))))
        else:
            arguments.append(int(argument) if isinstance(argument, bool) else argument)
    return expression(formula(*arguments))


def _element(value: Value, op: Operation, dtype: str) -> Expr:
    return cast(expand(value, op.shape).element, value.dtype, dtype)


def _arithmetic(formula: Formula) -> Translation:
    def translate(op: Operation, emitter: Emitter) -> Result:
        if op.dtype in INT_DTYPES and op.name.startswith("pow."):
            return Unsupported("a power of integers")
        return _translate(op, emitter, formula, lambda _: op.dtype)

    return translate


def _comparison(formula: Formula) -> Translation:
    return lambda op, emitter: _translate(op, emitter, formula, lambda _: op.compared)


def _logic(formula: Formula) -> Translation:
    def translate(op: Operation, emitter: Emitter) -> Result:
        if any(isinstance(a, Value) and a.dtype != "bool" for a in op.arguments.values()):
            return Unsupported("bits of integers; only bool is translated")
        return _translate(op, emitter, formula, lambda _: "bool")

    return translate


def _selection(formula: Formula) -> Translation:
    return lambda op, emitter: _translate(op, emitter, formula, lambda k: op.dtype if k else "bool")


def _masked_fill(op: Operation, emitter: Emitter) -> Result:
    def fill(x: Term, mask: Term, value: Operand) -> Term:
        return where(mask, value, x)

    return _translate(op, emitter, fill, lambda k: "bool" if k == 1 else op.dtype)


def _to_copy(op: Operation, emitter: Emitter) -> Result:
    value: Value = op["self"]
    return op.result(emitter, cast(value.element, value.dtype, op.dtype))


POINTWISE: Mapping[str, Translation] = {
    **{name: _arithmetic(formula) for name, formula in ARITHMETIC.items()},
    **{name: _comparison(formula) for name, formula in COMPARISON.items()},
    **{name: _logic(formula) for name, formula in LOGIC.items()},
    **{name: _selection(formula) for name, formula in SELECTION.items()},
    "masked_fill.Scalar": _masked_fill,
    "masked_fill.Tensor": _masked_fill,
    "_to_copy.default": _to_copy,
}
