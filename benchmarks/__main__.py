"""`make bench`: every quick table, or those named on the command line (``python -m benchmarks text steps``)."""

from __future__ import annotations

import argparse
import json

from benchmarks import checked, optimize, roofline, startup, steps, text
from benchmarks.measure import Row

TABLES = {
    "startup": (startup.rows, "Start-up, each in a fresh process (medians)"),
    "text": (text.rows, "Text and normal form, on the 60 reference programs"),
    "steps": (steps.rows, "Legality and enumeration"),
    "checked": (checked.rows, "Steps built and checked by execution"),
    "roofline": (roofline.rows, "The roofline model against measured times"),
    "optimize": (optimize.rows, "Extracted programs, their originals, and MetaSchedule after the same time"),
}
ON_REQUEST = ("roofline", "optimize")
"""These take minutes, so only when they are named."""


def main() -> None:
    """Measure and print; with ``--json`` one object per table."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks", description=main.__doc__)
    arguments.add_argument("tables", nargs="*", choices=[*TABLES, []], help="which tables (default: all but roofline and optimize)")
    arguments.add_argument("--json", action="store_true", help="one JSON object per table")
    given = arguments.parse_args()
    for name in given.tables or (name for name in TABLES if name not in ON_REQUEST):
        measure, title = TABLES[name]
        show(name, title, measure(), given.json)


def show(name: str, title: str, rows: list[Row], as_json: bool) -> None:
    if as_json:
        print(
            json.dumps({"table": name, "rows": [{"name": r.name, "value": r.value, "unit": r.unit, "note": r.note} for r in rows]})
        )
        return
    print(f"\n{title}")
    for row in rows:
        value = "-" if row.value is None else f"{row.value:,.1f}"
        print(f"  {row.name:44} {value:>12} {row.unit:12} {row.note}")


if __name__ == "__main__":
    main()
