"""Import and start-up times, each in a fresh process."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Row, seconds

PROGRAM = "# leir 1 relu\n# A f32[64] input\n# C f32[64] output\nL^{64}_{a=0}[C^{f32,g}_{a}=max(A^{f32,g}_{a},0);];\n"


def rows() -> list[Row]:
    bare = seconds(lambda: _python("pass"))
    found = [Row("python, nothing imported", bare * 1e3, "ms")]
    for module in ("leir.parser", "leir.check", "leir.interpret", "rewrite.enumerate", "lower.verify", "leir.import_torch"):
        found.append(Row(f"import {module}", seconds(lambda m=module: _python(f"import {m}")) * 1e3, "ms"))  # type: ignore[misc]
    for library in ("islpy", "sympy", "torch", "tvm", "egglog"):
        found.append(Row(f"import {library}", seconds(lambda m=library: _python(f"import {m}"), 3) * 1e3, "ms", "for comparison"))  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "relu.leir"
        path.write_text(PROGRAM)
        found.append(Row("leir --help", seconds(lambda: _leir("--help")) * 1e3, "ms", "bar: 300"))
        found.append(Row("leir show", seconds(lambda: _leir("show", str(path))) * 1e3, "ms", "bar: 400"))
    return found


def _python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def _leir(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "leir.cli", *arguments], check=True, capture_output=True)
