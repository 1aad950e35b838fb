"""Enumeration against brute force: the whole parameter space, each point decided by executing the program in the new order.

In both directions: what the trace calls legal is found, what it calls illegal is refused; every legal step computes the same (the
same bits where it says so), and every refusal for a dependence names two iterations that the trace knows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import numpy as np

from leir.check import check, has_errors
from leir.interpret import bits, interpret
from leir.ir import Nest, Program
from leir.lift import flatten_program
from leir.parser import parse
from leir.printer import print_program
from leir.shapes import temporary_shapes
from rewrite.enumerate import Found, Refused, enumerate_steps
from rules.strategy import Refusal, Target, Witness
from tests.generators import Options, random_inputs, random_kernel, random_program
from tests.oracle import loop_steps
from tests.oracle.steps import Case, Space
from tests.oracle.trace import conflicts
from tests.test_rewrite import checked

STRATEGIES = (
    "loop_reorder",
    "loop_tiling",
    "loop_split",
    "loop_fusion",
    "loop_unrolling",
    "loop_parallelization",
    "loop_binding",
    "operator_fusion",
)
VECTORS = ("loop_vectorization",)
REDUCTIONS = ("reduction_factorization",)
ORDERED = {*STRATEGIES, *VECTORS} - {"loop_unrolling"}  # whose legality depends on what conflicts
WITNESSED = ("dependence-reversed", "carried-dependence", "reduction-bound")
CHECKED = 0.1  # of the legal steps go through the checker and the text as well; all are run


@dataclass(slots=True)
class Tally:
    legal: Counter[str] = field(default_factory=Counter)
    illegal: Counter[str] = field(default_factory=Counter)
    executed: int = 0
    witnesses: int = 0

    def table(self) -> str:
        rows = [f"{name:24}{self.legal[name]:8}{self.illegal[name]:8}" for name in (*STRATEGIES, *VECTORS, *REDUCTIONS)]
        return "\n".join(
            [f"{'strategy':24}{'legal':>8}{'illegal':>8}", *rows, f"executed {self.executed}, witnesses {self.witnesses}"]
        )


def radix(program: Program, path: tuple[int, ...], number: int) -> list[int]:
    item: object = program.nests[path[0]]
    for k in path[1:]:
        assert isinstance(item, Nest)
        item = item.body[k]
    assert isinstance(item, Nest)
    return [digit.extent for digit in item.schedule[number].digits]


def compare(seed: int, program: Program, target: Target, tally: Tally, strategies: tuple[str, ...] = STRATEGIES) -> None:
    flat = flatten_program(program)
    shapes = temporary_shapes(program.signature, flat) | {t.name: t.shape for t in program.signature.tensors}
    space = Space(flat, conflicts(flat, shapes.__getitem__) if set(strategies) & ORDERED else [])
    spaces = {
        "loop_reorder": space.reorders,
        "loop_tiling": lambda: loop_steps.tilings(space, lambda path, k: radix(program, path, k)),
        "loop_split": lambda: space.splits(lambda path, k: radix(program, path, k)),
        "loop_fusion": lambda: loop_steps.loop_fusions(space),
        "loop_unrolling": lambda: loop_steps.unrollings(space),
        "loop_parallelization": lambda: loop_steps.parallelizations(space),
        "loop_vectorization": lambda: loop_steps.vectorizations(space, shapes.__getitem__, target),
        "loop_binding": space.bindings,
        "operator_fusion": space.fusions,
        "reduction_factorization": lambda: loop_steps.reduction_cuts(space, lambda path, k: radix(program, path, k)),
    }
    cases = [case for name in strategies for case in spaces[name]()]
    expected = {(c.strategy, c.path, c.arguments): c for c in cases}
    found: dict[tuple[str, tuple[int, ...], tuple[tuple[str, object], ...]], Found | Refused] = {}
    for outcome in enumerate_steps(program, target, strategies, refusals=True):
        steps = [outcome.step] if isinstance(outcome, Refused) else [outcome.step, *outcome.alternatives]
        for step in steps:
            found[step.strategy, step.site.path, step.args] = outcome
    assert found.keys() == expected.keys(), seed
    rng = Random(seed)
    inputs = random_inputs(program, seed)
    runs = Runs(program, inputs, interpret(program, inputs))
    computed: set[str] = set()
    for place, case in expected.items():
        outcome = found[place]
        assert isinstance(outcome, Found) == case.legal, (seed, place, case.reason, outcome)
        if isinstance(outcome, Found):
            tally.legal[case.strategy] += 1
            assert (outcome.rounding == "bitwise") == case.bitwise, (seed, place)
            if outcome.key not in computed:
                tally.executed += 1
                computed.add(outcome.key)
                runs.same(outcome)
                if rng.random() < CHECKED:
                    well_formed(outcome.program)
        else:
            tally.illegal[case.strategy] += 1
            assert_witness(space, case, outcome.refusal, tally)


@dataclass(slots=True)
class Runs:
    """One program's results on random inputs, which every legal step must reproduce."""

    program: Program
    inputs: dict[str, np.ndarray]
    native: dict[str, np.ndarray]

    def same(self, found: Found) -> None:
        """The step computes the same: the same bits where it says so, else the same up to the rounding of a float64."""
        if found.rounding == "bitwise":
            after = interpret(found.program, self.inputs)
            for name, array in self.native.items():
                np.testing.assert_array_equal(bits(array), bits(after[name]))
            return
        exact = [interpret(p, self.inputs, mode="f64") for p in (self.program, found.program)]
        for name in self.native:
            np.testing.assert_allclose(exact[0][name], exact[1][name], rtol=1e-9, atol=1e-9)


