"""Extracted CPU programs beside their originals and beside TVM MetaSchedule, each given the same wall-clock time.

Ours: saturation, extraction, replay, verification and timing of the candidates. MetaSchedule: tuning for as long as that took. Not
part of `make bench`, because it takes minutes: ``python -m benchmarks optimize``.
"""

from __future__ import annotations

from time import perf_counter

from benchmarks.measure import Row
from benchmarks.metaschedule import SHAPES, tuned_seconds
from extract.optimize import optimize
from leir.ir import Known, Program, Signature
from leir.parser import parse
from llm.candidates import correlation, fastest, measured

SATURATION_S = 30.0

_SOFTMAX = (
    "L^{R}_{a=0}L^{N}_{c=0}[D^{f32,g}_{a}=max(D^{f32,g}_{a},A^{f32,g}_{a,c});];"
    "L^{R}_{a=0}L^{N}_{c=0}[E^{f32,g}_{a}=E^{f32,g}_{a}+exp(A^{f32,g}_{a,c}-D^{f32,g}_{a});];"
    "L^{R}_{a=0}L^{N}_{c=0}[F^{f32,g}_{a,c}=exp(A^{f32,g}_{a,c}-D^{f32,g}_{a})/E^{f32,g}_{a};];"
)
TEXTS = {
    "matmul": "L^{256}_{a=0}L^{256}_{c=0}L^{256}_{d=0}[F^{f32,g}_{a,c}=F^{f32,g}_{a,c}+A^{f32,g}_{a,d}*C^{f32,g}_{d,c};];",
    "softmax": _SOFTMAX.replace("{R}", "{512}").replace("{N}", "{1024}"),
    "layer_norm": (
        "L^{512}_{a=0}L^{768}_{c=0}[D^{f32,g}_{a}=D^{f32,g}_{a}+A^{f32,g}_{a,c};];"
        "L^{512}_{a=0}[E^{f32,g}_{a}=D^{f32,g}_{a}/768;];"
        "L^{512}_{a=0}L^{768}_{c=0}[H^{f32,g}_{a}=H^{f32,g}_{a}+(A^{f32,g}_{a,c}-E^{f32,g}_{a})**2;];"
        "L^{512}_{a=0}L^{768}_{c=0}[F^{f32,g}_{a,c}="
        "(A^{f32,g}_{a,c}-E^{f32,g}_{a})/sqrt(H^{f32,g}_{a}/768+1e-05)*C^{f32,g}_{c}+G^{f32,g}_{c};];"
    ),
    "softmax_matmul": _SOFTMAX.replace("{R}", "{64}").replace("{N}", "{96}")
    + "L^{64}_{a=0}L^{32}_{c=0}L^{96}_{d=0}[I^{f32,g}_{a,c}=I^{f32,g}_{a,c}+F^{f32,g}_{a,d}*C^{f32,g}_{d,c};];",
}


def workload(name: str) -> Program:
    """The program as an importer writes it: one expression per operation, every loop serial."""
    *inputs, output = SHAPES[name]
    known = [Known(tensor, "f32", shape, "input") for tensor, shape in zip("ACG", inputs, strict=False)]
    result = "I" if name == "softmax_matmul" else "F"
    return parse(TEXTS[name], Signature(name, (*known, Known(result, "f32", output, "output"))))


def rows() -> list[Row]:
    found = []
    for name in SHAPES:
        program = workload(name)
        start = perf_counter()
        result = optimize(program, budget_s=SATURATION_S)
        measurements = measured(program, result, workers=2, timeout=60.0)
        spent = perf_counter() - start
        original = next(m.measured_s for m in measurements if not m.steps)
        best = fastest(result, measurements)
        ours = getattr(best, "measured_s", None)
        assert original is not None
        assert ours is not None
        theirs = tuned_seconds(name, spent)
        rank = correlation(measurements)
        told = "undefined" if rank is None else f"{rank:.2f}"
        found += [
            Row(f"{name}: original", original * 1e6, "us", f"saturation: {result.report.outcome}"),
            Row(
                f"{name}: extracted",
                ours * 1e6,
                "us",
                f"{original / ours:.2f}x, {len(best.steps)} steps, {spent:.0f} s, Spearman {told}",
            ),
        ]
        if theirs is None:
            found.append(Row(f"{name}: MetaSchedule", None, "us", f"nothing built in {spent:.0f} s"))
        else:
            found.append(Row(f"{name}: MetaSchedule", theirs * 1e6, "us", f"{original / theirs:.2f}x, {spent:.0f} s"))
    return found
