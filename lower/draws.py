"""Inputs for checks: the same bytes for the same signature, seed and kind, on every machine and in every process."""

from __future__ import annotations

import zlib
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from leir.ir import FLOAT_DTYPES, Known, Signature
from leir.scalars import STORAGE, integer_bounds, rounded

Kind: TypeAlias = Literal["normal", "positive", "adversarial", "special"]
KINDS: tuple[Kind, ...] = ("normal", "positive", "adversarial")
"""The draws of a verification, in order."""

_LARGE = {"f16": 60.0, "bf16": 1e4, "f32": 1e4, "f64": 1e8}
_TINY = {"f16": 1e-4, "bf16": 1e-12, "f32": 1e-12, "f64": 1e-100}
_INTEGER_SPAN = (-5, 5)


def draw_inputs(signature: Signature, seed: int, kind: Kind) -> dict[str, NDArray[Any]]:
    """Values for every known tensor that is no output, in storage dtypes (`leir.scalars`).

    * ``normal``: standard normal;
    * ``positive``: uniform in [0.25, 1.75], so that logarithms and roots are defined;
    * ``adversarial``: normal values, among them zeros of both signs, exact duplicates, and magnitudes far apart: a quarter near the
      largest whose square is still comfortable in the dtype, a quarter tiny;
    * ``special``: adversarial, with infinities, NaN and subnormals among them.

    Integers are uniform over their `range`; without one over [-5, 5], and ``special`` adds the extremes of the dtype. A tensor's
    values depend on its own name, shape and dtype, not on the other tensors.
    """
    return {
        t.name: _values(t, np.random.default_rng([seed, zlib.crc32(f"{kind} {t.name}".encode())]), kind) for t in signature.inputs
    }


def _values(tensor: Known, rng: Generator, kind: Kind) -> NDArray[Any]:
    if tensor.dtype == "bool":
        return rng.integers(0, 2, tensor.shape).astype(np.bool_)
    if tensor.dtype in FLOAT_DTYPES:
        # 0-d arrays stay arrays
        return np.asarray(rounded(_floats(tensor.dtype, tensor.shape, rng, kind), tensor.dtype), STORAGE[tensor.dtype])
    low, high = tensor.range or _INTEGER_SPAN
    values = np.asarray(rng.integers(low, high, tensor.shape, dtype=np.int64, endpoint=True))
    if kind == "special" and tensor.range is None:
        least, greatest = integer_bounds(tensor.dtype)
        values = np.where(rng.random(tensor.shape) < 0.25, rng.choice([least, greatest, 0, -1], tensor.shape), values)
    return values.astype(STORAGE[tensor.dtype])


def _floats(dtype: str, shape: tuple[int, ...], rng: Generator, kind: Kind) -> NDArray[np.float64]:
    if kind == "positive":
        return np.asarray(rng.uniform(0.25, 1.75, shape))
    values = np.asarray(rng.standard_normal(shape))
    if kind == "normal":
        return values
    which = rng.random(shape)
    values = np.where(which < 0.25, values * _LARGE[dtype], values)
    values = np.where((which >= 0.25) & (which < 0.5), values * _TINY[dtype], values)
    values = np.where((which >= 0.5) & (which < 0.6), rng.choice([0.0, -0.0], shape), values)
    values = np.where((which >= 0.6) & (which < 0.75), rng.choice([1.0, -1.0, 0.5], shape), values)
    if kind == "special":
        subnormal = {"f16": 6e-8, "bf16": 1e-39, "f32": 1e-44, "f64": 5e-324}[dtype]
        strange = rng.choice([np.inf, -np.inf, np.nan, subnormal, -subnormal], shape)
        values = np.where(rng.random(shape) < 0.2, strange, values)
    return np.asarray(values)
