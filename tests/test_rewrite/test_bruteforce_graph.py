"""Fission, swap and inlining against brute force: whole parameter spaces, decided by execution (`tests.oracle.graph_steps`).

Fission and swap agree with the trace in both directions. Inlining accepts nothing that the values forbid; what it refuses although
the values would allow it is counted. Every legal step computes the same bits, and every witness is one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import numpy as np

from leir.check import check, has_errors
from leir.interpret import bits, interpret
from leir.ir import Program, accesses, equations
from leir.lift import flatten_program
from leir.parser import parse
from leir.printer import print_program
from leir.shapes import temporary_shapes
from rewrite.enumerate import Found, Refused, enumerate_steps
from rules.strategy import Target, Witness
from tests.brackets import random_bracket
from tests.generators import Options, random_inputs, random_kernel, random_program
from tests.oracle.graph_steps import Values, fissions, inlinings, swaps
from tests.oracle.steps import Case, Space
from tests.oracle.trace import conflicts, equations_of, sequential_time, touches

STRATEGIES = ("operator_fission", "expression_reorder", "compute_inline")
CHECKED = 0.1  # of the legal steps go through the checker and the text as well; all are run
Outcomes = dict[tuple[str, tuple[int, ...], tuple[tuple[str, object], ...]], Found | Refused]


@dataclass(slots=True)
class Tally:
    legal: Counter[str] = field(default_factory=Counter)
    illegal: Counter[str] = field(default_factory=Counter)
    codes: Counter[tuple[str, bool]] = field(default_factory=Counter)  # inlining: code, and whether the values forbid the step
    witnesses: int = 0

    def table(self) -> str:
        rows = [f"{name:20}{self.legal[name]:8}{self.illegal[name]:8}" for name in STRATEGIES]
        codes = [
            f"  refused {code:20}{self.codes[code, True]:8} wrong{self.codes[code, False]:8} conservative" for code in self.refusals
        ]
        return "\n".join([f"{'strategy':20}{'legal':>8}{'illegal':>8}", *rows, *codes, f"witnesses {self.witnesses}"])

    @property
    def refusals(self) -> list[str]:
        return sorted({code for code, _ in self.codes})


def compare(seed: int, program: Program, target: Target, tally: Tally) -> None:
    flat = flatten_program(program)
    shapes = temporary_shapes(program.signature, flat) | {t.name: t.shape for t in program.signature.tensors}
    space = Space(flat, conflicts(flat, shapes.__getitem__))
    outcomes = outcomes_of(program, target)
    runs = Runs(program, random_inputs(program, seed), Random(seed))
    expected = {(c.strategy, c.path, c.arguments): c for c in (*fissions(space), *swaps(space))}
    pairs = inlinings(flat)
    inlined = {("compute_inline", p, (("consumer", c),)): (p, c) for p, c in pairs}
    assert outcomes.keys() == expected.keys() | inlined.keys(), seed
    for place, case in expected.items():
        outcome = outcomes[place]
        assert isinstance(outcome, Found) == case.legal, (seed, place, case.reason, outcome)
        if isinstance(outcome, Refused):
            assert_conflict(space, case, outcome, tally)
    wrong = wrong_inlinings(program, seed)
    for place, pair in inlined.items():
        outcome = outcomes[place]
        if isinstance(outcome, Refused):
            tally.codes[outcome.refusal.code, pair in wrong] += 1
            assert_flow(space, shapes, outcome, tally)
        else:
            assert pair not in wrong, (seed, place)
            assert_producer(program, outcome.program, pair[0])
    for place, outcome in outcomes.items():
        if isinstance(outcome, Found):
            tally.legal[place[0]] += 1
            assert outcome.rounding == "bitwise"
            runs.same(outcome)
        else:
            tally.illegal[place[0]] += 1


def outcomes_of(program: Program, target: Target) -> Outcomes:
    found: Outcomes = {}
    for outcome in enumerate_steps(program, target, STRATEGIES, refusals=True):
        for step in (outcome.step,) if isinstance(outcome, Refused) else (outcome.step, *outcome.alternatives):
            found[step.strategy, step.site.path, step.args] = outcome
    return found


def wrong_inlinings(program: Program, seed: int) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The pairs whose values differ for one of three draws of the tensors that subscripts read."""
    flat = flatten_program(program)
    pairs = inlinings(flat)
    gathered = any(tensor.dtype.startswith("i") for tensor in program.signature.inputs)
    wrong: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
    for draw in range(3 if gathered else 1):
        names = frozenset(t.name for t in program.signature.inputs)
        wrong |= Values(flat, random_inputs(program, 3 * seed + draw), names).wrong(pairs)
    return wrong


