"""Spearman's rank correlation, the measure of a cost model that only has to order candidates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The correlation of the ranks of two samples of equal length, ties at their mean rank; None where a sample has no order (fewer
    than two values, or all equal)."""
    if len(first) < 2:
        return None
    a, b = _ranks(first), _ranks(second)
    if a.std() == 0 or b.std() == 0:
        return None
    return float(np.corrcoef(a, b)[0, 1])


def _ranks(values: Sequence[float]) -> np.ndarray:
    data = np.asarray(values, dtype=np.float64)
    _, inverse, counts = np.unique(data, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean = last - (counts - 1) / 2
    return np.asarray(mean[inverse], dtype=np.float64)
