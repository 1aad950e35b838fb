"""Extraction: the cheapest program of an e-graph, as steps from the original (architecture.md, Extraction).

    found = extract(program, result, cost)
    found.program, found.cost, [applied.step for applied in found.steps]

The cost of a program is the sum over its kernels, each of which is paid once however many read it; so the choice is a cover, not a
tree. A choice that makes no program, or that cannot be replayed as checked steps, is discarded and counted, and the next one tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from extract.cover import Search, exact_choice, local_search
from leir.ir import Program
from rewrite.apply import Applied
from rewrite.egraph.assemble import Problem, assemble
from rewrite.egraph.classes import Choice, rank
from rewrite.egraph.explain import Explainer
from rewrite.egraph.options import KernelCost, kernel_cost
from rewrite.egraph.result import EGraphResult


@dataclass(frozen=True, slots=True)
class Extraction:
    """``cost`` is that of ``program``, ``original_cost`` that of the program that saturation started from; ``steps`` lead from that
    to ``program``. ``bound`` is the least cost of any choice that was seen, ``optimal`` whether it is known that none is less.
    ``discarded``: by reason, how many cheaper choices were given up."""

    program: Program
    cost: float
    original_cost: float
    steps: tuple[Applied, ...]
    bound: float
    optimal: bool
    considered: int
    discarded: Counter[str] = field(default_factory=Counter)


def extract(
    program: Program, result: EGraphResult, cost: KernelCost, *, exact: bool = False, tries: int = 64, width: int = 12
) -> Extraction:
    """The cheapest program of the root class that replays from ``program``, the one that was saturated.

    ``tries``: how many choices are replayed at most, cheapest first; the original is always among them. ``width``: how many kernels
    per class the search considers. ``exact`` searches all choices by branch and bound, as far as its budget goes.
    """
    if program != result.program:
        raise ValueError("the e-graph is that of another program")
    return next(candidates(result, cost, exact=exact, tries=tries, width=width))


def candidates(
    result: EGraphResult, cost: KernelCost, *, exact: bool = False, tries: int = 64, width: int = 12
) -> Iterator[Extraction]:
    """The programs that replay, cheapest first by the cost of their kernels; the original program is the last."""
    one = _memoised(partial(kernel_cost, result.flow, cost))
    explainer = Explainer(result)
    known = explainer.kernels(result.program)
    original = sum(one(k) for k in known if k is not None)
    view = result.classes
    search = Search(view, rank(view, one), width)
    local_search(search)
    optimal = exact and exact_choice(search)
    queue = search.by_cost()
    bound = queue[0][0] if queue else original
    discarded: Counter[str] = Counter()
    for considered, (price, _, choice) in enumerate(queue[:tries], 1):
        if price >= original:
            break
        found = _replayed(result, explainer, choice)
        if isinstance(found, Problem):
            discarded[found.code] += 1
            continue
        last, steps = found
        total = sum(one(k) for k in explainer.kernels(last) if k is not None)
        if total < original:
            yield Extraction(last, total, original, steps, bound, optimal, considered, Counter(discarded))
    yield Extraction(result.program, original, original, (), min(bound, original), optimal, len(queue), discarded)


def _replayed(result: EGraphResult, explainer: Explainer, choice: Choice) -> tuple[Program, tuple[Applied, ...]] | Problem:
    made = assemble(result.classes, choice)
    if isinstance(made, Problem):
        return made
    explanation = explainer.explain(made.kernels)
    if isinstance(explanation, Problem):
        return explanation
    return explanation.program, explanation.steps


def _memoised(function: Callable[[int], float]) -> Callable[[int], float]:
    kept: dict[int, float] = {}

    def one(kernel: int) -> float:
        if kernel not in kept:
            kept[kernel] = function(kernel)
        return kept[kernel]

    return one
