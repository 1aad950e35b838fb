"""Comparing the outputs of two programs on one draw (no processes, no TVM: arrays in, findings out)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leir.interpret import bits
from leir.ir import FLOAT_DTYPES, Known
from lower.error_bound import LEAST, UNIT_ROUNDOFF

Array = NDArray[Any]
INFORMATIVE = 0.25
"""A tolerance above this share of a tensor's largest value tells right from wrong no more; such an element is left out."""


@dataclass(frozen=True, slots=True)
class Place:
    """One element that was compared. ``tolerance`` is 0 where bits had to agree."""

    draw: str
    tensor: str
    index: tuple[int, ...]
    got: float
    expected: float
    tolerance: float


@dataclass(frozen=True, slots=True)
class Finding:
    """What one comparison found. Errors are those of the second program against the f64 reference; ``share`` is how much of its
    tolerance the worst place used up (in ulp, where the tolerance is zero)."""

    elements: int = 0
    compared: int = 0
    mismatches: int = 0
    max_ulp: float = 0.0
    max_abs: float = 0.0
    max_rel: float = 0.0
    worst: Place | None = None
    share: float = -1.0

    def joined(self, other: Finding) -> Finding:
        """Both findings in one; a mismatch is worse than none, then the larger share, then the earlier."""
        first = self if (self.mismatches > 0, self.share) >= (other.mismatches > 0, other.share) else other
        return Finding(
            self.elements + other.elements,
            self.compared + other.compared,
            self.mismatches + other.mismatches,
            max(self.max_ulp, other.max_ulp),
            max(self.max_abs, other.max_abs),
            max(self.max_rel, other.max_rel),
            first.worst,
            first.share,
        )


def compare_bits(tensor: Known, draw: str, a: Array, b: Array, reference: Array) -> Finding:
    """Every element of ``b`` must have the bits of ``a``, all NaNs alike. Elements that are finite in ``a`` count as compared."""
    wrong = np.asarray(bits(a) != bits(b))
    finite = np.isfinite(a) if a.dtype.kind == "f" else np.ones(a.shape, np.bool_)
    return _finding(tensor, draw, b, a.astype(np.float64), reference, finite, wrong, np.zeros(a.shape))


def compare_within(
    tensor: Known, draw: str, a: Array, b: Array, reference: Array, bound: Array | None, *, allow_overflow: bool = False
) -> Finding:
    """``b`` must stay within ``bound`` of the f64 ``reference``; integers and bools must equal ``a``.

    Left out is what says nothing: where the reference or ``a`` is not finite, where the bound is infinite or not informative, and,
    with ``allow_overflow``, where ``b`` is not finite.
    """
    if tensor.dtype not in FLOAT_DTYPES or bound is None:
        return compare_bits(tensor, draw, a, b, reference)
    finite = np.isfinite(reference) & np.isfinite(a)
    largest = np.max(np.abs(reference), where=finite, initial=0.0)
    with np.errstate(all="ignore"):
        compared = finite & (bound <= INFORMATIVE * np.maximum(largest, LEAST[tensor.dtype]))
        if allow_overflow:
            compared &= np.isfinite(b)
        wrong = compared & ~(np.abs(b.astype(np.float64) - reference) <= bound)
    return _finding(tensor, draw, b, reference, reference, compared, wrong, bound)


def within(tensor: Known, a: Array, reference: Array, bound: Array | None) -> bool:
    """Whether the run ``a`` and the interpreter agree within the run's own bound: two oracles that share no code."""
    if tensor.dtype not in FLOAT_DTYPES or bound is None:
        return bool(np.array_equal(a, reference))
    with np.errstate(all="ignore"):
        comparable = np.isfinite(reference) & np.isfinite(a) & np.isfinite(bound)
        return bool(np.all(~comparable | (np.abs(a.astype(np.float64) - reference) <= bound)))


def ulp(values: Array, dtype: str) -> Array:
    """The distance between neighbouring numbers of ``dtype`` at ``values`` (f64)."""
    exponent = np.frexp(np.abs(values))[1]
    return np.asarray(np.maximum(np.ldexp(2 * UNIT_ROUNDOFF[dtype], exponent - 1), LEAST[dtype]))


def smallest_normal(dtype: str) -> float:
    """Below it, numbers of ``dtype`` lose digits, and a relative error says little. 1 for integers and bools."""
    return LEAST[dtype] / (2 * UNIT_ROUNDOFF[dtype]) if dtype in FLOAT_DTYPES else 1.0


def _finding(
    tensor: Known, draw: str, b: Array, expected: Array, reference: Array, compared: Array, wrong: Array, tolerance: Array
) -> Finding:
    got = b.astype(np.float64)
    counted = compared | wrong
    if not np.any(counted):
        return Finding(elements=b.size)
    with np.errstate(all="ignore"):
        measurable = compared & np.isfinite(got) & np.isfinite(reference)
        error = np.where(measurable, np.abs(got - reference), 0.0)
        relative = error / np.maximum(np.abs(np.where(measurable, reference, 1.0)), smallest_normal(tensor.dtype))
        ulps = error / ulp(np.where(measurable, reference, 1.0), tensor.dtype) if tensor.dtype in FLOAT_DTYPES else error
        share = np.where(tolerance > 0, error / tolerance, ulps)
    share = np.where(np.isnan(share) | (wrong & ~measurable), np.inf, share)
    share = np.where(wrong if np.any(wrong) else counted, share, -1.0)  # of wrong elements the worst, else of all
    index = tuple(int(k) for k in np.unravel_index(int(np.argmax(share)), b.shape))
    place = Place(draw, tensor.name, index, float(got[index]), float(expected[index]), float(tolerance[index]))
    return Finding(
        elements=b.size,
        compared=int(np.count_nonzero(compared)),
        mismatches=int(np.count_nonzero(wrong)),
        max_ulp=float(ulps.max()),
        max_abs=float(error.max()),
        max_rel=float(relative.max()),
        worst=place,
        share=float(share[index]),
    )


def summed(dtype: str, own: Array | None, of_reference: Array | None) -> Array | None:
    """The tolerance from a program's own bound. The reference rounds too, in f64; for f64 outputs its bound comes on top."""
    return own + of_reference if dtype == "f64" and own is not None and of_reference is not None else own
