"""Best-so-far curves as a picture. The only module that knows matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike

import matplotlib as mpl
from matplotlib.figure import Figure

Curve = Sequence[tuple[int, float]]
"""(evaluated programs, seconds of the best so far), increasing; the first is the original's, at 0."""


def plot_curves(curves: Mapping[str, Curve], path: str | PathLike[str], title: str) -> None:
    """Writes a step plot; the suffix of ``path``, .svg or .png, decides the format. The same curves give the same file."""
    with mpl.rc_context({"svg.hashsalt": "leir", "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(7.5, 4.5), layout="constrained")
        axes = figure.add_subplot()
        last = max(n for curve in curves.values() for n, _ in curve)
        for number, (label, curve) in enumerate(curves.items()):
            xs, ys = zip(*curve, strict=True)
            style = ("-", "--", "-.", ":")[number % 4]
            axes.step(xs, [y * 1e6 for y in ys], where="post", label=label, linestyle=style, marker="o", markersize=3)
        axes.set_xlim(0, max(last, 1))
        axes.set_yscale("log")
        axes.set_xlabel("evaluated programs")
        axes.set_ylabel("best so far, microseconds")
        axes.set_title(title)
        axes.grid(visible=True, which="both", alpha=0.3)
        axes.legend()
        figure.savefig(path, metadata={"Date": None} if str(path).endswith(".svg") else None)