def well_formed(program: Program) -> None:
    """The program is in normal form and passes the checker."""
    assert parse(print_program(program), program.signature) == program
    assert not has_errors(check(program))


def assert_witness(space: Space, case: Case, refusal: Refusal, tally: Tally) -> None:
    if refusal.code not in WITNESSED:
        return
    assert refusal.witness is not None
    tally.witnesses += 1
    first, second = (place(case, refusal.witness, k) for k in (0, 1))
    element = (refusal.witness.tensor, refusal.witness.element)
    assert any(
        {c.first.where, c.second.where} == {first, second} and (c.first.tensor, c.first.element) == element for c in space.conflicts
    ), (case, refusal)


def place(case: Case, witness: Witness, which: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    instance = (witness.first, witness.second)[which]
    values = tuple(value for _, value in instance.point)
    number = case.path[0]
    if case.strategy == "operator_fusion":
        return (number + instance.path[0], *instance.path[1:]), values
    return (number, *instance.path), values


def wandered(rng: Random, program: Program, target: Target, names: tuple[str, ...] = STRATEGIES) -> Program:
    """The program after up to three legal steps, one time in three a fusion of expressions, in three a binding where allowed."""
    for _ in range(rng.randint(0, 3)):
        name = rng.choice(("operator_fusion", "loop_binding" if "loop_binding" in names else "loop_split", rng.choice(names)))
        steps = [f for f in enumerate_steps(program, target, [name]) if isinstance(f, Found)]
        if steps:
            program = rng.choice(steps).program
    return program


def random_programs(tally: Tally) -> None:
    """Random small programs after a few random steps. Bindings are many, and asked of every third program."""
    options = Options(extents=(2, 3, 4), expressions=3, recurrences=3, transcendental=False)
    unbound = tuple(name for name in STRATEGIES if name != "loop_binding")
    for seed in range(340):
        rng = Random(seed)
        program = wandered(rng, random_program(rng, options), "cuda")
        compare(seed, program, "cuda", tally, unbound if seed % 3 else STRATEGIES)


def random_kernels(tally: Tally) -> None:
    """Kernels with several thread loops, where cutting one of them breaks the launch."""
    for seed in range(60):
        compare(seed, random_kernel(Random(seed)), "cuda", tally)


def random_neighbours(tally: Tally) -> None:
    """Expressions that walk the same loops, for what may share them."""
    options = Options(extents=(2, 3), expressions=4, depth=2, recurrences=2, nested=False, transcendental=False)
    for seed in range(400):
        compare(seed, random_program(Random(seed), options), "llvm", tally, ("operator_fusion",))


def random_tiles(tally: Tally) -> None:
    """Recurrences over loops that can be cut."""
    options = Options(extents=(4,), expressions=2, depth=3, recurrences=20, nested=False, gathers=False, transcendental=False)
    for seed in range(480):
        compare(seed, random_program(Random(seed), options), "llvm", tally, ("loop_tiling",))


def random_copies(tally: Tally) -> None:
    """Longer loops, some unrolled already, for what exceeds the limit."""
    options = Options(extents=(2, 8, 16, 20), expressions=3, depth=3, gathers=False, transcendental=False)
    for seed in range(250):
        rng = Random(seed)
        program = random_program(rng, options)
        for _ in range(rng.randint(1, 4)):
            steps = [f for f in enumerate_steps(program, strategies=["loop_unrolling"]) if isinstance(f, Found)]
            program = rng.choice(steps).program if steps else program
        compare(seed, program, "llvm", tally, ("loop_unrolling",))


def random_vectors(tally: Tally) -> None:
    """Innermost loops, for a CPU after random steps, vectorizing ones too, and for a GPU."""
    options = Options(extents=(2, 3, 4), expressions=2, depth=2, recurrences=0, transcendental=False)
    for seed in range(340):
        rng = Random(seed)
        program = random_program(rng, options)
        compare(seed, program, "cuda", tally, VECTORS)
        compare(seed, wandered(rng, program, "llvm", (*VECTORS, "loop_fusion", "loop_reorder")), "llvm", tally, VECTORS)


def random_reductions(tally: Tally) -> None:
    """Reductions of floats and of integers, alone and with company."""
    options = Options(dtypes=("f32", "i32"), extents=(2, 3, 4, 6), expressions=3, depth=3, transcendental=False)
    for seed in range(400):
        rng = Random(seed)
        program = wandered(rng, random_program(rng, options), "llvm", ("loop_split", "loop_fusion", *REDUCTIONS))
        compare(seed, program, "llvm", tally, REDUCTIONS)
    for seed in range(40):
        compare(seed, company(Random(seed)), "llvm", tally, REDUCTIONS)


def company(rng: Random) -> Program:
    """Two reductions in one body."""
    rows, columns = rng.choice((2, 3)), rng.choice((4, 6, 8))
    header = f"# A f32[{rows},{columns}] input\n# C f32[{rows}] output\n# D f32[] output\n"
    first = rng.choice(("C^{f32,g}_{a}+A^{f32,g}_{a,c}", "max(C^{f32,g}_{a},A^{f32,g}_{a,c})"))
    second = rng.choice(("D^{f32,g}*A^{f32,g}_{a,c}", "D^{f32,g}-A^{f32,g}_{a,c}", "min(D^{f32,g},A^{f32,g}_{a,c})"))
    loops = f"L^{{{rows}}}_{{a=0}}L^{{{columns}}}_{{c=0}}"
    return checked.program(f"{header}{loops}[C^{{f32,g}}_{{a}}={first};D^{{f32,g}}={second};];")


def test_enumeration_is_brute_force() -> None:
    """Zero disagreements, and at least 200 legal and 100 illegal instances of each strategy."""
    tally = Tally()
    for part in (
        random_programs,
        random_kernels,
        random_neighbours,
        random_tiles,
        random_copies,
        random_vectors,
        random_reductions,
    ):
        part(tally)
    print("\n" + tally.table())
    for name in (*STRATEGIES, *VECTORS, *REDUCTIONS):
        assert tally.legal[name] >= 200, tally.table()
        assert tally.illegal[name] >= (200 if name in REDUCTIONS else 100), tally.table()
    assert tally.witnesses >= 500
