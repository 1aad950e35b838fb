"""The classes of the e-graph at one moment, and how a choice of one kernel per class is made."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from random import Random
from typing import TypeAlias

from rewrite.egraph.dataflow import Dataflow

Choice: TypeAlias = Mapping[int, int]
"""Which kernel computes a class, by the leader of the class."""


@dataclass(frozen=True)
class Classes:
    """``leader[v]``: the least value that equals value ``v``; it names the class. A kernel that equals an earlier one (same
    template, operands of the same classes) is left out everywhere: ``same[k]`` is the earlier one."""

    flow: Dataflow
    leader: tuple[int, ...]
    same: tuple[int, ...]
    kernels: Mapping[int, tuple[int, ...]]  # by class: the kernels that compute it, in order
    hidden: frozenset[int] = frozenset()

    def only(self, kept: Container[int]) -> Classes:
        """The same classes with no other kernels than those in ``kept``."""
        kernels = {name: tuple(k for k in found if k in kept) for name, found in self.kernels.items()}
        return replace(self, kernels=kernels, hidden=frozenset(k for k in self.all_kernels if k not in kept))

    def operands(self, kernel: int) -> tuple[int, ...]:
        """The classes that a kernel reads."""
        return self._operands[kernel]

    def outputs(self, kernel: int) -> tuple[int, ...]:
        """The classes that a kernel computes."""
        return self._outputs[kernel]

    @cached_property
    def _operands(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(self.leader[v] for v in self.flow.kernels[k].operands) for k in range(len(self.same)))

    @cached_property
    def _outputs(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(self.leader[v] for v in self.flow.outputs(k)) for k in range(len(self.same)))

    @cached_property
    def roots(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self.leader[v] for v in self.flow.roots.values()))

    @cached_property
    def useful(self) -> tuple[int, ...]:
        """The classes that some way of computing the outputs needs, outputs first. What a kernel writes besides is not one."""
        found = dict.fromkeys(self.roots)
        pending = list(found)
        for name in pending:
            for kernel in self.kernels.get(name, ()):
                new = [v for v in self.operands(kernel) if v not in found]
                found.update(dict.fromkeys(new))
                pending += dict.fromkeys(new)
        return tuple(found)

    @cached_property
    def readers(self) -> Mapping[int, tuple[int, ...]]:
        """By class: the kernels that read it."""
        found: dict[int, list[int]] = {}
        for kernel in self.all_kernels:
            for operand in dict.fromkeys(self.operands(kernel)):
                found.setdefault(operand, []).append(kernel)
        return {key: tuple(kernels) for key, kernels in found.items()}

    @cached_property
    def all_kernels(self) -> tuple[int, ...]:
        return tuple(k for k, first in enumerate(self.same) if k == first and k not in self.hidden)

    def is_input(self, found: int) -> bool:
        return self.flow.values[found].kernel is None


def classes(flow: Dataflow, leader: Sequence[int]) -> Classes:
    """The classes of the kernels that ``leader`` knows."""
    first: dict[tuple[int, ...], int] = {}
    same = []
    kernels: dict[int, list[int]] = {}
    for number, kernel in enumerate(flow.kernels):
        key = (kernel.template, *(leader[v] for v in kernel.operands))
        same.append(first.setdefault(key, number))
        if same[-1] == number:
            for value in flow.outputs(number):
                entries = kernels.setdefault(leader[value], [])
                if number not in entries:
                    entries.append(number)
    return Classes(flow, tuple(leader), tuple(same), {key: tuple(found) for key, found in kernels.items()})


# ---------------------------------------------------------------------------------------------------------------------- choices


@dataclass(frozen=True)
class Ranking:
    """Least costs over the classes, a shared operand counted as often as it is read; the order of cost is acyclic."""

    classes: Classes
    cost: Callable[[int], float]
    total: Mapping[int, float]  # by class
    best: Mapping[int, int]

    def whole(self, kernel: int) -> float:
        """The cost of a kernel with the best way to each operand."""
        return self.cost(kernel) + sum(self.total.get(v, inf) for v in self.classes.operands(kernel))

    def cheapest(self, found: int, count: int) -> tuple[int, ...]:
        """The ``count`` kernels of a class that cost least, earlier ones first among equals."""
        ranked = sorted((self.whole(k), k) for k in self.classes.kernels.get(found, ()))
        return tuple(k for cost, k in ranked[:count] if cost < inf)

    @cached_property
    def way_up(self) -> Mapping[int, int]:
        """By class that is not a root: the kernel that reads it on the cheapest way to a root."""
        up: dict[int, int] = {}
        reached = dict.fromkeys(self.classes.roots, 0.0)
        frontier = set(reached)
        while frontier:
            found = min(frontier, key=lambda c: (reached[c], c))
            frontier.discard(found)
            for kernel in self.classes.kernels.get(found, ()):
                cost = reached[found] + self.whole(kernel)
                for operand in self.classes.operands(kernel):
                    if cost < reached.get(operand, inf) and operand not in self.classes.roots:
                        reached[operand] = cost
                        up[operand] = kernel
                        frontier.add(operand)
        return up

    def around(self, kernels: Iterable[int]) -> Choice | None:
        """The cheapest choice that uses all of ``kernels`` on the way to the outputs, or None where there is no way."""
        forced: dict[int, int] = {}
        pending = list(kernels)
        wanted = set(pending)
        for kernel in pending:
            outputs = self.classes.outputs(kernel)
            for found in outputs:
                if forced.setdefault(found, kernel) != kernel and kernel in wanted and forced[found] in wanted:
                    return None
        for kernel in pending:
            outputs = self.classes.outputs(kernel)
            if any(v in self.classes.roots for v in outputs):
                continue
            read_by_forced = any(v in self.classes.operands(k) for v in outputs for k in forced.values())
            if read_by_forced:
                continue
            up = next((self.way_up[v] for v in outputs if v in self.way_up), None)
            if up is None:
                return None
            for found in self.classes.outputs(up):
                forced.setdefault(found, up)
            pending.append(up)
            if len(pending) > len(self.classes.all_kernels) + 1:
                return None
        return {**self.best, **forced}


def rank(view: Classes, cost: Callable[[int], float]) -> Ranking:
    """Least costs by relaxation; ``cost`` is that of one kernel, positive."""
    total: dict[int, float] = {v: 0.0 for v in range(len(view.leader)) if view.leader[v] == v and view.is_input(v)}
    best: dict[int, int] = {}
    changed = True
    while changed:
        changed = False
        for kernel in view.all_kernels:
            whole = cost(kernel) + sum(total.get(v, inf) for v in view.operands(kernel))
            for found in view.outputs(kernel):
                if whole < total.get(found, inf) and not view.is_input(found):
                    total[found], best[found] = whole, kernel
                    changed = True
    return Ranking(view, cost, total, best)


SHARING = 0.8


def random_choice(view: Classes, rng: Random) -> Choice | None:
    """A random acyclic choice for the outputs; None where chance led into a cycle that it did not get out of. What a chosen kernel
    computes besides is mostly taken from it: two kernels that update one value in place make no program."""
    chosen: dict[int, int] = {}

    def visit(found: int, above: frozenset[int]) -> bool:
        if found in chosen or view.is_input(found):
            return True
        if found in above:
            return False
        options = list(view.kernels.get(found, ()))
        rng.shuffle(options)
        if rng.random() < SHARING:
            options.sort(key=lambda kernel: kernel not in chosen.values())
        for kernel in options:
            before = dict(chosen)
            if all(visit(operand, above | {found}) for operand in view.operands(kernel)):
                chosen[found] = kernel
                return True
            chosen.clear()
            chosen.update(before)
        return False

    return chosen if all(visit(root, frozenset()) for root in view.roots) else None
