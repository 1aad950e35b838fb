"""Choosing kernels so that the outputs are computed and the sum of costs is small: greedy with local search, or exact.

Two kernels of a class that read the same and write the same differ only in cost, so of those one or two are enough for a cover; the
others are kept for when the cheapest does not replay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from rewrite.egraph.assemble import Problem, needed_kernels
from rewrite.egraph.classes import Choice, Classes, Ranking

EXACT_NODES = 200_000
PER_SHAPE = 3
"""Kernels kept of those that read the same classes and compute the same classes."""


@dataclass(slots=True)
class Search:
    """The choices seen so far, by the kernels that they need."""

    view: Classes
    ranking: Ranking
    width: int
    seen: dict[tuple[int, ...], tuple[float, Choice]] = field(default_factory=dict)
    _options: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)

    def price(self, choice: Choice) -> float:
        """The cost of the kernels that a choice needs, infinite where it is none; the choice is kept."""
        kernels = needed_kernels(self.view, choice)
        if isinstance(kernels, Problem):
            return inf
        key = tuple(sorted(kernels))
        if key not in self.seen:
            self.seen[key] = sum(self.ranking.cost(k) for k in key), choice
        return self.seen[key][0]

    def options(self, found: int, per_shape: int = PER_SHAPE) -> tuple[int, ...]:
        """The kernels of a class worth a try, cheapest first."""
        key = found, per_shape
        if key not in self._options:
            kept: dict[tuple[object, ...], list[int]] = {}
            useful = set(self.view.useful)
            for kernel in self.ranking.cheapest(found, len(self.view.all_kernels)):
                plain = self.view.flow.template_of(kernel)
                outputs = tuple(v if v in useful else -1 for v in self.view.outputs(kernel))
                shape = (frozenset(self.view.operands(kernel)), frozenset(outputs), bool(plain.in_place))
                kept.setdefault(shape, []).append(kernel)
            best = [kernel for group in kept.values() for kernel in group[:per_shape]]
            self._options[key] = tuple(sorted(best, key=lambda k: (self.ranking.whole(k), k)))
        return self._options[key]

    def by_cost(self) -> list[tuple[float, tuple[int, ...], Choice]]:
        """Every choice seen, cheapest first."""
        return sorted(((price, key, choice) for key, (price, choice) in self.seen.items()), key=lambda entry: entry[:2])


def local_search(search: Search) -> None:
    """From the choice that is cheapest per class, change one kernel at a time while that helps."""
    current: Choice = dict(search.ranking.best)
    best = search.price(current)
    improved = True
    while improved:
        improved = False
        for found in _needed_classes(search.view, current):
            for kernel in search.options(found)[: search.width]:
                changed = {**current, **dict.fromkeys(search.view.outputs(kernel), kernel)}
                price = search.price(changed)
                if price < best:
                    current, best, improved = changed, price, True


def _needed_classes(view: Classes, choice: Choice) -> tuple[int, ...]:
    kernels = needed_kernels(view, choice)
    if isinstance(kernels, Problem):
        return view.useful
    return tuple(dict.fromkeys(v for kernel in reversed(kernels) for v in view.outputs(kernel) if v in view.useful))


def exact_choice(search: Search) -> bool:
    """Branch and bound over all choices; whether it came to an end within its budget."""
    view = search.view
    best = min((price for price, _ in search.seen.values()), default=inf)
    nodes = 0

    def branches(chosen: dict[int, int], kernels: frozenset[int], spent: float, pending: tuple[int, ...]) -> Iterator[float]:
        nonlocal nodes
        nodes += 1
        if nodes > EXACT_NODES:
            return
        open_classes = tuple(v for v in pending if v not in chosen and not view.is_input(v))
        if not open_classes:
            yield search.price(chosen)
            return
        found = open_classes[0]
        for kernel in search.options(found, 1):
            more = 0.0 if kernel in kernels else search.ranking.cost(kernel)
            if spent + more >= best:
                continue
            fresh = {v: kernel for v in view.outputs(kernel) if v not in chosen}
            yield from branches({**chosen, **fresh}, kernels | {kernel}, spent + more, (*open_classes[1:], *view.operands(kernel)))

    for price in branches({}, frozenset(), 0.0, view.roots):
        best = min(best, price)
    return nodes <= EXACT_NODES
