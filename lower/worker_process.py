"""The worker's side: loads TVM, then answers one job after another on a socket that it inherited.

Started as ``python -m lower.worker_process FD`` by `lower.workers`, so the parent's main module is not imported again.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
from multiprocessing.connection import Connection

from lower.outcome import Outcome

GIB = 1 << 30
GRACE_S = 5.0
MAX_MESSAGE = 2000


def serve(connection: Connection, memory_gib: float) -> None:
    """Answers jobs until the other side hangs up. Each may take ``memory_gib`` of address space on top of what TVM took."""
    _load()
    _limit(memory_gib)
    connection.send("ready")
    while True:
        try:
            job, seconds = connection.recv()
        except EOFError:
            return
        # the parent kills a job that takes too long; should the parent be gone by then, the alarm ends the process
        signal.setitimer(signal.ITIMER_REAL, seconds + GRACE_S)
        answer = _answer(job)
        signal.setitimer(signal.ITIMER_REAL, 0)
        connection.send(answer)


def _load() -> None:
    # TVM imports torch where it can, for nothing that is used here; that would take seconds and address space
    sys.modules["torch"] = None  # type: ignore[assignment]
    import lower.build
    import lower.jobs  # noqa: F401


def _limit(memory_gib: float) -> None:
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    limit = now + int(memory_gib * GIB)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(job: object) -> Outcome:
    from lower.jobs import BuildFailed
    from lower.plan import LoweringRefused

    try:
        return Outcome("ok", job.run())  # type: ignore[attr-defined]
    except LoweringRefused as refused:
        return Outcome("refused", message=str(refused))
    except MemoryError as error:
        return Outcome("out-of-memory", message=_first(error))
    except BuildFailed as error:
        return Outcome("out-of-memory" if _is_allocation(error) else "build-error", message=_first(error))
    except Exception as error:  # noqa: BLE001 - the boundary: whatever a job raises is its outcome
        return Outcome("out-of-memory" if _is_allocation(error) else "run-error", message=_first(error))


def _is_allocation(error: Exception) -> bool:
    """Whether C++ ran out of memory: TVM hands ``std::bad_alloc`` over as an error with that text."""
    text = str(error)
    return "bad_alloc" in text or "Cannot allocate" in text or "allocate memory" in text


def _first(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:MAX_MESSAGE]


def main() -> None:
    descriptor, memory = int(sys.argv[1]), float(sys.argv[2])
    with socket.socket(fileno=descriptor) as inherited:
        serve(Connection(inherited.detach()), memory)


if __name__ == "__main__":
    main()
