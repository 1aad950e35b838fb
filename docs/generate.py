"""Writes the pages that are made from tables in the code: ``python -m docs.generate`` (`make docs`). Tests hold them equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from docs.strategy_page import as_markdown as strategies
from leir.checker.codes import as_markdown as diagnostics

HERE = Path(__file__).resolve().parent

PAGES: Mapping[str, Callable[[], str]] = {"diagnostics.md": diagnostics, "strategies.md": strategies}


def main() -> None:
    for name, text in PAGES.items():
        (HERE / name).write_text(text(), encoding="utf-8", newline="\n")
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
