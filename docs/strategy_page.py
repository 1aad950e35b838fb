"""The page about the strategies, made from the catalogue, the docstrings and the table of refusals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import getdoc
from textwrap import fill
from typing import Any

from leir.checker.codes import CODES
from rules.catalogue import PRECONDITIONS, STRATEGIES
from rules.documentation import documentation
from rules.refusals import GROUPS
from rules.strategy import Strategy

HEADER = """\
# Strategies

Written by `make docs` from `rules/catalogue.py`, the docstrings of the strategies and `rules/refusals.py`; do not edit.
The examples are run as tests."""
INTRODUCTION = "A strategy is one named kind of single-step rewrite."
OTHERS = "The others are described in the catalogue only, and enumerate nothing."
COUNTS = """\
K lists the preconditions, P counts the kinds of component that a step modifies, S the kinds that it introduces. The class
comes from 0.1 K + 0.5 (P - 1) + S, K being the number of preconditions; with a star, it is the paper's where that score
would give another one."""
ROUNDING = """\
## Rounding

The class in the table is the least that the strategy promises. A step has a class of its own, which may be a stricter one.

| class | meaning |
| --- | --- |
| `bitwise` | The same operations on the same values in the same order per element: the results have the same bits. |
| `reassociates` | An accumulation runs in another order. |
| `real` | Equal over the reals, and rounds differently. |
| `real+domain` | As `real`, under a side condition (not zero, positive, finite) that was proved. |
| `real+range` | As `real`, but a new intermediate value may overflow, vanish or absorb another. Offered on request only. |"""
REFUSED = """\
## Refusals

A step of the parameter space that is not legal is refused with a code, a sentence and, where iterations meet, the two
iterations. `leir steps --refusals` lists them. A code that the checker has too is explained with an example in
[diagnostics.md](diagnostics.md)."""
UNITS = {
    "schedule": "the loops of one nest",
    "window": "neighbouring expressions",
    "program": "the whole program, seen from one equation",
    "scalar": "one arithmetic expression",
}


def as_markdown() -> str:
    """The text of docs/strategies.md."""
    ready = [s for s in STRATEGIES if s.implemented]
    preconditions = ", ".join(f"{k} {text}" for k, text in PRECONDITIONS.items())
    parts = [
        HEADER,
        _wrapped(f"{INTRODUCTION} There are {len(STRATEGIES)}; {len(ready)} are implemented. {OTHERS}"),
        _catalogue(),
        _wrapped(f"{COUNTS} The preconditions: {preconditions}."),
        ROUNDING,
        "## The implemented ones",
        *(_section(s) for s in ready),
        REFUSED,
        *(part for title, table in GROUPS for part in (f"### {title}", _table(("code", "meaning"), _refusals(table)))),
    ]
    return "\n\n".join(parts) + "\n"


def _wrapped(text: str) -> str:
    return fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _catalogue() -> str:
    rows = []
    for number, s in enumerate(STRATEGIES, 1):
        name = f"[{s.name}](#{s.name})" if s.implemented else s.name
        preconditions = ",".join(map(str, s.preconditions)) or "-"
        difficulty = s.difficulty + ("*" if s.exception else "")
        counts = f"{preconditions} / {s.modifies} / {s.introduces}"
        rows.append((str(number), name, s.level, s.summary, counts, difficulty, s.rounding, "yes" if s.implemented else "no"))
    return _table(("", "strategy", "level", "what it does", "K / P / S", "class", "rounding", "implemented"), rows)


def _section(strategy: Strategy) -> str:
    assert strategy.propose is not None
    assert strategy.unit is not None
    told = documentation(strategy.propose)
    parts = [
        f"### {strategy.name}",
        _wrapped(told.sentence),
        _wrapped(f"*Works on* {UNITS[strategy.unit]}. *Parameters:* {_parameters(strategy)}"),
        f"Before, the step, after:\n\n{_fenced('leir', told.before)}\n\n{_fenced('', told.step)}\n\n{_fenced('leir', told.after)}",
        *map(_wrapped, told.remarks),
    ]
    return "\n\n".join(parts)


def _parameters(strategy: Strategy) -> str:
    found: Any = strategy.parameters
    text = (getdoc(found) or "").split("\n\n")[0]
    if not text:
        raise ValueError(f"{found.__qualname__} has no docstring that says what the parameters are")
    text = " ".join(text.split()).replace("``", "`")
    return text[0].lower() + text[1:]


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


def _refusals(table: Mapping[str, str]) -> list[tuple[str, ...]]:
    return [(f"[{code}](diagnostics.md#{code})" if code in CODES else f"`{code}`", meaning) for code, meaning in table.items()]
