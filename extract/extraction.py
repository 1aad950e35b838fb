"""Extraction: the cheapest program of an e-graph, as steps from the original (architecture.md, Extraction).

    found = extract(program, result, cost)
    found.program, found.cost, [applied.step for applied in found.steps]

The cost of a program is the sum over its kernels, each of which is paid once however many read it; so the choice is a cover, not a
tree. A choice that makes no program, or that cannot be replayed as checked steps, is discarded and counted, and the next one tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from extract.cover import Search, exact_choice, local_search
from leir.check import check, has_errors
from leir.ir import Nest, Program
from leir.lift import make_program
from rewrite.apply import Applied
from rewrite.egraph.assemble import Problem, assemble
from rewrite.egraph.classes import Choice, rank
from rewrite.egraph.explain import Explainer, Explanation
from rewrite.egraph.options import KernelCost, kernel_cost
from rewrite.egraph.result import EGraphResult
from rewrite.egraph.templates import tensors, written


@dataclass(frozen=True, slots=True)
class Extraction:
    """``cost`` is that of ``program``, ``original_cost`` that of the program that saturation started from. ``steps`` lead from that
    to ``program``, but for ``left_out`` expressions that compute nothing that is used (no strategy deletes these). ``bound`` is the
    least cost of any choice that was seen, ``optimal`` whether it is known that none is less. ``considered`` choices were replayed;
    ``discarded``: by reason, how many of these were given up."""

    program: Program
    cost: float
    original_cost: float
    steps: tuple[Applied, ...]
    left_out: int
    bound: float
    optimal: bool
    considered: int
    discarded: Counter[str] = field(default_factory=Counter)


def extract(
    program: Program, result: EGraphResult, cost: KernelCost, *, exact: bool = False, tries: int = 64, width: int = 12
) -> Extraction:
    """The cheapest program of the root class that replays from ``program``, the one that was saturated.

    Only kernels that steps lead to are considered, not those that native rules of the e-graph made.
    ``tries``: how many choices are replayed at most, cheapest first; the original is always among them. ``width``: how many kernels
    per class the search considers. ``exact`` searches all choices by branch and bound, as far as its budget goes.
    """
    return candidates(program, result, cost, count=1, exact=exact, tries=tries, width=width)[0]


def candidates(
    program: Program,
    result: EGraphResult,
    cost: KernelCost,
    *,
    count: int,
    exact: bool = False,
    tries: int = 64,
    width: int = 12,
) -> list[Extraction]:
    """The ``count`` cheapest different programs, the original among them, cheapest first. Parameters as for `extract`."""
    if program != result.program:
        raise ValueError("the e-graph is that of another program")
    one = _memoised(partial(kernel_cost, result.flow, cost))
    explainer = Explainer(result)
    original = _price(explainer, program, one)
    view = result.classes.only(result.explained)
    search = Search(view, rank(view, one), width)
    local_search(search)
    optimal = exact and exact_choice(search)
    queue = search.by_cost()
    bound = min(original, queue[0][0]) if queue else original
    discarded: Counter[str] = Counter()
    considered = 0
    found: dict[tuple[Nest, ...], tuple[float, Program, tuple[Applied, ...], int]] = {program.nests: (original, program, (), 0)}
    for price, _, choice in queue[:tries]:
        best = sorted(entry[0] for entry in found.values())
        if len(best) >= count and price >= best[count - 1]:
            break
        considered += 1
        explanation = _replayed(result, explainer, choice)
        if isinstance(explanation, Problem):
            discarded[explanation.code] += 1
            continue
        last = _without_dead(explanation.program)
        left_out = len(explanation.program.nests) - len(last.nests)
        found.setdefault(last.nests, (_price(explainer, last, one), last, explanation.steps, left_out))
    ranked = sorted(found.values(), key=lambda entry: (entry[0], len(entry[2])))[:count]
    return [
        Extraction(last, total, original, steps, left_out, bound, optimal, considered, discarded)
        for total, last, steps, left_out in ranked
    ]


def _price(explainer: Explainer, program: Program, one: Callable[[int], float]) -> float:
    """The cost of a program whose kernels the e-graph knows."""
    return sum(one(kernel) for kernel in explainer.kernels(program) if kernel is not None)


def _replayed(result: EGraphResult, explainer: Explainer, choice: Choice) -> Explanation | Problem:
    made = assemble(result.classes, choice)
    return made if isinstance(made, Problem) else explainer.explain(made.kernels)


def _without_dead(program: Program) -> Program:
    """The program without the expressions that no output depends on; as it was where that would not leave it as it reads."""
    live = {tensor.name for tensor in program.signature.outputs}
    kept: list[Nest] = []
    for nest in reversed(program.nests):
        if not live.isdisjoint(written(nest)):
            live.update(tensors(nest))
            kept.append(nest)
    smaller = make_program(program.signature, kept[::-1])
    if smaller.nests != tuple(kept[::-1]) or has_errors(check(smaller)):
        return program
    return smaller


def _memoised(function: Callable[[int], float]) -> Callable[[int], float]:
    kept: dict[int, float] = {}

    def one(kernel: int) -> float:
        if kernel not in kept:
            kept[kernel] = function(kernel)
        return kept[kernel]

    return one
