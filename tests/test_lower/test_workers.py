"""Worker processes: what they return, and how they end."""

from __future__ import annotations

import time

import numpy as np
import pytest

from lower.draws import draw_inputs
from lower.jobs import Draw, Execute, ExecuteOn, Interpret, encode
from lower.workers import WorkerPool
from tests.test_lower.programs import program

ADD = program("A F[64]; D F[64] output", "L^{64}_{a=0}[D^F_{a}=A^F_{a}+1;];")
NORMAL = (Draw(0, "normal"),)


def execute(tensors: str, text: str) -> Execute:
    return Execute(encode(program(tensors, text)), NORMAL)


# Broken on purpose: the checker would refuse the first; the others only ask for too much.
WRITES_FAR_AWAY = execute("A F[64]; D F[64] output", "L^{1000000}_{a=0}[D^F_{a*1000}=A^F_{0};];")
ENDLESS = execute(
    "A F[64]; D F[64] output", "L^{2000000000}_{a=0}L^{2000}_{c=0}[D^F_{0}=D^F_{0}*0.5+A^F_{(a+c)%64};];L^{64}_{a=0}[D^F_{a}=0;];"
)
HUGE = execute("A F[64]; D F[64] output", "L^{64}_{a=0}L^{1000000000}_{c=0}[E^F_{a,c}=A^F_{a};];L^{64}_{a=0}[D^F_{a}=E^F_{a,a};];")
POWER = execute("A i32[4]; D i32[4] output", "L^{4}_{a=0}[D^{i32,g}_{a}=A^{i32,g}_{a}**A^{i32,g}_{a};];")


def works(pool: WorkerPool) -> bool:
    (got,) = pool.run(Execute(encode(ADD), NORMAL)).value
    return np.array_equal(got["D"], draw_inputs(ADD.signature, 0, "normal")["A"] + 1)


def test_a_program_runs_on_drawn_and_on_given_inputs(pool: WorkerPool) -> None:
    assert works(pool)
    outcome = pool.run(ExecuteOn(encode(ADD), {"A": np.arange(64, dtype=np.float32)}))
    assert outcome.status == "ok"
    np.testing.assert_array_equal(outcome.value["D"], np.arange(1, 65))


def test_a_crash_is_an_outcome_and_the_worker_is_replaced(pool: WorkerPool) -> None:
    outcome = pool.run(WRITES_FAR_AWAY)
    assert outcome.status == "crash"
    assert outcome.message in ("the worker was killed by SIGSEGV", "the worker was killed by SIGABRT")
    assert works(pool)


def test_a_hang_is_killed_in_time(pool: WorkerPool) -> None:
    start = time.monotonic()
    outcome = pool.run(ENDLESS, timeout_s=0.5)
    assert (outcome.status, outcome.message) == ("timeout", "no result after 0.5 s")
    assert time.monotonic() - start < 5
    assert works(pool)


def test_too_much_memory_is_an_outcome(pool: WorkerPool) -> None:
    assert pool.run(HUGE).status == "out-of-memory"
    assert works(pool)


def test_a_program_without_a_lowering_is_refused(pool: WorkerPool) -> None:
    outcome = pool.run(POWER)
    assert outcome.status == "refused"
    assert "integer-power" in outcome.message


def test_an_error_while_running_is_an_outcome(pool: WorkerPool) -> None:
    outcome = pool.run(ExecuteOn(encode(ADD), {}))
    assert outcome.status == "run-error"
    assert "A: expected f32[64], got nothing" in outcome.message
    outcome = pool.run(Interpret({"leir_version": 99}, NORMAL))
    assert outcome.status == "run-error"
    assert "99" in outcome.message


def test_outcomes_come_in_the_order_of_the_jobs(pool: WorkerPool) -> None:
    jobs = [Execute(encode(ADD), (Draw(seed, "normal"),)) for seed in range(6)]
    jobs.insert(2, WRITES_FAR_AWAY)
    outcomes = pool.map(jobs)
    assert [o.status for o in outcomes] == ["ok", "ok", "crash", "ok", "ok", "ok", "ok"]
    good = [o.value[0]["D"] for o in outcomes if o.ok]
    for seed, got in enumerate(good):
        np.testing.assert_array_equal(got, draw_inputs(ADD.signature, seed, "normal")["A"] + 1)


def test_results_do_not_depend_on_the_number_of_workers(pool: WorkerPool) -> None:
    jobs = [Execute(encode(ADD), (Draw(seed, "adversarial"),)) for seed in range(4)]
    with WorkerPool(workers=1, memory_gib=2) as single:
        alone = single.map(jobs)
    together = pool.map(jobs)
    assert [o.value[0]["D"].tobytes() for o in alone] == [o.value[0]["D"].tobytes() for o in together]


def test_a_job_costs_little_beyond_its_work(pool: WorkerPool) -> None:
    empty = [Interpret(encode(ADD), ())] * 40
    pool.map(empty)
    start = time.monotonic()
    pool.map(empty)
    assert (time.monotonic() - start) / len(empty) < 0.02


def test_running_alone_waits_for_the_others_and_lets_them_go(pool: WorkerPool) -> None:
    waiting = [pool.submit(Execute(encode(ADD), NORMAL)) for _ in range(4)]
    assert pool.run_alone(Execute(encode(ADD), NORMAL)).ok
    assert all(future.result().ok for future in waiting)


def test_closing_ends_every_process() -> None:
    with WorkerPool(workers=1) as pool:
        assert works(pool)
        worker = pool._idle.get()
        pool._idle.put(worker)
    assert worker.process.poll() is not None


def test_a_pool_has_workers() -> None:
    with pytest.raises(ValueError, match="at least one"):
        WorkerPool(workers=0)
