"""Import and start-up times, each in a fresh process."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Row, seconds

PROGRAM = "# leir 1 relu\n# A f32[64] input\n# C f32[64] output\nL^{64}_{a=0}[C^{f32,g}_{a}=max(A^{f32,g}_{a},0);];\n"


def rows() -> list[Row]:
    found = [_import("no module", "pass", "")]
    for module in ("leir.parser", "leir.check", "leir.interpret", "rewrite.enumerate", "lower.verify", "leir.import_torch"):
        found += [_import(module, f"import {module}", "")]
    for library in ("islpy", "sympy", "torch", "tvm", "egglog"):
        found += [_import(library, f"import {library}", "for comparison")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "relu.leir"
        path.write_text(PROGRAM)
        found.append(Row("leir --help", seconds(lambda: _leir("--help")) * 1e3, "ms", "bar: 300"))
        found.append(Row("leir show", seconds(lambda: _leir("show", str(path))) * 1e3, "ms", "bar: 400"))
    return found


def _import(name: str, code: str, note: str) -> Row:
    return Row(f"import {name}", seconds(lambda: _python(code), 3) * 1e3, "ms", note)


def _python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def _leir(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "leir.cli", *arguments], check=True, capture_output=True)
