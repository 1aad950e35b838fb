"""What the rules refuse about the blocks of a kernel, and what the checker reports of the same expression."""

from __future__ import annotations

from collections import Counter
from random import Random

from leir.check import check_flat
from leir.checker.carried import carried
from leir.checker.facts import Facts
from leir.printer import print_nests
from rules.legality.dependence import Clash
from rules.legality.kernel import crossed_blocks, structure_problem
from tests.illegal.perturb import random_kernel


def test_checker_and_rules_agree_on_blocks() -> None:
    """The rules refuse every two blocks that meet; the checker leaves those that a loop at once carries to `carried-dependence`."""
    seen: Counter[tuple[bool, bool]] = Counter()
    for seed in range(1500):
        case = random_kernel(Random(seed), ("g",), "LLU", ("bx", "by", "tx"), around=3)
        facts = Facts(case.signature, case.nests, "any", None)
        if not all(use.sound for use in facts.tensors.values()):
            continue
        at_once = {found.node.nest[0] for found in carried(facts)}
        reported = {d.place.path[0] for d in check_flat(case.signature, case.nests) if d.code == "crosses-blocks"}
        for number, nest in enumerate(case.nests):
            if structure_problem(nest) is None:
                refused, found = isinstance(crossed_blocks(nest), Clash), number in reported
                assert refused == found or (refused and number in at_once), (seed, print_nests((nest,)))
                seen[refused, found] += 1
    print(dict(seen))
    assert seen[True, True] >= 20
    assert seen[False, False] >= 100
