"""How many steps a second are built by TVM, run on three draws and compared, two workers."""

from __future__ import annotations

from time import perf_counter

from benchmarks.measure import Row
from benchmarks.programs import reference_programs
from llm.dataset import Sampling, sample_steps
from lower.verify import Verifier
from lower.workers import WorkerPool


def rows() -> list[Row]:
    programs = [p for p in reference_programs() if sum(len(n.axes) for n in p.nests) <= 20][:20]
    start = perf_counter()
    with WorkerPool(workers=2) as pool:
        verifier = Verifier(pool)
        verifier.verify(programs[0], programs[0])
        ready = perf_counter()
        answers = []
        for program in programs:
            steps = sample_steps(program, Sampling(per_strategy=4))
            answers += [v.answer for v in verifier.verify_many(program, [(f.program, f.rounding) for f in steps])]
        spent = perf_counter() - ready
    equal = sum(answer == "equal" for answer in answers)
    return [
        Row("workers ready", ready - start, "s", "two processes, TVM imported, one program verified"),
        Row(
            "steps built and checked",
            len(answers) / spent,
            "steps/s",
            f"{len(answers)} steps, {equal} equal; three draws",
        ),
    ]
