"""One pool of workers for all tests of `lower`: starting one costs a second."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lower.workers import WorkerPool


@pytest.fixture(scope="session")
def pool() -> Iterator[WorkerPool]:
    with WorkerPool(workers=2, timeout_s=20, memory_gib=2) as workers:
        yield workers
