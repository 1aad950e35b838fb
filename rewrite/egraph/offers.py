"""Which kernels go to which strategy, and the programs in which they stand there."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from rewrite.egraph.assemble import Assembled, Problem, assemble
from rewrite.egraph.classes import Classes, Ranking
from rules.strategy import Strategy

Group = tuple[int, ...]


@dataclass(slots=True)
class Offers:
    """The offers of one iteration. ``originals``: how many kernels the original program has, which are the first ones.
    ``explained``: the kernels that steps lead to; of the others, a third as many are offered. ``most``:
    how many groups of several kernels are kept, the cheapest."""

    ranking: Ranking
    explained: Container[int]
    beam: int
    originals: int
    most: int
    unplaced: dict[str, int]
    _groups: dict[int, list[Group]] = field(default_factory=dict)
    _programs: dict[tuple[Group, bool], Assembled | None] = field(default_factory=dict)

    @property
    def view(self) -> Classes:
        return self.ranking.classes

    def groups(self, strategy: Strategy) -> Iterator[Group]:
        """The groups of kernels to offer: single ones, or for a strategy that takes several expressions, those that belong
        together, in program order. Cheap ones first."""
        if strategy.unit == "program":
            pair = self._tuples(2)
            yield from [*self._tuples(1), *(group for group in pair if self._feeds(*group))]
        else:
            yield from self._tuples(strategy.width if strategy.unit == "window" else 1)

    def program(self, group: Group, adjacent: bool) -> Assembled | None:
        """The cheapest program that holds a group, side by side if ``adjacent``; None if there is none, which is counted."""
        if len(group) == 1:
            adjacent = False
        key = group, adjacent
        if key not in self._programs:
            self._programs[key] = self._program(group, adjacent)
        return self._programs[key]

    def _program(self, group: Group, adjacent: bool) -> Assembled | None:
        choice = self.ranking.around(group)
        if choice is None:
            self._count("no way to an output")
            return None
        made = assemble(self.view, choice, group if adjacent else ())
        if isinstance(made, Problem):
            self._count(made.code)
            return None
        if any(kernel not in made.kernels for kernel in group):
            self._count("unused")
            return None
        return made

    def _count(self, reason: str) -> None:
        self.unplaced[reason] = self.unplaced.get(reason, 0) + 1

    def _singles(self, beam: int) -> list[int]:
        found: dict[int, None] = {}
        for name in self.view.useful:
            ranked = self.ranking.cheapest(name, len(self.view.all_kernels))
            found.update(dict.fromkeys([k for k in ranked if k in self.explained][:beam]))
            found.update(dict.fromkeys([k for k in ranked if k not in self.explained][: -(-beam // 3)]))
        return list(found)

    def _tuples(self, width: int) -> list[Group]:
        if width not in self._groups:
            self._groups[width] = self._made(width)
        return self._groups[width]

    def _made(self, width: int) -> list[Group]:
        singles = self._singles(max(1, -(-self.beam // width)))
        groups: list[Group] = [(kernel,) for kernel in singles]
        for _ in range(width - 1):
            groups = [(*group, kernel) for group in groups for kernel in self._next(group, singles)]
            groups = sorted(groups, key=lambda group: (sum(self.ranking.cost(k) for k in group), group))[: self.most]
        return groups

    def _next(self, group: Group, singles: list[int]) -> list[int]:
        """Kernels that may follow a group: they read what it makes, or stood beside it in the original program, or read what it
        reads where one of the two stood there."""
        view = self.view
        found: dict[int, None] = {}
        for kernel in group:
            for value in view.outputs(kernel):
                found.update(dict.fromkeys(view.readers.get(value, ())))
            for value in view.operands(kernel):
                readers = view.readers.get(value, ())
                found.update(dict.fromkeys(r for r in readers if r < self.originals or kernel < self.originals))
            if kernel < self.originals:
                found.update(dict.fromkeys(range(self.originals)))
        allowed = set(singles)
        return [kernel for kernel in found if kernel in allowed and self._fits(group, kernel)]

    def _fits(self, group: Group, kernel: int) -> bool:
        if kernel in group or any(self._feeds(kernel, earlier) for earlier in group):
            return False
        outputs = self.view.outputs(kernel)
        return not any(out in self.view.outputs(earlier) for earlier in group for out in outputs)

    def _feeds(self, first: int, second: int) -> bool:
        return not set(self.view.outputs(first)).isdisjoint(self.view.operands(second))
