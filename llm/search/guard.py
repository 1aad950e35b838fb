"""A time limit on reading a model's text.

Text can be made that keeps the checker busy for minutes. So it is examined in a process of its own, which is killed when the
time is over; what the checker let through is then read here.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from leir.files import to_json
from leir.ir import Program
from leir.printer import print_program
from llm.search.text import Sound, Unsound, admit
from rules.strategy import Target

LIMIT_S = 0.5
SCALE = 5.0
"""A text may take this many times as long as the original."""
START_S = 60.0


class GuardFailed(RuntimeError):
    """The process that reads texts does not start."""


class Guard:
    """Examines texts that claim to compute what ``root`` does, each in at most ``limit_s`` seconds, or `SCALE` times what the
    original takes, if that is more. Raises GuardFailed."""

    def __init__(self, root: Program, target: Target, limit_s: float = LIMIT_S) -> None:
        self.root = root
        self.target: Target = target
        self._child = _Child(root, target)
        self._child.wait_until_ready()
        start = time.monotonic()
        self._child.ask(print_program(root), START_S)
        self.limit_s = max(limit_s, SCALE * (time.monotonic() - start))

    def examine(self, text: str) -> Sound | Unsound:
        """As `llm.search.text.examine`; ``undecided`` for what took too long or brought the process down."""
        self._child.wait_until_ready()
        answer = self._child.ask(text, self.limit_s)
        if isinstance(answer, str):
            self._child.stop()
            self._child = _Child(self.root, self.target)
            return Unsound("undecided", answer)
        return admit(text, self.root.signature) if answer["verdict"] is None else Unsound(answer["verdict"], answer["detail"])

    def close(self) -> None:
        self._child.stop()

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class _Child:
    """The process, one JSON object a line each way over its standard streams."""

    def __init__(self, root: Program, target: Target) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "llm.search.guard_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).resolve().parents[2],  # where `llm` is found, installed or not
            start_new_session=True,  # an interrupt from the keyboard is the parent's business
            bufsize=0,
        )
        self.ready = False
        self._send({"program": to_json(root), "target": target})

    def wait_until_ready(self) -> None:
        if not self.ready:
            answer = self._line(START_S)
            if isinstance(answer, str):
                self.stop()
                raise GuardFailed(f"the process that reads texts did not start: {answer}")
            self.ready = True

    def ask(self, text: str, limit_s: float) -> dict[str, Any] | str:
        """The answer, or why there is none."""
        self._send({"text": text})
        return self._line(limit_s)

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
        except BrokenPipeError:  # it has ended, which the next read tells
            return

    def _line(self, limit_s: float) -> dict[str, Any] | str:
        assert self.process.stdout is not None
        end = time.monotonic() + limit_s
        received = b""
        while not received.endswith(b"\n"):
            if not select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
                return f"the checker did not finish within {limit_s:g} s"
            part = os.read(self.process.stdout.fileno(), 65536)
            if not part:
                return "the checker's process ended"
            received += part
        answer: dict[str, Any] = json.loads(received)
        return answer
