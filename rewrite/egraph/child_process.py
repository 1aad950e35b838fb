"""The process that saturates: `python -m rewrite.egraph.child_process FD GIB`. Started by `rewrite.egraph.child` only.

It answers a job with one snapshot per phase and then with None; a failure is answered with a `Failure`.
"""

from __future__ import annotations

import resource
import sys
from multiprocessing.connection import Connection

from rewrite.egraph.job import Failure, Job
from rewrite.egraph.result import EGraphResult


def main() -> None:
    connection = Connection(int(sys.argv[1]))
    limit = int(float(sys.argv[2]) * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    from rewrite.egraph.saturate import Saturation, saturate

    connection.send("ready")
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        assert isinstance(job, Job)

        def snapshot(state: Saturation, seconds: float, job: Job = job) -> None:
            connection.send(
                EGraphResult(
                    job.program,
                    job.options,
                    state.flow,
                    state.originals,
                    state.view.leader,
                    tuple(state.derivations),
                    state.report(seconds),
                )
            )

        try:
            saturate(job.program, job.options, snapshot)
            connection.send(None)
        except MemoryError:
            connection.send(Failure("out-of-memory", f"over the limit of {sys.argv[2]} GiB"))
        except Exception as problem:  # noqa: BLE001 - a bug: the parent gets it with its name, and the process goes on
            connection.send(Failure("crashed", f"{type(problem).__name__}: {problem}"))


if __name__ == "__main__":
    main()
