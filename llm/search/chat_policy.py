"""The policy that asks a model behind an endpoint. Whatever it says becomes a proposal with a verdict, and is recorded."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from leir.key import key
from leir.parser import parse
from llm.search.endpoint import Endpoint, Reply, ask
from llm.search.judge import Judge
from llm.search.node import Answer, Node, Proposal, legal_step
from llm.search.prompt import build_prompt
from llm.search.run_file import RunMismatch
from rewrite.enumerate import Found

PATIENCE = 5
"""So many answers in a row that bring nothing new, and a node is left."""


class ChatPolicy:
    """Asks once per proposal. Resumed, it first gives the answers again that were recorded."""

    def __init__(self, endpoint: Endpoint, judge: Judge, sleep: Callable[[float], None] = time.sleep) -> None:
        self.settings: Mapping[str, Any] = {
            "name": "endpoint",
            "base_url": endpoint.base_url,
            "model": endpoint.model,
            "temperature": endpoint.temperature,
            "max_tokens": endpoint.max_tokens,
        }
        self._endpoint, self._judge, self._sleep = endpoint, judge, sleep
        self._recorded: deque[Mapping[str, Any]] = deque()
        self._tries = self._tokens = 0

    @property
    def work(self) -> Mapping[str, int]:
        return {"requests": self._tries, "tokens": self._tokens}

    def restore(self, recorded: Sequence[Mapping[str, Any]]) -> None:
        self._recorded = deque(recorded)

    def propose(self, node: Node, legal: Sequence[Found]) -> Iterator[Proposal]:
        fruitless = 0
        while fruitless < PATIENCE:
            proposal = self._again(self._recorded.popleft(), node, legal) if self._recorded else self._ask(node, legal)
            assert proposal.answer is not None
            self._tries += len(proposal.answer.tries)
            self._tokens += proposal.answer.tokens
            yield proposal
            fruitless = fruitless + 1 if node.attempts[-1].score is None else 0

    def _ask(self, node: Node, legal: Sequence[Found]) -> Proposal:
        prompt = build_prompt(node, legal, self._judge.target)
        reply = ask(self._endpoint, prompt.messages, self._sleep)
        return replace(self._judged(reply, node, prompt.shown, legal), answer=reply.answer)

    def _judged(self, reply: Reply, node: Node, shown: Sequence[Found], legal: Sequence[Found]) -> Proposal:
        if reply.fault is not None:
            return Proposal(reply.fault, reply.detail)
        return self._judge.judge(reply.content, node, shown, legal)

    def _again(self, event: Mapping[str, Any], node: Node, legal: Sequence[Found]) -> Proposal:
        """The proposal of a recorded event. Nobody is asked, and nothing is run."""
        answer = _answer(event["answer"])
        if event["key"] is None:
            return Proposal(event["verdict"], event["detail"], answer=answer)
        if event["step"] is not None:
            found = next((f for f in legal if str(f.step) == event["step"]), None)
            if found is None:
                raise RunMismatch(f"the run that is resumed took the step {event['step']}, which is not legal here now")
            return legal_step(found, answer)
        program = parse(event["leir"], node.program.signature)
        return Proposal(event["verdict"], event["detail"], program, key(program), None, event["rounding"], answer)


def _answer(obj: Mapping[str, Any]) -> Answer:
    return Answer(obj["text"], obj["length"], obj["blake2b"], tuple(obj["tries"]), obj["prompt"], obj["tokens"])
