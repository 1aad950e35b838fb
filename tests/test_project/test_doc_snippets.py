"""Every LEIR snippet in the documentation is what the page says it is.

```leir                 a program with its tensor lines, without errors
```leir error=CODE      one that the checker refuses with exactly this code; `syntax` where it cannot be read at all
```leir fragment        text without a signature, which can be read
```leir axes=576,10     a program whose first expression has these axes in normal form
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from leir.check import check_flat
from leir.files import load_text
from leir.parser import LeirSyntaxError, parse, parse_nests
from leir.printer import print_nests, print_program

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


@dataclass(frozen=True, slots=True)
class Snippet:
    """A fenced block of language `leir`; ``says`` are the words after it on the fence."""

    page: str
    line: int
    says: tuple[str, ...]
    text: str

    def word(self, name: str) -> str | None:
        """The value of ``name=value`` on the fence."""
        return next((word.removeprefix(f"{name}=") for word in self.says if word.startswith(f"{name}=")), None)


def snippets(page: Path) -> list[Snippet]:
    found: list[Snippet] = []
    lines = page.read_text(encoding="utf-8").split("\n")
    start: int | None = None
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = number
            continue
        language, *says = lines[start][3:].split() or [""]
        if language == "leir":
            found.append(Snippet(page.name, start + 1, tuple(says), "\n".join(lines[start + 1 : number])))
        start = None
    assert start is None, f"{page.name}: the fence at line {start} is never closed"
    return found


SNIPPETS = [snippet for page in PAGES for snippet in snippets(page)]


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda s: f"{s.page}:{s.line}")
def test_a_snippet_is_what_the_page_says(snippet: Snippet) -> None:
    error, axes = snippet.word("error"), snippet.word("axes")
    if "fragment" in snippet.says:
        assert parse_nests(print_nests(parse_nests(snippet.text).nests)).nests == parse_nests(snippet.text).nests
        return
    content = f"# leir 1 example\n{snippet.text}\n"
    if error == "syntax":
        with pytest.raises(LeirSyntaxError):
            load_text(content, "example.leir")
        return
    program = load_text(content, "example.leir")
    text = "\n".join(line for line in snippet.text.split("\n") if not line.startswith("#"))
    found = {d.code for d in check_flat(program.signature, parse_nests(text).nests) if d.severity == "error"}
    assert found == (set() if error is None else {error})
    assert parse(print_program(program), program.signature) == program
    if axes is not None:
        assert program.nests[0].axes == tuple(map(int, axes.split(",")))


def test_there_are_snippets() -> None:
    pages = {snippet.page for snippet in SNIPPETS}
    assert {"language.md", "strategies.md"} <= pages
    assert sum(snippet.word("error") is not None for snippet in SNIPPETS) >= 10
    assert sum(snippet.word("axes") is not None for snippet in SNIPPETS) >= 4
