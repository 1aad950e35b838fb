"""Where a strategy can work in a program, and how its result goes back: rules are local, this lifts them (architecture.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from leir.ir import Equation, Index, Item, Loop, Nest, Program, equations, subexpressions
from leir.lift import flatten, flatten_program, lift
from leir.shapes import ShapeError, temporary_shapes
from rewrite.naming import with_free_names
from rewrite.step import BadStep, Site
from rules.legality.dependence import carries_order, skeleton
from rules.mathematics.sites import put_back, scalar_sites
from rules.strategy import ProgramUnit, Refusal, ScalarUnit, ScheduleUnit, Strategy, Target, Unit, WindowUnit


@dataclass(frozen=True, slots=True)
class Replacement:
    """Expressions in normal form that take the place of ``count`` ones from number ``start`` on."""

    start: int
    count: int
    nests: tuple[Nest, ...]

    def within(self, nests: Sequence[Nest]) -> tuple[Nest, ...]:
        return (*nests[: self.start], *self.nests, *nests[self.start + self.count :])


def units(strategy: Strategy, program: Program, target: Target) -> Iterator[tuple[Site, Unit]]:
    """Every unit of the program that the strategy works on, in program order."""
    for number, nest in enumerate(program.nests):
        match strategy.unit:
            case "schedule":
                shapes = _shapes(program, nest)
                for path, inner, enclosing in _nests(nest, (), ()):
                    yield Site((number, *path)), ScheduleUnit(nest, path, inner, enclosing, target, program.signature, shapes)
            case "window":
                window = program.nests[number : number + strategy.width]
                if len(window) == strategy.width:
                    yield Site((number,)), WindowUnit(window, target, program.signature)
            case "program":
                for path, _ in _equations(nest, (number,)):
                    yield Site(path), ProgramUnit(program.nests, path, target, program.signature)
            case "scalar":
                for path, equation in _equations(nest, (number,)):
                    for scalar, unit in scalar_sites(equation):
                        yield Site(path, scalar), unit


def unit_at(strategy: Strategy, program: Program, site: Site, target: Target) -> Unit:
    """The unit at a site. Raises BadStep where the strategy has none there."""
    for found, unit in units(strategy, program, target):
        if found == site:
            return unit
    sites = " ".join(str(found) for found, _ in units(strategy, program, target)) or "none"
    raise BadStep(f"{strategy.name} has no site {site} in {program.name or 'the program'}; its sites are: {sites}")


def put(program: Program, site: Site, unit: Unit, result: object) -> Replacement | Refusal:
    """The expressions that a proposal's result makes of those at the site, in normal form."""
    number = site.path[0]
    match unit:
        case ScheduleUnit():
            assert isinstance(result, tuple)
            return Replacement(number, 1, (_rescheduled(unit, result),))
        case WindowUnit():
            assert isinstance(result, tuple)
            count = len(unit.expressions)
            named = with_free_names(program, number, count, result)
            return Replacement(number, count, tuple(lift(flatten(nest)) for nest in named))
        case ProgramUnit():
            assert isinstance(result, tuple)
            return _changed_part(program.nests, tuple(lift(flatten(nest)) for nest in result))
        case ScalarUnit():
            assert site.scalar is not None
            changed = _with_value(program.nests[number], site.path[1:], site.scalar, result)
            return changed if isinstance(changed, Refusal) else Replacement(number, 1, (lift(flatten(changed)),))


def _shapes(program: Program, nest: Nest) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The shapes of the temporaries that the expression and another one write."""
    others = frozenset().union(*(_written(other) for other in program.nests if other is not nest))
    shared = sorted(_written(nest) & others - {tensor.name for tensor in program.signature.tensors})
    if not shared:
        return ()
    try:
        shapes = temporary_shapes(program.signature, flatten_program(program))
    except ShapeError:
        return ()
    return tuple((name, shapes[name]) for name in shared)


@lru_cache(maxsize=50_000)
def _written(nest: Nest) -> frozenset[str]:
    return frozenset(equation.target.tensor.name for equation in equations(nest))


def _changed_part(old: tuple[Nest, ...], new: tuple[Nest, ...]) -> Replacement:
    """What two programs do not have in common at their beginnings and ends."""
    shorter = min(len(old), len(new))
    start = next((k for k in range(shorter) if old[k] is not new[k]), shorter)
    end = next((k for k in range(shorter - start) if old[-1 - k] is not new[-1 - k]), shorter - start)
    return Replacement(start, len(old) - start - end, new[start : len(new) - end])


def _nests(
    nest: Nest, path: tuple[int, ...], enclosing: tuple[Loop, ...]
) -> Iterator[tuple[tuple[int, ...], Nest, tuple[Loop, ...]]]:
    """Every nest with its item path and the loops around it."""
    yield path, nest, enclosing
    for number, item in enumerate(nest.body):
        if isinstance(item, Nest):
            yield from _nests(item, (*path, number), enclosing + nest.schedule)


def _equations(item: Item, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Equation]]:
    if isinstance(item, Equation):
        yield path, item
    else:
        for number, child in enumerate(item.body):
            yield from _equations(child, (*path, number))


def _with_value(item: Item, path: tuple[int, ...], scalar: tuple[int, ...], result: object) -> Nest | Refusal:
    changed = _changed(item, path, scalar, result)
    assert not isinstance(changed, Equation)
    return changed


def _changed(item: Item, path: tuple[int, ...], scalar: tuple[int, ...], result: object) -> Item | Refusal:
    if isinstance(item, Equation):
        return put_back(item, scalar, result)  # type: ignore[arg-type]
    inner = _changed(item.body[path[0]], path[1:], scalar, result)
    if isinstance(inner, Refusal):
        return inner
    return Nest(item.axes, item.schedule, (*item.body[: path[0]], inner, *item.body[path[0] + 1 :]))


# ----------------------------------------------------------------------------------------------------------------- normal form


def _rescheduled(unit: ScheduleUnit, schedule: tuple[Loop, ...]) -> Nest:
    """The expression with new loops for one nest, in normal form.

    Normal form depends on the loops in two ways only: whether merging axes is harmless, which it is where no hard dependence runs
    between iterations; and whether what prints as several loops reads back as the same axes, which it does where every loop is one
    digit, every axis of several digits occurs, and at most one axis does not. Otherwise the nest is read back from its text form.
    """
    changed = unit.with_schedule(schedule)
    plain = all(len(loop.digits) == 1 for loop in (*schedule, *unit.nest.schedule))
    if plain and _axes_read_back(unit, schedule) and not carries_order(skeleton(changed)):
        return changed
    return lift(flatten(changed))


def _axes_read_back(unit: ScheduleUnit, schedule: Sequence[Loop]) -> bool:
    walked = [loop.digits[0].axis for loop in schedule]
    unused = set(walked) - _axes_in(unit.nest)
    return len(unused) < 2 and all(walked.count(axis) == 1 for axis in unused)


@lru_cache(maxsize=50_000)
def _axes_in(item: Item) -> frozenset[int]:
    """The axes that occur in the equations below an item."""
    if isinstance(item, Nest):
        return frozenset().union(*map(_axes_in, item.body))
    return frozenset(e.axis for side in (item.target, item.value) for e in subexpressions(side) if isinstance(e, Index))
