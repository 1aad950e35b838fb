"""Operators that only say where an element is read: they compose access maps, and emit nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from leir.import_torch.operation import Operation, Translation
from leir.import_torch.values import Value, expand, permute, reshape


def _permute(op: Operation) -> Value:
    return permute(op["self"], op["dims"])


def _transpose(op: Operation) -> Value:
    value: Value = op["self"]
    order = list(range(value.rank))
    if order:
        first, second = op["dim0"], op["dim1"]
        order[first], order[second] = order[second], order[first]
    return permute(value, order)


def _reversed(op: Operation) -> Value:
    value: Value = op["self"]
    return permute(value, range(value.rank)[::-1])


def _same_elements(op: Operation) -> Value:
    """Any operator that keeps the elements in row-major order; the result's shape says the rest."""
    return reshape(op["self"], op.shape)


def _expand(op: Operation) -> Value:
    return expand(op["self"], op.shape)


_RESHAPES: dict[str, Callable[[Operation], Value]] = dict.fromkeys(
    (
        "view.default",
        "reshape.default",
        "_unsafe_view.default",
        "flatten.using_ints",
        "unflatten.int",
        "squeeze.default",
        "squeeze.dim",
        "squeeze.dims",
        "unsqueeze.default",
    ),
    _same_elements,
)

_EXPANSIONS: dict[str, Callable[[Operation], Value]] = {"expand.default": _expand, "expand_as.default": _expand}

_PERMUTATIONS: dict[str, Callable[[Operation], Value]] = {
    "permute.default": _permute,
    "transpose.int": _transpose,
    "t.default": _reversed,
    "numpy_T.default": _reversed,
}


def _translation(fn: Callable[[Operation], Value]) -> Translation:
    return lambda op, emitter: fn(op)


VIEWS: Mapping[str, Translation] = {name: _translation(fn) for name, fn in (_RESHAPES | _EXPANSIONS | _PERMUTATIONS).items()}

IDENTITIES = frozenset({"alias.default", "clone.default", "contiguous.default", "detach.default", "lift_fresh_copy.default"})
"""Operators whose result is their first argument, to one who reads elements only."""

IDENTITIES_AT_SAME_SHAPE = frozenset({*_RESHAPES, *_EXPANSIONS})
"""Operators that are identities where the shape stays."""
