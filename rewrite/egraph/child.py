"""Saturation in a process of its own, because egglog cannot be interrupted: a kill timer and a memory limit.

    with Saturator() as saturator:
        result = saturator.saturate(program)

The process is a fresh interpreter, stays for the next program, and is replaced when it was killed or died. Whatever happens, the
result says how it ended and holds what was reached by then: everything up to the last phase that was completed.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from types import TracebackType

from leir.check import check, has_errors
from leir.ir import Program
from rewrite.egraph.dataflow import Dataflow, NotEncodable, encode
from rewrite.egraph.job import Failure, Job
from rewrite.egraph.options import Options
from rewrite.egraph.report import Outcome, Report
from rewrite.egraph.result import EGraphResult

START_TIMEOUT_S = 120.0
JOBS_PER_PROCESS = 40
"""Memo tables grow with every program, so the process is replaced now and then."""


class SaturatorStartError(RuntimeError):
    """The process did not come up: egglog does not load, or the machine is out of memory."""


class Saturator:
    """Owns the process. Not for use from two threads at once."""

    def __init__(self) -> None:
        self._process: _Process | None = None

    def __enter__(self) -> Saturator:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    @property
    def pid(self) -> int | None:
        """The number of the process, while there is one."""
        return None if self._process is None else self._process.process.pid

    def saturate(
        self, program: Program, options: Options | None = None, progress: Callable[[Report], None] | None = None
    ) -> EGraphResult:
        """The e-graph of a program. ``progress`` gets the report of every phase when it ends.

        Never raises for what happens in the process: ``report.outcome`` says it. Raises SaturatorStartError if there is none."""
        chosen = options or Options()
        errors = check(program)
        if has_errors(errors):
            first = next(d for d in errors if d.severity == "error")
            return _empty(program, chosen, Report("not-checked", f"{first.code}: {first.message}"))
        try:
            flow = encode(program)
        except NotEncodable as problem:
            return _empty(program, chosen, Report("not-encodable", str(problem)))
        found = EGraphResult(program, chosen, flow, len(flow.kernels), tuple(range(len(flow.values))), (), Report("saturated"))
        started = perf_counter()
        process = self._ready(chosen.memory_gib)

        def ended(outcome: Outcome, detail: str) -> EGraphResult:
            report = replace(found.report, outcome=outcome, detail=detail, seconds=perf_counter() - started)
            return replace(found, report=report)

        deadline = started + chosen.timeout_s
        try:
            process.connection.send(Job(program, chosen))
            while process.connection.poll(max(0.0, deadline - perf_counter())):
                answer = process.connection.recv()
                if answer is None:
                    return found
                if isinstance(answer, Failure):
                    return ended(answer.outcome, answer.detail)
                assert isinstance(answer, EGraphResult)
                found = answer
                if progress is not None:
                    progress(found.report)
        except (EOFError, ConnectionError):
            self._process = None
            return ended(*process.post_mortem())
        self.close()
        return ended("killed", f"not ready after {chosen.timeout_s:g} s; what follows is up to the last completed phase")

    def _ready(self, memory_gib: float) -> _Process:
        old = self._process
        if old is not None and (old.jobs >= JOBS_PER_PROCESS or old.memory_gib != memory_gib or old.process.poll() is not None):
            self.close()
        if self._process is None:
            self._process = _Process(memory_gib)
            self._process.wait()
        self._process.jobs += 1
        return self._process


def _empty(program: Program, options: Options, report: Report) -> EGraphResult:
    """A result without a single kernel."""
    return EGraphResult(program, options, Dataflow(program.signature), 0, tuple(range(len(program.signature.inputs))), (), report)


class _Process:
    def __init__(self, memory_gib: float) -> None:
        self.memory_gib = memory_gib
        self.jobs = 0
        here, there = socket.socketpair()
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process; a pipe could fill up and block
        with there:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "rewrite.egraph.child_process", str(there.fileno()), str(memory_gib)],
                pass_fds=(there.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self.errors,
                cwd=Path(__file__).resolve().parents[2],
                start_new_session=True,  # an interrupt from the keyboard is the parent's business
            )
        self.connection = Connection(here.detach())

    def wait(self) -> None:
        try:
            if self.connection.poll(START_TIMEOUT_S) and self.connection.recv() == "ready":
                return
            reason = f"no answer in {START_TIMEOUT_S:.0f} s"
        except (EOFError, ConnectionError):
            reason = "it ended"
        raise SaturatorStartError(f"the process that saturates did not start: {reason}\n{self.stop()}".rstrip())

    def stop(self) -> str:
        """Ends the process; the last lines of what it wrote on its error stream."""
        self.process.kill()
        self.connection.close()
        self.process.wait()
        with self.errors as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1000))
            return file.read().decode("utf-8", "replace").strip()

    def post_mortem(self) -> tuple[Outcome, str]:
        """What ended the process."""
        self.process.wait()
        code = self.process.returncode
        complaint = self.stop()
        if "memory allocation" in complaint or "MemoryError" in complaint or "bad_alloc" in complaint:
            return "out-of-memory", complaint.splitlines()[-1] if complaint else ""
        if code < 0:
            return "crashed", f"the process was ended by {signal.Signals(-code).name}"
        return "crashed", f"the process ended with status {code}: {complaint[-300:]}"
