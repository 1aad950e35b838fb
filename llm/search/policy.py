"""What to try next from a node. A policy yields proposals one at a time, and may look at ``node.attempts`` in between to see what
became of the ones before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from random import Random
from typing import Any, Protocol

from llm.search.evaluator import Modelled
from llm.search.node import Node, Proposal, legal_step
from rewrite.enumerate import Found


class Policy(Protocol):
    """Proposes candidates. What it proposes depends on its settings and the node alone, never on when it is asked."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """``name`` and whatever else decides its proposals, as plain data; no secrets."""
        ...

    @property
    def work(self) -> Mapping[str, int]:
        """What it used on top of evaluations, by name."""
        ...

    def restore(self, recorded: Sequence[Mapping[str, Any]]) -> None:
        """Candidates that an interrupted run recorded, in order. A policy that asks somebody gives these again instead."""
        ...

    def propose(self, node: Node, legal: Sequence[Found]) -> Iterator[Proposal]:
        """Proposals for ``node``, of which ``legal`` are all legal steps."""
        ...


class Uniform:
    """The legal steps in an order drawn by ``seed``: the same for a program wherever a search meets it."""

    def __init__(self, seed: int = 0) -> None:
        self.settings: Mapping[str, Any] = {"name": "uniform", "seed": seed}
        self.work: Mapping[str, int] = {}
        self._seed = seed

    def restore(self, recorded: Sequence[Mapping[str, Any]]) -> None:
        """Nothing to do: the same order will be drawn."""

    def propose(self, node: Node, legal: Sequence[Found]) -> Iterator[Proposal]:
        order = list(legal)
        Random(f"{self._seed}:{node.key}").shuffle(order)
        return map(legal_step, order)


class RooflineGreedy:
    """The legal steps by modelled cost, cheapest first. The model looks at every legal step, which `work` counts: beside a search
    that is scored by the same model, this is not free."""

    def __init__(self, model: Modelled) -> None:
        self.settings: Mapping[str, Any] = {"name": "roofline", "model": model.name}
        self._model = model
        self._looks = 0

    @property
    def work(self) -> Mapping[str, int]:
        return {"modelled": self._looks}

    def restore(self, recorded: Sequence[Mapping[str, Any]]) -> None:
        """Nothing to do: the model will say the same."""

    def propose(self, node: Node, legal: Sequence[Found]) -> Iterator[Proposal]:
        self._looks += len(legal)
        costs = [self._model.evaluate(found.program, found.key).seconds for found in legal]
        order = sorted(range(len(legal)), key=lambda k: (inf if (cost := costs[k]) is None else cost, k))
        return (legal_step(legal[k]) for k in order)
