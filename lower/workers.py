"""A pool of warm worker processes that build, run and time programs.

    with WorkerPool(workers=2, timeout_s=30, memory_gib=4) as pool:
        outcomes = pool.map(jobs)

Every worker has TVM loaded and does one job at a time. A job that takes longer than ``timeout_s`` is killed with its worker; a
worker that dies is replaced; either way the job gets a typed `Outcome`. Results come in the order of the jobs and do not depend on
the number of workers.

The time and memory limits keep a bad program from taking the machine down by accident. They are limits, not a sandbox: a worker
has the rights of the user who started it, and runs machine code made from the program.

Workers are fresh interpreters (never forks), so it does not matter what the parent has loaded. Jobs and results are pickled by
`multiprocessing.connection` over a socket pair that only the two processes hold.
"""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType

from lower.jobs import Job
from lower.outcome import Outcome

START_TIMEOUT_S = 120.0
JOBS_PER_WORKER = 1000
"""A worker grows by about 0.7 MB per program that it builds (facts-tvm.md, b), so it is replaced now and then."""


class WorkerStartError(RuntimeError):
    """A worker did not come up: TVM does not load, or the machine is out of memory."""


def _cores() -> int:
    """The cores for P loops. Left alone, TVM halves the number of CPUs on x86, in case two of them are one core; here it asks."""
    own = os.sched_getaffinity(0)
    siblings = [Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") for cpu in sorted(own)]
    return len({path.read_text() for path in siblings if path.exists()}) or len(own)


class Worker:
    """One process. Not for use from two threads at once."""

    def __init__(self, memory_gib: float) -> None:
        here, there = socket.socketpair()
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process; a pipe could fill up and block
        with there:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "lower.worker_process", str(there.fileno()), str(memory_gib)],
                pass_fds=(there.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self.errors,
                cwd=Path(__file__).resolve().parents[1],  # where `lower` is found, installed or not
                start_new_session=True,  # an interrupt from the keyboard is the parent's business
                env={**os.environ, "TVM_NUM_THREADS": str(_cores())},
            )
        self.connection = Connection(here.detach())
        self.jobs = 0
        self.ready = False

    def wait_until_ready(self) -> None:
        """Raises WorkerStartError."""
        if self.ready:
            return
        try:
            if self.connection.poll(START_TIMEOUT_S) and self.connection.recv() == "ready":
                self.ready = True
                return
            reason = f"no answer in {START_TIMEOUT_S:.0f} s"
        except (EOFError, ConnectionError):
            reason = "it ended"
        raise WorkerStartError(f"a worker did not start: {reason}\n{self.stop()}".rstrip())

    def do(self, job: Job, timeout_s: float) -> Outcome:
        """The outcome of ``job``. After any but an answer in time the worker is dead."""
        self.jobs += 1
        try:
            self.connection.send((job, timeout_s))
            if self.connection.poll(timeout_s):
                answer = self.connection.recv()
                assert isinstance(answer, Outcome)
                return answer
        except (EOFError, ConnectionError):
            return self._post_mortem()
        self.stop()
        return Outcome("timeout", message=f"no result after {timeout_s:g} s")

    def alive(self) -> bool:
        return not self.connection.closed

    def stop(self) -> str:
        """Ends the process, if it still runs; the last lines of what it wrote on its error stream."""
        if self.connection.closed:
            return ""
        self.process.kill()
        return self._reap()

    def _reap(self) -> str:
        self.connection.close()
        self.process.wait()
        with self.errors as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1000))
            return file.read().decode("utf-8", "replace").strip()

    def _post_mortem(self) -> Outcome:
        complaint = self._reap()
        code = self.process.returncode
        if "out of memory" in complaint or "bad_alloc" in complaint:  # LLVM and C++ end the process
            return Outcome("out-of-memory", message=complaint)
        if code < 0:
            return Outcome("crash", message=f"the worker was killed by {signal.Signals(-code).name}")
        return Outcome("crash", message=f"the worker ended with status {code}\n{complaint}".strip())


class WorkerPool:
    """See the module. ``timeout_s`` and ``memory_gib`` hold per job; ``memory_gib`` comes on top of what a warm worker has."""

    def __init__(self, *, workers: int = 2, timeout_s: float = 60.0, memory_gib: float = 4.0) -> None:
        if workers < 1:
            raise ValueError("a pool needs at least one worker")
        self.workers = workers
        self.timeout_s = timeout_s
        self.memory_gib = memory_gib
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()
        self._alone = threading.Lock()
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="lower-worker")
        for _ in range(workers):
            self._idle.put(Worker(memory_gib))

    def run(self, job: Job, *, timeout_s: float | None = None) -> Outcome:
        """The outcome of one job. Raises WorkerStartError."""
        worker = self._idle.get()
        try:
            worker.wait_until_ready()
            return worker.do(job, timeout_s or self.timeout_s)
        except BaseException:  # an interrupt leaves the worker in the middle of a job
            worker.stop()
            raise
        finally:
            self._idle.put(self._renewed(worker))

    def submit(self, job: Job) -> Future[Outcome]:
        """The outcome of one job, later."""
        return self._threads.submit(self.run, job)

    def map(self, jobs: Iterable[Job]) -> list[Outcome]:
        """The outcomes of ``jobs``, in their order."""
        return [future.result() for future in [self.submit(job) for job in jobs]]

    def run_alone(self, job: Job, *, timeout_s: float | None = None) -> Outcome:
        """As `run`, while no other worker of this pool works: for timing."""
        with self._alone:
            others = [self._idle.get() for _ in range(self.workers - 1)]
            try:
                return self.run(job, timeout_s=timeout_s)
            finally:
                for worker in others:
                    self._idle.put(worker)

    def close(self) -> None:
        """Waits for the jobs under way, then ends the workers."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        while not self._idle.empty():
            self._idle.get().stop()

    def _renewed(self, worker: Worker) -> Worker:
        if worker.alive() and worker.jobs < JOBS_PER_WORKER:
            return worker
        worker.stop()
        return Worker(self.memory_gib)

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
