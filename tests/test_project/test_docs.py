"""Generated pages are up to date, and every link between pages leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.generate import PAGES

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_what_make_docs_writes(name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == PAGES[name]()


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    """A page may leave out the folders that its section is about."""
    folders = ("leir", "rules", "rewrite", "extract", "lower", "llm", "docs", "tests", "examples", "benchmarks")
    files = [f"/{file.relative_to(ROOT)}" for folder in folders for file in (ROOT / folder).rglob("*.py")]
    named = re.findall(r"`([\w/]+\.py)`", page.read_text(encoding="utf-8"))
    assert [name for name in named if not any(file.endswith(f"/{name}") for file in files)] == []
