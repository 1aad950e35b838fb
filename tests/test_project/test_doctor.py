"""`leir doctor` reports what is here, and says what to do about what is not."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from packaging.requirements import Requirement

from leir import doctor
from leir.doctor import Finding, Report, library


def test_the_environment_of_the_tests_is_healthy_and_complete() -> None:
    run = subprocess.run([sys.executable, "-m", "leir.cli", "doctor", "--json"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    report = json.loads(run.stdout)
    assert report["healthy"] is True
    details = {f["name"]: f["detail"] for f in report["findings"]}
    assert {"python", "cpu", "apache-tvm", "apache-tvm-ffi", "islpy", "torch", "egglog", "nvcc", "nvrtc"} <= details.keys()
    assert details["apache-tvm-ffi"] == "0.1.14.post1"
    assert " build, " in details["torch"]
    assert "target llvm" in details["apache-tvm"]


def test_a_library_that_is_not_there() -> None:
    found = library(Requirement("leir-no-such-library>=2"))
    assert found == Finding(
        "leir-no-such-library", "missing", ">=2 is required", "pip install -c constraints.txt 'leir-no-such-library>=2'"
    )


def test_a_library_of_the_wrong_version() -> None:
    found = library(Requirement("lark==0.1"))
    assert found.state == "wrong"
    assert found.detail == "1.3.1 is installed, ==0.1 is required"


@pytest.mark.parametrize(
    ("probe", "detail"),
    [
        ("raise ImportError('no such symbol')", "does not load: ImportError: no such symbol"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "does not load: the process ended with -11"),
        ("import time; time.sleep(60)", "does not load within 1 s"),
    ],
)
def test_a_library_that_breaks_when_it_loads(probe: str, detail: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PROBES", {"lark": probe})
    monkeypatch.setattr(doctor, "PROBE_SECONDS", 1)
    found = library(Requirement("lark>=1"))
    assert (found.state, found.detail) == ("broken", f"1.3.1 {detail}")


def test_only_what_is_required_makes_the_report_unhealthy() -> None:
    here, optional, missing = Finding("a", "ok", "1"), Finding("b", "absent", "no"), Finding("cc", "missing", "no", "install it")
    assert Report((here, optional)).healthy
    report = Report((here, optional, missing))
    assert not report.healthy
    assert report.to_text().splitlines() == [
        "ok      a   1",
        "absent  b   no",
        "missing cc  no",
        "            help: install it",
        "1 required part(s) missing or unfit",
    ]
