"""What a saturation leaves: the dataflow, its classes, the proof forest, the report; and programs read back from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from random import Random

from leir.ir import Nest, Program
from rewrite.egraph.assemble import Assembled, Problem, assemble
from rewrite.egraph.classes import Classes, classes, random_choice
from rewrite.egraph.dataflow import Dataflow
from rewrite.egraph.growth import Derivation
from rewrite.egraph.options import Options
from rewrite.egraph.proofs import explained
from rewrite.egraph.report import Report


@dataclass(frozen=True)
class EGraphResult:
    """``originals``: the kernels of the original program are the first so many. ``leader`` gives the class of a value."""

    program: Program
    options: Options
    flow: Dataflow
    originals: int
    leader: tuple[int, ...]
    derivations: tuple[Derivation, ...]
    report: Report

    @cached_property
    def classes(self) -> Classes:
        """The classes, with the kernels that compute each."""
        return classes(self.flow, self.leader)

    @cached_property
    def explained(self) -> dict[int, Derivation | None]:
        """The kernels that steps lead to, each with the step that makes it; None for those of the original program."""
        return explained(self.derivations, self.originals, self.classes.same)

    @cached_property
    def derivation_of(self) -> dict[int, list[Derivation]]:
        """By kernel that is not of the original program: what made it, earliest first."""
        found: dict[int, list[Derivation]] = {}
        same = self.classes.same
        for derivation in self.derivations:
            for kernel in derivation.made:
                if same[kernel] >= self.originals:
                    found.setdefault(same[kernel], []).append(derivation)
        return found


@dataclass(slots=True)
class Sample:
    """Random members of the root class. ``skipped``: by reason, how many choices made no program."""

    tried: int = 0
    skipped: Counter[str] = field(default_factory=Counter)


def programs(result: EGraphResult, rng: Random, count: int, sample: Sample | None = None) -> Iterator[Assembled]:
    """Different random members of the root class, from ``count`` random choices of kernels and of their order. Every one passes the
    checker, which proves it defined again; choices that do not are skipped, and counted in ``sample``."""
    sample = sample if sample is not None else Sample()
    seen: set[tuple[Nest, ...]] = set()
    view = result.classes
    for _ in range(count):
        sample.tried += 1
        choice = random_choice(view, rng)
        if choice is None:
            sample.skipped["circle"] += 1
            continue
        weight = {kernel: rng.random() for kernel in dict.fromkeys(choice.values())}
        made = assemble(view, choice, tie=lambda kernel: (weight[kernel], kernel))  # noqa: B023 - used before the next round
        if isinstance(made, Problem):
            sample.skipped[made.code] += 1
        elif made.program.nests in seen:
            sample.skipped["seen"] += 1
        else:
            seen.add(made.program.nests)
            yield made
