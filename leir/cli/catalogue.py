"""The command strategies: the catalogue of rewrites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from leir.cli.report import AsJson, BadInput, Json, emit, emit_json

if TYPE_CHECKING:
    from rules.strategy import Strategy


def strategies(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Only this one, with its paper's preconditions.")] = None,
    json: AsJson = False,
) -> None:
    """List the 43 strategies and what each does.

    Columns: level, difficulty, rounding class. A star marks those that are implemented; the others are
    described only.

    Example: leir strategies loop_split
    """
    from rules.catalogue import STRATEGIES, find

    if name is not None:
        strategy = find(name)
        if strategy is None:
            raise BadInput(f"no strategy is called {name!r}", help=_nearest(name, [s.name for s in STRATEGIES]))
        if json:
            emit_json(_described(strategy))
        else:
            emit(_page(strategy))
    elif json:
        emit_json([_described(strategy) for strategy in STRATEGIES])
    else:
        emit("\n".join(_table(STRATEGIES)))


def _table(strategies: tuple[Strategy, ...]) -> list[str]:
    width = max(len(s.name) for s in strategies)
    lines = []
    for number, s in enumerate(strategies, 1):
        star = "*" if s.implemented else " "
        lines.append(f"{number:3}{star} {s.name:{width}}  {s.level:11}  {s.difficulty:9}  {s.rounding:12}  {s.summary}")
    return lines


def _page(strategy: Strategy) -> str:
    from rules.catalogue import PRECONDITIONS

    needs = ", ".join(PRECONDITIONS[k] for k in strategy.preconditions) or "nothing"
    return "\n".join(
        (
            f"{strategy.name}: {strategy.summary}",
            f"  level       {strategy.level}",
            f"  difficulty  {strategy.difficulty} (score {strategy.score:.1f})",
            f"  rounding    {strategy.rounding}",
            f"  requires    {needs}",
            f"  implemented {'yes' if strategy.implemented else 'no, described only'}",
        )
    )


def _described(strategy: Strategy) -> Json:
    from rules.catalogue import PRECONDITIONS

    return {
        "name": strategy.name,
        "level": strategy.level,
        "summary": strategy.summary,
        "difficulty": strategy.difficulty,
        "score": round(strategy.score, 1),
        "rounding": strategy.rounding,
        "preconditions": [PRECONDITIONS[k] for k in strategy.preconditions],
        "implemented": strategy.implemented,
    }


def _nearest(name: str, names: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, names, n=3)
    return f"did you mean {' or '.join(close)}?" if close else "leir strategies lists them"
