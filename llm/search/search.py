"""What all searches share: the nodes reached, the keys seen, the budget, the run file.

An algorithm is a function of a `Search`: it calls `expand` on the nodes that it chooses until it has none. The search evaluates
each program once, so a step that undoes another leads nowhere; and when the budget is spent, `expand` and `fastest_open` return
nothing, so that algorithms end without looking at it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from leir.files import to_json
from leir.ir import Program
from leir.key import key
from leir.printer import print_program
from llm.search.budget import Budget, Stop, Used
from llm.search.evaluator import Evaluator
from llm.search.node import Attempt, Node, Proposal, Score
from llm.search.policy import Policy
from llm.search.run_file import RunMismatch
from rewrite.enumerate import enumerate_steps
from rules.rounding import loosest
from rules.strategy import Rounding, Target


class RootFailed(ValueError):
    """The original program itself has no score, so there is nothing to compare with."""


class Log(Protocol):
    """Where events go, and those that an interrupted run left; `llm.search.run_file.RunLog` is one."""

    @property
    def recorded(self) -> Sequence[Mapping[str, Any]]: ...
    def append(self, event: Mapping[str, Any]) -> None: ...


class Unwritten:
    """A log that keeps the events in memory."""

    def __init__(self, recorded: Sequence[Mapping[str, Any]] = ()) -> None:
        self.recorded = recorded
        self.events: list[Mapping[str, Any]] = []

    def append(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)


class Search:
    """One run. ``width`` is the beam's; ``branch`` is how many programs one call of `expand` evaluates, None all."""

    def __init__(
        self,
        program: Program,
        policy: Policy,
        evaluator: Evaluator,
        budget: Budget,
        *,
        target: Target = "llvm",
        width: int = 1,
        branch: int | None = 8,
        log: Log | None = None,
        progress: Callable[[Search], None] | None = None,
    ) -> None:
        """Evaluates ``program``. Raises RootFailed, and RunMismatch where the log's record does not fit."""
        self.policy, self.evaluator, self.budget = policy, evaluator, budget
        self.target: Target = target
        self.width, self.branch = width, branch
        self.evaluations = self.answers = 0
        self.verdicts: Counter[str] = Counter()
        self.stop: Stop | None = None
        self._progress = progress
        self._log: Log = Unwritten() if log is None else log
        self._recorded = list(self._log.recorded)[::-1]
        self._passed = 0.0
        self._clock = time.monotonic()
        self._open: dict[int, Iterator[Proposal]] = {}
        self._closed: set[int] = set()
        policy.restore([event for event in self._log.recorded if event["event"] == "candidate"])

        own = key(program)
        seconds = self._root_seconds(program, own)
        self.root = self.best = Node(0, program, own, seconds)
        self.nodes = [self.root]
        self._seen = {own}

    def run(self, algorithm: Callable[[Search], None]) -> Stop:
        """Runs ``algorithm`` to its end and writes down the result."""
        algorithm(self)
        if self._recorded:
            raise RunMismatch(f"the run that is resumed has {len(self._recorded)} candidates more than this search tries")
        reason: Stop = self.stop or "exhausted"
        self._log.append(self._end(reason))
        return reason

    def expand(self, node: Node) -> list[Node]:
        """New children of ``node``, in the order of the policy. A later call goes on where this one stopped."""
        children: list[Node] = []
        if not self._is_open(node):
            return children
        proposals = self._open.get(node.number)
        if proposals is None:
            legal = tuple(enumerate_steps(node.program, self.target))
            proposals = self._open[node.number] = self.policy.propose(node, legal)
        tried = 0
        while self.branch is None or tried < self.branch:
            if self._spent():
                break
            proposal = next(proposals, None)
            if proposal is None:
                self._closed.add(node.number)
                del self._open[node.number]
                break
            child, evaluated = self._consider(node, proposal)
            tried += evaluated
            if child is not None:
                children.append(child)
        return children

    def fastest_open(self, count: int) -> list[Node]:
        """The fastest nodes that can still be expanded; none when the budget is spent."""
        return [] if self._spent() else fastest([node for node in self.nodes if self._is_open(node)], count)

    @property
    def used(self) -> Used:
        return Used(self.evaluations, self.answers, self._seconds())

    # --------------------------------------------------------------------------------------------------------------- one candidate

    def _consider(self, node: Node, proposal: Proposal) -> tuple[Node | None, bool]:
        """The child that ``proposal`` leads to, if any, and whether it was evaluated."""
        repeat = proposal.program is not None and proposal.key in self._seen
        asked = proposal.answer is not None
        if repeat and not asked:
            return None, False
        recorded = self._next_recorded("candidate", proposal)
        self.answers += asked
        self.verdicts[proposal.verdict] += 1
        score = None
        if proposal.program is not None and not repeat:
            self._seen.add(proposal.key)
            self.evaluations += 1
            score = self._score(proposal, loosest((node.rounding, proposal.rounding)), recorded)
        child = self._child(node, proposal, score)
        if recorded is None:
            self._log.append(self._candidate(node, proposal, score, repeat))
        node.attempts.append(Attempt(proposal, score, repeat))
        if self._progress is not None:
            self._progress(self)
        return child, score is not None

    def _score(self, proposal: Proposal, rounding: Rounding, recorded: Mapping[str, Any] | None) -> Score:
        if recorded is not None:
            return Score(recorded["seconds"], recorded["status"], recorded["score_detail"])
        assert proposal.program is not None
        return self.evaluator.evaluate(proposal.program, proposal.key, rounding)

    def _child(self, node: Node, proposal: Proposal, score: Score | None) -> Node | None:
        if score is None or score.seconds is None:
            return None
        assert proposal.program is not None
        rounding = loosest((node.rounding, proposal.rounding))
        child = Node(self.evaluations, proposal.program, proposal.key, score.seconds, node, node.depth + 1, proposal, rounding)
        self.nodes.append(child)
        if child.seconds < self.best.seconds:
            self.best = child
        return child

    def _is_open(self, node: Node) -> bool:
        return node.number not in self._closed and (self.budget.depth is None or node.depth < self.budget.depth)

    # ------------------------------------------------------------------------------------------------------- budget and resumption

    def _spent(self) -> bool:
        used = self.used
        if self._recorded:  # the interrupted run had not stopped here, whatever its clock said
            used = replace(used, seconds=0.0)
        self.stop = self.stop or self.budget.spent(used)
        return self.stop is not None

    def _seconds(self) -> float:
        return self._passed + time.monotonic() - self._clock

    def _next_recorded(self, event: str, proposal: Proposal | None = None) -> Mapping[str, Any] | None:
        """The event that an interrupted run wrote at this point, if it came so far."""
        if not self._recorded:
            return None
        recorded = self._recorded.pop()
        expected = (event, None, None) if proposal is None else (event, proposal.verdict, proposal.key or None)
        found = (recorded["event"], recorded.get("verdict"), recorded.get("key"))
        if found != expected:
            raise RunMismatch(f"the run that is resumed went another way: {_words(found)}, and now it is {_words(expected)}")
        self._passed, self._clock = float(recorded["elapsed_s"]), time.monotonic()
        return recorded

    # -------------------------------------------------------------------------------------------------------------------- events

    def _root_seconds(self, program: Program, own: str) -> float:
        recorded = self._next_recorded("root")
        if recorded is not None:
            return float(recorded["seconds"])
        score = self.evaluator.evaluate(program, own, "bitwise")
        if score.seconds is None:
            raise RootFailed(f"the original program has no score: {score.status}: {score.detail}")
        self._log.append({"event": "root", "seconds": score.seconds, "elapsed_s": round(self._seconds(), 3)})
        return score.seconds

    def _candidate(self, node: Node, proposal: Proposal, score: Score | None, repeat: bool) -> dict[str, Any]:
        written = proposal.program is not None and proposal.step is None
        return {
            "event": "candidate",
            "evaluation": self.evaluations if score is not None else None,
            "parent": node.number,
            "verdict": proposal.verdict,
            "detail": proposal.detail,
            "repeat": repeat,
            "step": None if proposal.step is None else str(proposal.step),
            "leir": print_program(proposal.program) if written and proposal.program is not None else None,
            "key": proposal.key or None,
            "rounding": proposal.rounding,
            "seconds": None if score is None else score.seconds,
            "status": None if score is None else score.status,
            "score_detail": "" if score is None else score.detail,
            "best": self.best.seconds,
            "answer": None if proposal.answer is None else proposal.answer.to_json(),
            "elapsed_s": round(self._seconds(), 3),
        }

    def _end(self, reason: Stop) -> dict[str, Any]:
        best = self.best
        return {
            "event": "end",
            "reason": reason,
            "evaluations": self.evaluations,
            "answers": self.answers,
            "verdicts": dict(sorted(self.verdicts.items())),
            "work": dict(self.policy.work),
            "best": best.number,
            "root_seconds": self.root.seconds,
            "seconds": best.seconds,
            "steps": best.moves,
            "rounding": best.rounding,
            "key": best.key,
            "program": to_json(best.program),
            "elapsed_s": round(self._seconds(), 3),
        }


def fastest(nodes: Sequence[Node], count: int) -> list[Node]:
    """The ``count`` fastest of ``nodes``; of equally fast ones those that were reached first."""
    return sorted(nodes, key=lambda node: (node.seconds, node.number))[:count]


def _words(event: tuple[Any, ...]) -> str:
    return " ".join(str(part) for part in event if part is not None)
