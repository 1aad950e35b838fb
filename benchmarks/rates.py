"""Measures what `extract/devices/cpu.toml` states about this CPU, through TVM as programs run here: ``python -m benchmarks.rates``.

Every line is the fastest of several samples, in nanoseconds per element or line; the file's figures follow from these and say how.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.__main__ import show
from benchmarks.measure import Row
from benchmarks.schedules import program
from lower.outcome import Timing
from lower.verify import measure
from lower.workers import WorkerPool

CALLS = ("exp", "log", "sigmoid", "sin", "cos", "tanh", "erf")


def rows() -> list[Row]:
    with WorkerPool(workers=1) as pool:
        return [row for name, unit, count, tensors, text in probes() for row in _measured(pool, name, unit, count, tensors, text)]


def _measured(pool: WorkerPool, name: str, unit: str, count: int, tensors: str, text: str) -> Iterator[Row]:
    timing = measure(program(tensors, text), pool=pool, repeat=9, min_repeat_ms=5)
    if isinstance(timing, Timing):
        yield Row(name, timing.fastest_s / count * 1e12, f"ps/{unit}")


def probes() -> Iterator[tuple[str, str, int, str, str]]:
    """What is measured, what one iteration is, how many there are, and the program."""
    n = 4096
    for name, value in (
        ("add", "S()+X(a)"),
        ("multiply", "S()*X(a)"),
        ("multiply-add", "S()+X(a)*Y(a)"),
        ("maximum", "max(S(),X(a))"),
    ):
        yield f"chain of {name}", "link", n, f"X[{n}] Y[{n}] -> S[]", f"L{n}a [ S()={value}; ];"
    n = 65536
    for call in CALLS:
        argument = "abs(X(a))" if call == "log" else "X(a)"
        yield call, "element", n, f"X[{n}] -> E[{n}]", f"L{n}a [ E(a)={call}({argument}); ];"
    yield "pow", "element", n, f"X[{n}] Y[{n}] -> E[{n}]", f"L{n}a [ E(a)=abs(X(a))**Y(a); ];"
    yield "exp, summed", "element", n, f"X[{n}] -> S[]", f"L{n}a [ S()=S()+exp(X(a)); ];"
    n = 2048
    for name, value in (("copy", "X(a)"), ("division", "X(a)/Y(a)"), ("square root", "sqrt(X(a))")):
        yield f"{name}, 8 KiB", "element", n, f"X[{n}] Y[{n}] -> E[{n}]", f"L{n}a [ E(a)={value}; ];"
    for kib in (16, 128, 512, 4096, 8192, 131072):
        n = kib * 128
        yield f"read and write {kib:,} KiB", "element", n, f"X[{n}] -> E[{n}]", f"L{n}a [ E(a)=X(a)+1.0; ];"
    for height, width in ((2000, 500), (40000, 100), (400000, 50)):
        text = f"L{width}c L{height}a [ S(a)=S(a)+X(a,c); ];"
        yield (
            f"columns of {height:,} rows of {4 * width} bytes",
            "line",
            height * width,
            f"X[{height},{width}] -> S[{height}]",
            text,
        )
    for width in (128, 256, 512, 1024, 2048):
        tensors, count = f"X[{width},{width}] -> E[{width},{width}]", width**2
        yield f"columns read, stride {4 * width}", "line", count, tensors, f"L{width}a L{width}c [ E(a,c)=X(c,a); ];"
        yield f"columns written, stride {4 * width}", "line", count, tensors, f"L{width}a L{width}c [ E(c,a)=X(a,c); ];"
    for kind in ("L", "V"):
        text = f"L128a L32c {kind}16d [ E(a,c*16+d)=X(a,c*16+d)+1.0; ];"
        yield f"inner loop of 16, {kind}", "element", 65536, "X[128,512] -> E[128,512]", text
    yield "parallel loop", "start", 128, "X[128,512] -> E[128,512]", "L128a P4c L128d [ E(a,c*128+d)=X(a,c*128+d)+1.0; ];"


if __name__ == "__main__":
    show("rates", "Rates of this CPU, through TVM", rows(), as_json=False)