@dataclass(slots=True)
class Runs:
    """One program's results on random inputs, which every legal step must reproduce to the bit."""

    program: Program
    inputs: dict[str, np.ndarray]
    rng: Random
    results: dict[str, np.ndarray] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def same(self, found: Found) -> None:
        if found.key in self.seen:
            return
        self.seen.add(found.key)
        self.results = self.results or interpret(self.program, self.inputs)
        after = interpret(found.program, self.inputs)
        for name, array in self.results.items():
            np.testing.assert_array_equal(bits(array), bits(after[name]))
        if self.rng.random() < CHECKED:
            assert parse(print_program(found.program), found.program.signature) == found.program
            assert not has_errors(check(found.program))


def assert_producer(before: Program, after: Program, producer: tuple[int, ...]) -> None:
    """The producer goes exactly when its target is no known tensor and nothing reads it any more."""
    name = next(eq.equation.target.tensor.name for eq in equations_of(flatten_program(before)) if eq.path == producer)
    left = [eq for nest in after.nests for eq in equations(nest)]
    read = any(access.tensor.name == name for eq in left for access in accesses(eq.value))
    writers = [eq for nest in before.nests for eq in equations(nest) if eq.target.tensor.name == name]
    gone = not read and after.signature.find(name) is None
    assert sum(eq.target.tensor.name == name for eq in left) == len(writers) - gone


def assert_conflict(space: Space, case: Case, refused: Refused, tally: Tally) -> None:
    """A reversed dependence names two instances that conflict, in the order in which they run."""
    if refused.refusal.code != "dependence-reversed":
        return
    witness = refused.refusal.witness
    assert witness is not None
    tally.witnesses += 1
    number = case.path[0]
    first, second = witness.first.path, witness.second.path
    if case.strategy == "expression_reorder":
        places = [(number + path[0], *path[1:]) for path in (first, second)]
    else:
        places = [(number, *path) for path in (first, second)]
    instances = [(path, _values(witness, k)) for k, path in enumerate(places)]
    element = (witness.tensor, witness.element)
    assert any(
        [c.first.where, c.second.where] == instances and (c.first.tensor, c.first.element) == element for c in space.conflicts
    ), (case, refused)


def assert_flow(space: Space, shapes: dict[str, tuple[int, ...]], refused: Refused, tally: Tally) -> None:
    """A foreign value or a changed operand names a write of that element before the instance of the consumer."""
    witness = refused.refusal.witness
    if witness is None:
        assert refused.refusal.code != "operand-changes"
        return
    tally.witnesses += 1
    writer, reader = space.equations[witness.first.path], space.equations[witness.second.path]
    at, then = _values(witness, 0), _values(witness, 1)
    assert sequential_time(writer, at) < sequential_time(reader, then), refused
    element = (witness.tensor, witness.element)
    written = [t for t in touches(writer, at, shapes.__getitem__) if t.role != "read"]
    assert [(t.tensor, t.element) for t in written] == [element], refused
    if refused.refusal.code == "other-source":
        assert element in [(t.tensor, t.element) for t in touches(reader, then, shapes.__getitem__)], refused


def _values(witness: Witness, which: int) -> tuple[int, ...]:
    return tuple(value for _, value in (witness.first, witness.second)[which].point)


# ------------------------------------------------------------------------------------------------------------------ programs


def wandered(rng: Random, program: Program) -> Program:
    """The program after up to three legal steps, fusions first."""
    choices = (
        ("operator_fusion",),
        ("operator_fusion",),
        ("loop_binding", "loop_split"),
        ("expression_reorder",),
        ("compute_inline",),
    )
    for _ in range(rng.randint(0, 3)):
        names = rng.choice(choices)
        steps = [f for f in enumerate_steps(program, "cuda", names) if isinstance(f, Found)]
        if steps:
            program = rng.choice(steps).program
    return program


def test_graph_steps_are_brute_force() -> None:
    """Zero disagreements, and at least 200 legal and 100 illegal instances of each strategy."""
    tally = Tally()
    options = Options(dtypes=("f32", "f32", "f16", "f64", "i32"), extents=(2, 3, 4), expressions=4, recurrences=2)
    for seed in range(200):
        rng = Random(seed)
        compare(seed, wandered(rng, random_program(rng, options)), "cuda", tally)
    for seed in range(30):
        compare(seed, random_kernel(Random(seed)), "cuda", tally)
    for seed in range(150):
        compare(seed, random_bracket(Random(seed)), "llvm", tally)
    print("\n" + tally.table())
    for name in STRATEGIES:
        assert tally.legal[name] >= 200, tally.table()
        assert tally.illegal[name] >= 100, tally.table()
    assert tally.witnesses >= 300, tally.table()
