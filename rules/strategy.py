"""What a strategy is: a record, not a class to inherit from (design: architecture.md, Rules are local, the engine lifts them).

A strategy works on the smallest unit that it needs. ``parameters`` lists the arguments worth trying on a unit, in a fixed order;
``propose`` carries one of them out, and returns what the unit becomes, or why not. `rewrite` finds the units of a program and puts
the results back, so one definition serves enumeration, application of a stored step, and later saturation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from leir.ir import Access, Expr, Loop, Nest, Signature

Level: TypeAlias = Literal["graph", "operator", "memory", "mathematics"]
Target: TypeAlias = Literal["llvm", "cuda"]
Rounding: TypeAlias = Literal["bitwise", "reassociates", "real", "real+domain", "real+range"]
Argument: TypeAlias = int | str | tuple[int, ...] | tuple[str, ...]
Difficulty: TypeAlias = Literal["easy", "medium", "difficult"]
Arguments: TypeAlias = tuple[tuple[str, Argument], ...]


@dataclass(frozen=True, slots=True)
class Instance:
    """One execution of an equation: the item path from the expression, and the value of each loop by name as the text shows it."""

    path: tuple[int, ...]
    point: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Witness:
    """Two instances that touch one element of ``tensor`` and that the step would run in the wrong order, or at once."""

    tensor: str
    element: tuple[int, ...]
    first: Instance
    second: Instance
    kind: Literal["flow", "anti", "output", "accumulation"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a step is not legal. A value, never an exception."""

    code: str
    message: str
    witness: Witness | None = None


@dataclass(frozen=True, slots=True)
class Proof:
    """One condition of a step and what established it; ``detail`` is what a person or a re-check needs to follow it. ``field``
    is an evaluation of both sides at random points of a prime field."""

    condition: str
    by: Literal["construction", "isl", "sympy", "field", "analysis"]
    detail: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """A legal change of a unit: what it becomes, what it does to rounding, what proved it."""

    result: Any  # what the unit becomes: a schedule, expressions, or a scalar expression (see the unit classes)
    rounding: Rounding
    proofs: tuple[Proof, ...]


@dataclass(frozen=True, slots=True)
class ScheduleUnit:
    """The loops of one nest. ``expression`` is the top-level nest that holds it at item path ``path``; ``enclosing`` are the loops
    of its ancestors, outermost first. ``shapes`` are those of the temporaries that the expression is not alone to write: of the
    others it tells itself. A proposal's result is the new schedule, a tuple of `Loop`."""

    expression: Nest
    path: tuple[int, ...]
    nest: Nest
    enclosing: tuple[Loop, ...]
    target: Target
    signature: Signature
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    wide: bool = False

    def with_schedule(self, schedule: tuple[Loop, ...]) -> Nest:
        """The expression with the loops of this nest replaced."""
        return _with_schedule(self.expression, self.path, schedule)

    @property
    def inner(self) -> tuple[Loop, ...]:
        """The loops of the nests below this one."""
        return tuple(_loops_below(self.nest))

    @property
    def on_paths(self) -> tuple[Loop, ...]:
        """Every loop on a path through this nest: its ancestors', its own, those below."""
        return self.enclosing + self.nest.schedule + self.inner


def _with_schedule(nest: Nest, path: tuple[int, ...], schedule: tuple[Loop, ...]) -> Nest:
    if not path:
        return Nest(nest.axes, schedule, nest.body)
    inner = nest.body[path[0]]
    assert isinstance(inner, Nest)
    body = (*nest.body[: path[0]], _with_schedule(inner, path[1:], schedule), *nest.body[path[0] + 1 :])
    return Nest(nest.axes, nest.schedule, body)


def _loops_below(nest: Nest) -> Iterator[Loop]:
    for item in nest.body:
        if isinstance(item, Nest):
            yield from item.schedule
            yield from _loops_below(item)


@dataclass(frozen=True, slots=True)
class WindowUnit:
    """Neighbouring top-level expressions. A proposal's result is the tuple of expressions that replace them."""

    expressions: tuple[Nest, ...]
    target: Target
    signature: Signature
    wide: bool = False


@dataclass(frozen=True, slots=True)
class ProgramUnit:
    """All expressions of a program, seen from the equation at ``path``. A proposal's result is the tuple of all expressions
    afterwards, those that did not change being the same nodes."""

    expressions: tuple[Nest, ...]
    path: tuple[int, ...]
    target: Target
    signature: Signature
    wide: bool = False


@dataclass(frozen=True, slots=True)
class ScalarUnit:
    """A scalar expression inside one equation's right-hand side, in the equation's axes. A proposal's result is an `Expr`.

    ``accumulator`` is the equation's target where ``expr`` is the whole right-hand side of an accumulation: it stays at top level.
    """

    expr: Expr
    dtype: str
    accumulator: Access | None = None
    wide: bool = False


# Every unit carries ``wide``: whether its strategy offers the wide parameter space (strategies.md) instead of the default one.
Unit: TypeAlias = ScheduleUnit | WindowUnit | ProgramUnit | ScalarUnit


@dataclass(frozen=True, slots=True)
class Strategy:
    """One of the 43. ``preconditions``, ``modifies`` and ``introduces`` are the paper's K, P and S (strategies.md, Difficulty);
    ``unit`` is None while the strategy is only in the catalogue; ``width`` is how many expressions a window holds. ``exception`` is
    the paper's difficulty class where the score does not give it."""

    name: str
    level: Level
    summary: str
    preconditions: tuple[int, ...]
    modifies: int
    introduces: int
    rounding: Rounding
    unit: Literal["schedule", "window", "program", "scalar"] | None = None
    width: int = 1
    parameters: Callable[[Any], Iterator[Arguments]] | None = field(default=None, repr=False)
    propose: Callable[[Any, Arguments], Proposal | Refusal] | None = field(default=None, repr=False)
    exception: Difficulty | None = None

    @property
    def implemented(self) -> bool:
        return self.propose is not None

    @property
    def score(self) -> float:
        """Difficulty: 0.1 K + 0.5 (P - 1) + S, K being the number of preconditions."""
        return 0.1 * len(self.preconditions) + 0.5 * (self.modifies - 1) + self.introduces

    @property
    def difficulty(self) -> Difficulty:
        """The paper's class."""
        return self.exception or difficulty_of(self.score)


def difficulty_of(score: float) -> Difficulty:
    return "easy" if score < 1 else "medium" if score < 2.5 else "difficult"
