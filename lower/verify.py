"""Verification by execution: do two programs compute the same, as far as their rounding class promises?

Three oracles that share no code: both programs run as compiled by TVM's LLVM without contraction; the float64 interpreter runs the
first. Three draws, one with adversarial magnitudes (`lower.draws`). Three verdicts:

* ``different``: an element is off by more than rounding can explain;
* ``equal``: none is, and something finite was compared;
* ``undecided``: a program could not be run, the oracles disagree about the first program, or there was nothing finite to compare.

For the class ``bitwise`` all bits must agree. For the others the second program must stay within its own first-order rounding error
(`lower.error_bound`) of the float64 run of the first. The bound follows from dtypes, the operations in their order and the values
that occurred; no constant in it is tuned.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from leir.ir import Program
from lower.compare import Array, Finding, Place, compare_bits, compare_within, summed, within
from lower.draws import KINDS, Kind
from lower.jobs import Bound, Draw, Execute, Interpret, Job, Measure, encode
from lower.outcome import Outcome, Timing
from lower.workers import WorkerPool

Rounding: TypeAlias = Literal["bitwise", "reassociates", "real", "real+domain", "real+range"]
Answer: TypeAlias = Literal["equal", "different", "undecided"]
Runs: TypeAlias = list[dict[str, Array]]

What: TypeAlias = Literal["run", "interpret", "bound"]

_JOBS: Mapping[What, Callable[[Mapping[str, Any], tuple[Draw, ...]], Job]] = {
    "run": Execute,
    "interpret": Interpret,
    "bound": Bound,
}
REMEMBERED = 192
"""How many results a verifier keeps."""
BATCH = 32
"""How many programs are under way at once."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``errors`` (ulp, absolute, relative) are the largest of the second program against the float64 reference over the elements
    that were compared: ``compared`` of ``elements``. ``worst`` is the element that used up most of its tolerance. ``reason`` says
    why it is undecided, or what differs."""

    answer: Answer
    rounding: Rounding
    draws: tuple[str, ...]
    seed: int
    elements: int = 0
    compared: int = 0
    mismatches: int = 0
    max_ulp: float = 0.0
    max_abs: float = 0.0
    max_rel: float = 0.0
    worst: Place | None = None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data; the numbers are finite or the strings "inf" and "nan"."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


class Verifier:
    """Compares programs, and remembers what it ran: many steps are checked against one program.

    ``draws``: how many of the kinds of `lower.draws.KINDS`, in order; from the fourth on with further seeds.
    """

    def __init__(self, pool: WorkerPool, *, seed: int = 0, draws: int = 3) -> None:
        self.pool = pool
        self.seed = seed
        self.draws = tuple(Draw(seed + k // len(KINDS), KINDS[k % len(KINDS)]) for k in range(draws))
        self._jobs: OrderedDict[tuple[What, Program], Future[Outcome]] = OrderedDict()

    def verify(self, a: Program, b: Program, rounding: Rounding = "bitwise") -> Verdict:
        """The verdict on ``b`` against ``a``, which must have the same known tensors."""
        return self.verify_many(a, [(b, rounding)])[0]

    def verify_many(self, a: Program, others: Sequence[tuple[Program, Rounding]]) -> list[Verdict]:
        """The verdicts on ``others`` against ``a``, in their order; the pool's workers share the work."""
        verdicts = []
        for start in range(0, len(others), BATCH):
            batch = others[start : start + BATCH]
            for b, rounding in batch:
                self._start(a, b, rounding)
            verdicts += [self._judge(a, b, rounding) for b, rounding in batch]
            while len(self._jobs) > REMEMBERED:
                self._jobs.popitem(last=False)
        return verdicts

    def _start(self, a: Program, b: Program, rounding: Rounding) -> None:
        """Hands the pool what a verdict needs and nobody has asked for yet."""
        wanted: list[tuple[What, Program]] = [("run", a), ("interpret", a), ("bound", a), ("run", b)]
        if rounding != "bitwise":
            wanted.append(("bound", b))
        for what, program in wanted:
            if (what, program) not in self._jobs:
                self._jobs[what, program] = self.pool.submit(_JOBS[what](encode(program), self.draws))
            self._jobs.move_to_end((what, program))

    def _judge(self, a: Program, b: Program, rounding: Rounding) -> Verdict:
        if a.signature.tensors != b.signature.tensors:
            return self._verdict("undecided", rounding, reason="the programs have different known tensors")
        found: dict[tuple[What, str], Runs] = {}
        wanted: list[tuple[What, str]] = [("run", "first"), ("interpret", "first"), ("bound", "first"), ("run", "second")]
        if rounding != "bitwise":
            wanted.append(("bound", "second"))
        for what, which in wanted:
            outcome = self._jobs[what, a if which == "first" else b].result()
            if not outcome.ok:
                return self._verdict(
                    "undecided", rounding, reason=f"the {which} program, {what}: {outcome.status}: {outcome.message}"
                )
            found[what, which] = outcome.value
        return self._compare(a, found, rounding)

    def _compare(self, program: Program, found: Mapping[tuple[What, str], Runs], rounding: Rounding) -> Verdict:
        total = Finding()
        for k, draw in enumerate(self.draws):
            for tensor in program.signature.outputs:
                name = tensor.name
                a, b = found["run", "first"][k][name], found["run", "second"][k][name]
                reference, bound = found["interpret", "first"][k][name], found["bound", "first"][k].get(name)
                if not within(tensor, a, reference, summed(tensor.dtype, bound, bound)):
                    reason = f"TVM and the interpreter disagree about the first program, on {name} of the {draw.kind} draw"
                    return self._verdict("undecided", rounding, total, reason)
                if rounding == "bitwise":
                    total = total.joined(compare_bits(tensor, draw.kind, a, b, reference))
                    continue
                tolerance = summed(tensor.dtype, found["bound", "second"][k].get(name), bound)
                overflow = rounding == "real+range"
                total = total.joined(compare_within(tensor, draw.kind, a, b, reference, tolerance, allow_overflow=overflow))
        if total.mismatches:
            return self._verdict("different", rounding, total, f"{total.mismatches} elements differ")
        if not total.compared:
            return self._verdict("undecided", rounding, total, "there was nothing finite to compare")
        return self._verdict("equal", rounding, total)

    def _verdict(self, answer: Answer, rounding: Rounding, found: Finding | None = None, reason: str = "") -> Verdict:
        f = found or Finding()
        kinds = tuple(d.kind for d in self.draws)
        return Verdict(
            answer,
            rounding,
            kinds,
            self.seed,
            f.elements,
            f.compared,
            f.mismatches,
            f.max_ulp,
            f.max_abs,
            f.max_rel,
            f.worst,
            reason,
        )


def verify(a: Program, b: Program, *, pool: WorkerPool, seed: int = 0, draws: int = 3, rounding: Rounding = "bitwise") -> Verdict:
    """The verdict on ``b`` against ``a``. For many comparisons with one program a `Verifier` saves most of the work."""
    return Verifier(pool, seed=seed, draws=draws).verify(a, b, rounding)


def measure(
    program: Program,
    *,
    pool: WorkerPool,
    seed: int = 0,
    kind: Kind = "normal",
    repeat: int = 7,
    min_repeat_ms: int = 20,
    timeout_s: float | None = None,
) -> Timing | Outcome:
    """Seconds per call of ``program``, built for speed, while the pool's other workers rest; an `Outcome` if it did not run."""
    job = Measure(encode(program), Draw(seed, kind), repeat, min_repeat_ms)
    outcome = pool.run_alone(job, timeout_s=timeout_s)
    if not outcome.ok:
        return outcome
    assert isinstance(outcome.value, Timing)
    return outcome.value


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {k: _plain(v) for k, v in value.items()}
        case tuple() | list():
            return [_plain(v) for v in value]
        case float() if value != value or value in (float("inf"), float("-inf")):
            return str(value)
    return value
