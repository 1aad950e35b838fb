"""Enumeration and legality rates. A step counts after its program is built, keyed and deduplicated."""

from __future__ import annotations

import gc
from random import Random
from time import perf_counter

from benchmarks.measure import Row
from benchmarks.programs import reference_programs
from leir.ir import Program
from leir.lift import flatten, lift
from rewrite import apply as application
from rewrite.enumerate import Found, Refused, enumerate_steps
from rules.legality import decide, dependence, kernel, sharing, timeline


def rows() -> list[Row]:
    programs = reference_programs()
    cold_steps, cold_seconds = _enumerate(programs, cold=True)
    warm_steps, warm_seconds = _enumerate(programs, cold=False)
    walk_steps, walk_seconds = _walk(programs)
    decisions, decision_seconds = _decide(programs)
    return [
        Row("steps, every cache empty", cold_steps / cold_seconds, "steps/s", f"{cold_steps} steps of {len(programs)} programs"),
        Row("steps, a second time", warm_steps / warm_seconds, "steps/s"),
        Row("steps, neighbouring programs", walk_steps / walk_seconds, "steps/s", "random walks of 5 steps from each program"),
        Row("legality decisions, every cache empty", decisions / decision_seconds, "decisions/s", "results built"),
    ]


def clear_caches() -> None:
    """Forget everything that is memoised per nest or unit."""
    for module in (application, decide, dependence, kernel, sharing, timeline):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
    flatten.cache_clear()
    lift.cache_clear()


def _enumerate(programs: list[Program], *, cold: bool) -> tuple[int, float]:
    gc.collect()
    if cold:
        clear_caches()
    start = perf_counter()
    count = sum(1 for program in programs for _ in enumerate_steps(program))
    return count, perf_counter() - start


def _walk(programs: list[Program]) -> tuple[int, float]:
    """Random walks of five steps: each next program differs from one already seen in one place."""
    rng = Random(0)
    count, spent = 0, 0.0
    for program in programs:
        current = program
        for _ in range(5):
            start = perf_counter()
            found = list(enumerate_steps(current))
            spent += perf_counter() - start
            count += len(found)
            if not found:
                break
            current = rng.choice(found).program
    return count, spent


def _decide(programs: list[Program]) -> tuple[int, float]:
    clear_caches()
    start = perf_counter()
    count = 0
    for program in programs:
        for outcome in enumerate_steps(program, strategies=("operator_fusion", "loop_reorder", "loop_binding"), refusals=True):
            count += 1 if isinstance(outcome, Refused) else 1 + len(outcome.alternatives)
            assert isinstance(outcome, Refused | Found)
    return count, perf_counter() - start
