"""What the tests of searches share: small programs, a cost that is arithmetic, a run file with its times taken out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leir.ir import Known, Program, Signature
from leir.parser import parse
from leir.printer import print_program
from llm.search.algorithms import ALGORITHMS
from llm.search.budget import Budget
from llm.search.evaluator import Evaluator, Modelled
from llm.search.policy import Policy, Uniform
from llm.search.run_file import RunLog, header
from llm.search.search import Search

SOFTMAX = parse(
    "L^{6}_{a=0}L^{8}_{c=0}[D^{f32,g}_{a}=max(D^{f32,g}_{a},A^{f32,g}_{a,c});];"
    "L^{6}_{a=0}L^{8}_{c=0}[E^{f32,g}_{a}=E^{f32,g}_{a}+exp(A^{f32,g}_{a,c}-D^{f32,g}_{a});];"
    "L^{6}_{a=0}L^{8}_{c=0}[C^{f32,g}_{a,c}=exp(A^{f32,g}_{a,c}-D^{f32,g}_{a})/E^{f32,g}_{a};];",
    Signature("softmax", (Known("A", "f32", (6, 8), "input"), Known("C", "f32", (6, 8), "output"))),
)
CHAIN = parse(
    "L^{4}_{a=0}[D^{f32,g}_{a}=A^{f32,g}_{a}*2;];L^{4}_{a=0}[E^{f32,g}_{a}=D^{f32,g}_{a}+1;];",
    Signature("chain", (Known("A", "f32", (4,), "input"), Known("E", "f32", (4,), "output"))),
)


def length(program: Program) -> float:
    """A cost that any program has: a microsecond per character."""
    return 1e-6 * len(print_program(program))


def model() -> Modelled:
    return Modelled(length, "length")


def search_into(
    path: Path,
    program: Program = SOFTMAX,
    *,
    algorithm: str = "greedy",
    policy: Policy | None = None,
    evaluator: Evaluator | None = None,
    budget: Budget | None = None,
    width: int = 2,
    branch: int | None = 5,
    resume: bool = False,
    progress: Callable[[Search], None] | None = None,
) -> Search:
    """One whole run into a file."""
    policy, evaluator, budget = policy or Uniform(3), evaluator or model(), budget or Budget(30)
    settings: dict[str, Any] = {"label": algorithm, "evaluator": evaluator.name, "target": "llvm", "policy": policy.settings}
    with RunLog(path, header(program, settings, budget), resume=resume) as log:
        search = Search(program, policy, evaluator, budget, width=width, branch=branch, log=log, progress=progress)
        search.run(ALGORITHMS[algorithm])
    return search


def timeless(path: Path) -> list[dict[str, Any]]:
    """The events of a run without the seconds that passed."""
    events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for event in events:
        event.pop("elapsed_s", None)
    return events
