"""The checker and the import of foreign text on the 60 reference programs: exactly what the golden file lists."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from time import perf_counter

from leir.check import check_flat, has_errors
from leir.parser import parse_nests
from leir.repair import import_text
from tests.renew import REFERENCE_CHECK, ROOT
from tests.test_leir.reference_programs import reference_programs, report


def test_reports_are_those_of_the_golden_file() -> None:
    """`python -m tests.renew` writes it anew."""
    assert report() == json.loads(REFERENCE_CHECK.read_text(encoding="utf-8"))


def test_there_are_sixty_and_demotion_leaves_no_error() -> None:
    programs = list(reference_programs())
    assert len(programs) == 60
    for signature, text in programs:
        assert not has_errors(import_text(text, signature, demote=True)[1]), signature.name


def test_reports_do_not_depend_on_the_hash_seed() -> None:
    script = "import json; from tests.test_leir.reference_programs import report; print(json.dumps(report()))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_the_checker_is_quick() -> None:
    """A few milliseconds for the median program of five nests; the bound is wide, because test machines are shared."""
    seconds = []
    for signature, text in reference_programs():
        nests = parse_nests(text).nests
        start = perf_counter()
        check_flat(signature, nests)
        seconds.append(perf_counter() - start)
    seconds.sort()
    print(f"checked 60 programs: median {seconds[30] * 1e3:.2f} ms, slowest {seconds[-1] * 1e3:.2f} ms")
    assert seconds[30] < 0.05
