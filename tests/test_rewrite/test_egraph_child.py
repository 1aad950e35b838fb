"""However saturation ends, the result says so and is usable."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from random import Random

import pytest

from rewrite.egraph.child import Saturator
from rewrite.egraph.options import PHASES, Limits, Options
from rewrite.egraph.report import Report
from rewrite.egraph.result import programs
from tests.test_rewrite.checked import program

MATMUL = """
    # A f32[16,24] input
    # C f32[24,12] input
    # E f32[16,12] output
    L^{16}_{a=0}L^{12}_{c=0}L^{24}_{d=0}[D^{f32,g}_{a,c}=D^{f32,g}_{a,c}+A^{f32,g}_{a,d}*C^{f32,g}_{d,c};];
    L^{16}_{a=0}L^{12}_{c=0}[E^{f32,g}_{a,c}=max(D^{f32,g}_{a,c},0);];
"""


@pytest.fixture(scope="module")
def saturator() -> Iterator[Saturator]:
    with Saturator() as process:
        yield process


def limited(iterations: int = 3, rows: int = 20_000, seconds: float = 5.0) -> Options:
    return Options(limits=dict.fromkeys(PHASES, Limits(iterations, rows, seconds)), cycles=1)


@pytest.mark.parametrize(
    ("options", "stop"),
    [
        (limited(iterations=1), "iteration-limit"),
        (limited(rows=500), "row-limit"),
        (limited(seconds=0.0), "time-limit"),
        (Options(strategies=("compute_inline", "factorization")), "saturated"),
    ],
)
def test_every_stop_has_its_name(saturator: Saturator, options: Options, stop: str) -> None:
    result = saturator.saturate(program(MATMUL), options)
    assert result.report.outcome == stop
    assert stop in {phase.stop for phase in result.report.phases}


def test_the_report_reads_and_writes(saturator: Saturator) -> None:
    report = saturator.saturate(program(MATMUL), limited(iterations=2)).report
    assert json.loads(json.dumps(report.to_json()))["outcome"] == report.outcome
    assert [p.name for p in report.phases] == list(PHASES)
    assert "loop_reorder" in report.text()
    assert report.strategies["loop_reorder"].legal > 0
    assert report.strategies["loop_reorder"].unions > 0


def test_a_timer_ends_it_and_what_was_done_stays(saturator: Saturator) -> None:
    endless = Options(limits=dict.fromkeys(PHASES, Limits(1000, 10**9, 1000.0)), beam=10**6, cycles=1, timeout_s=3.0)
    result = saturator.saturate(program(MATMUL), endless)
    assert result.report.outcome == "killed"
    assert "3 s" in result.report.detail
    assert [p.name for p in result.report.phases] == ["mathematics", "graph", "memory"]
    assert len(list(programs(result, Random(0), 5))) >= 1
    assert saturator.saturate(program(MATMUL), limited(iterations=1)).report.outcome == "iteration-limit"


def test_killed_from_outside_in_the_middle(saturator: Saturator) -> None:
    seen: list[Report] = []

    def kill(report: Report) -> None:
        seen.append(report)
        if len(seen) == 3 and saturator.pid is not None:
            os.kill(saturator.pid, signal.SIGKILL)

    result = saturator.saturate(program(MATMUL), limited(), kill)
    assert result.report.outcome == "crashed"
    assert "SIGKILL" in result.report.detail
    assert len(result.report.phases) >= 3
    assert len(list(programs(result, Random(0), 5))) >= 1


def test_killed_before_the_first_phase_ends() -> None:
    with Saturator() as own:
        own.saturate(program(MATMUL), limited(iterations=1))  # the process is up
        assert own.pid is not None
        os.kill(own.pid, signal.SIGSTOP)  # so it gets nowhere
        timer = threading.Timer(0.3, os.kill, (own.pid, signal.SIGKILL))
        timer.start()
        result = own.saturate(program(MATMUL), limited())
        timer.join()
    assert result.report.outcome == "crashed"
    assert result.report.phases == ()
    assert next(programs(result, Random(0), 1)).program == program(MATMUL)


def test_out_of_memory_is_an_outcome() -> None:
    with Saturator() as own:
        options = Options(
            limits=dict.fromkeys(PHASES, Limits(1000, 10**9, 1000.0)), beam=10**6, cycles=1, memory_gib=0.3, timeout_s=120
        )
        result = own.saturate(program(MATMUL), options)
    assert result.report.outcome == "out-of-memory"


def test_a_program_that_the_checker_rejects_is_not_started() -> None:
    broken = program(MATMUL.replace("D^{f32,g}_{a,c},0", "D^{f32,g}_{a,c+1},0"))
    with Saturator() as own:
        result = own.saturate(broken)
        assert own.pid is None
    assert result.report.outcome == "not-checked"
