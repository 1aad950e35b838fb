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
