"""The checker against an oracle that walks programs point by point, in both directions, on random programs good and bad."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from leir.check import check_flat
from leir.checker.carried import carried
from leir.checker.facts import Facts
from leir.checker.kernels import launch_loops
from leir.diagnostics import Diagnostic
from leir.interpret import InterpretError, interpret
from leir.lift import make_program
from leir.printer import print_nests
from leir.shapes import ShapeError
from tests.generators import Options, random_inputs
from tests.illegal.case import Case, reads
from tests.illegal.perturb import perturbed, random_kernel, with_random_kinds
from tests.oracle import faults

VALUE_CODES = ("out-of-bounds", "undefined-read", "output-unwritten", "undecided")
SCOPE_CODES = ("scope-escapes-kernel", "shared-crosses-blocks", "local-crosses-threads")

EXACT = Options(gathers=False, transcendental=False, expressions=3, extents=(1, 2, 3, 4), recurrences=2)
"""No gathers, which the oracle does not walk. Guards that read data let both branches run, here and there."""
GUARDS_BY_INDEX = Options(gathers=False, guards=False, transcendental=False, expressions=3, extents=(1, 2, 3, 4), recurrences=2)


def random_case(rng: Random, options: Options, changes: int) -> Case:
    """A legal program with up to this many random changes."""
    case = Case.random(rng, options)
    for _ in range(rng.randint(0, changes)):
        case = perturbed(case, rng)
    return case


def places(found: list[Diagnostic]) -> set[faults.Finding]:
    return {(d.code, d.place.path, d.place.scalar) for d in found}


def witnessed(found: list[Diagnostic], expected: dict[faults.Finding, set[faults.Point]]) -> bool:
    """Whether every witness is a point at which the oracle sees the fault."""
    for d in found:
        points = expected[d.code, d.place.path, d.place.scalar]
        if d.witness is not None and tuple(value for _, value in d.witness) not in points:
            return False
    return True


def test_bounds_and_definedness_are_exact() -> None:
    seen: Counter[str] = Counter()
    for seed in range(800):
        case = random_case(Random(seed), EXACT, 3)
        expected = faults.value_faults(case.signature, case.nests)
        expected = {finding: points for finding, points in expected.items() if finding[0] in VALUE_CODES}
        found = [d for d in check_flat(case.signature, case.nests) if d.code in VALUE_CODES]
        text = print_nests(case.nests)
        assert places(found) == set(expected), (seed, text)
        assert witnessed(found, expected), (seed, text)
        seen.update(code for code, _, _ in expected)
        seen["legal"] += not expected
    print(dict(sorted(seen.items())))
    assert min(seen["legal"], seen["out-of-bounds"], seen["undefined-read"], seen["output-unwritten"]) >= 100


def test_legal_means_that_the_interpreter_runs() -> None:
    """In both directions, where no guard reads data and so nothing depends on the inputs."""
    seen: Counter[bool] = Counter()
    for seed in range(400):
        case = random_case(Random(1000 + seed), GUARDS_BY_INDEX, 2)
        found = check_flat(case.signature, case.nests)
        legal = not any(d.code in (*VALUE_CODES, "unknown-tensor") for d in found)
        program = make_program(case.signature, case.nests)
        try:
            interpret(program, random_inputs(program, seed), walk="points")
            runs = True
        except (InterpretError, ShapeError):
            runs = False
        assert legal == runs, (seed, print_nests(case.nests), [str(d) for d in found])
        seen[legal] += 1
    print(dict(seen))
    assert min(seen[True], seen[False]) >= 100


def test_what_is_shown_to_be_legal_runs_whatever_the_data() -> None:
    """With gathers and guards that read data. A read that the checker refuses may be one that these inputs never make."""
    options = Options(transcendental=False, expressions=3, extents=(1, 2, 3, 4), recurrences=2)
    seen: Counter[bool] = Counter()
    for seed in range(400):
        case = random_case(Random(2000 + seed), options, 2)
        legal = not any(d.severity == "error" for d in check_flat(case.signature, case.nests))
        if legal:
            program = make_program(case.signature, case.nests)
            interpret(program, random_inputs(program, seed), walk="points")
        seen[legal] += 1
    print(dict(seen))
    assert min(seen[True], seen[False]) >= 100


def test_dependences_of_parallel_loops_are_exact() -> None:
    options = Options(gathers=False, transcendental=False, expressions=2, extents=(1, 2, 3), recurrences=3, kinds=False)
    seen: Counter[str] = Counter()
    for seed in range(1000):
        rng = Random(seed)
        case = with_random_kinds(random_case(rng, options, 1), rng)
        seen += compare_carried(case, seed)
    print(dict(sorted(seen.items())))
    assert min(seen["legal"], seen["carried-dependence"]) >= 100
    assert seen["reduction-bound"] >= 25


def test_a_block_has_its_own_shared_memory_and_a_thread_its_own_local_memory() -> None:
    seen: Counter[str] = Counter()
    for seed in range(400):
        seen += compare_carried(random_kernel(Random(seed), ("s", "l", "g"), "LPV"), seed)
    print(dict(sorted(seen.items())))
    assert min(seen["legal"], seen["carried-dependence"]) >= 100


def compare_carried(case: Case, seed: int) -> Counter[str]:
    expected = faults.carried(case.nests)
    facts = Facts(case.signature, case.nests, "any", None)
    found = {(f.node.nest, f.node.axis, f.first[1].access.tensor.name, f.code) for f in carried(facts)}
    assert found == expected, (seed, print_nests(case.nests))
    return Counter({"legal": int(not expected)}) + Counter(code for *_, code in expected)


def test_scopes_are_exact() -> None:
    seen: Counter[str] = Counter()
    for seed in range(400):
        case = random_kernel(Random(seed))
        launch = {k: launch_loops(nest) for k, nest in enumerate(case.nests)}
        expected = faults.foreign_reads(case.nests, launch)
        escaping = {finding[1:] for finding in expected if finding[0] == "scope-escapes-kernel"}
        first = {f for f in expected if f[0] == "scope-escapes-kernel" or f[1:] not in escaping}  # one report per access
        found = [d for d in check_flat(case.signature, case.nests) if d.code in SCOPE_CODES]
        assert places(found) == first, (seed, print_nests(case.nests))
        assert witnessed(found, expected), (seed, print_nests(case.nests))
        seen.update(code for code, _, _ in first)
        seen["legal"] += not first
    print(dict(sorted(seen.items())))
    assert min(seen[code] for code in ("legal", *SCOPE_CODES)) >= 100


@pytest.mark.parametrize("indices", [("bx", "tx", "ty"), ("bx", "by", "tx")], ids=["one", "two"])
def test_blocks_of_one_launch_share_no_element(indices: tuple[str, ...]) -> None:
    """With one or two block indices, bound outside or inside of the serial loops of a kernel."""
    seen: Counter[str] = Counter()
    for seed in range(400):
        case = random_kernel(Random(seed), ("g",), "LLU", indices, around=3)
        launch = {k: launch_loops(nest) for k, nest in enumerate(case.nests)}
        ranks = {
            (a.tensor.name, len(a.subscripts))
            for site in case.sites()
            for a in (site.equation.target, *(a for a, _ in reads(site)))
        }
        expected = {
            where: pairs
            for where, pairs in faults.blocks_crossed(case.nests, launch).items()
            if sum(name == where[1] for name, _ in ranks) == 1  # a tensor of two ranks has no elements to compare
        }
        found = [d for d in check_flat(case.signature, case.nests) if d.code == "crosses-blocks"]
        named = {(d.place.path[0], d.message.split()[0]): d.witness or () for d in found}
        text = print_nests(case.nests)
        assert len(named) == len(found), (seed, text)
        assert set(named) == set(expected), (seed, text)
        assert all(tuple(value for _, value in witness) in expected[where] for where, witness in named.items()), (seed, text)
        seen["crossing"] += bool(expected)
        seen["legal"] += not expected
    print(dict(sorted(seen.items())))
    assert min(seen["crossing"], seen["legal"]) >= 40


@pytest.mark.parametrize("options", [Options(), Options(dtypes=("f16", "f64", "i32", "i64")), Options(extents=(2, 4, 6, 8))])
def test_legal_programs_have_no_errors(options: Options) -> None:
    for seed in range(250):
        case = Case.random(Random(seed), options)
        errors = [str(d) for d in check_flat(case.signature, case.nests) if d.severity == "error"]
        assert not errors, (seed, print_nests(case.nests))
