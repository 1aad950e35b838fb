"""What changed between two programs, expression by expression.

Expressions are aligned by a longest common subsequence over their printed text. What is left over is paired by the words that two
expressions share, and a pair is compared loop by loop and item by item; the rest was added, removed or moved.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, TypeAlias

from leir.files import describe_tensor
from leir.ir import Equation, Item, Nest, Program
from leir.lift import flatten_program
from leir.printer import print_equation, print_item

Path: TypeAlias = tuple[int, ...]

_ALIKE = 0.5  # the share of words that two expressions have in common, from which one counts as the other, changed


@dataclass(frozen=True, slots=True)
class NameChanged:
    """The program's name."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class TensorChanged:
    """A known tensor was added (``old`` is None), removed (``new`` is None) or described differently."""

    name: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class TensorsReordered:
    """The same known tensors in another order."""

    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Removed:
    """An item of the old program that the new one does not have."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class Added:
    """An item of the new program that the old one does not have."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class Moved:
    """The same text at another place in the order of its siblings."""

    old_path: Path
    new_path: Path
    text: str


@dataclass(frozen=True, slots=True)
class LoopsChanged:
    """The loops of an expression; its items are compared apart from them."""

    old_path: Path
    new_path: Path
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class EquationChanged:
    """An equation."""

    old_path: Path
    new_path: Path
    old: str
    new: str


Change: TypeAlias = NameChanged | TensorChanged | TensorsReordered | Removed | Added | Moved | LoopsChanged | EquationChanged


def diff(a: Program, b: Program) -> list[Change]:
    """What turns ``a`` into ``b``: the signature, then items in the order of ``b``. Empty exactly when the programs are equal."""
    return [*_signature_changes(a, b), *_sequence(_items(flatten_program(a), (), ()), _items(flatten_program(b), (), ()))]


def to_json(changes: Sequence[Change]) -> list[dict[str, Any]]:
    """The changes as JSON objects, each with its kind under ``"change"``."""
    return [{"change": type(change).__name__, **asdict(change)} for change in changes if is_dataclass(change)]


def render(changes: Sequence[Change]) -> str:
    """The changes as text, ``-`` before what was and ``+`` before what is; empty if there are none. Items count from 0."""
    lines: list[str] = []
    for change in changes:
        match change:
            case NameChanged():
                lines += ["name", f"- {change.old}", f"+ {change.new}"]
            case TensorChanged():
                lines.append(f"tensor {change.name}")
                lines += [f"- {change.old}"] if change.old is not None else []
                lines += [f"+ {change.new}"] if change.new is not None else []
            case TensorsReordered():
                lines += ["order of tensors", f"- {' '.join(change.old)}", f"+ {' '.join(change.new)}"]
            case Removed():
                lines += [f"{_place(change.path)} removed", f"- {change.text}"]
            case Added():
                lines += [f"{_place(change.path)} added", f"+ {change.text}"]
            case Moved():
                lines += [f"{_place(change.old_path)} moved to {_dotted(change.new_path)}", f"  {change.text}"]
            case LoopsChanged():
                lines += [f"{_both(change.old_path, change.new_path)}, loops", f"- {change.old}", f"+ {change.new}"]
            case EquationChanged():
                lines += [_both(change.old_path, change.new_path), f"- {change.old}", f"+ {change.new}"]
    return "".join(f"{line}\n" for line in lines)


def _dotted(path: Path) -> str:
    return ".".join(map(str, path))


def _place(path: Path) -> str:
    return f"{'expression' if len(path) == 1 else 'item'} {_dotted(path)}"


def _both(old: Path, new: Path) -> str:
    return _place(old) if old == new else f"{_place(old)} -> {_dotted(new)}"


# -------------------------------------------------------------------------------------------------------------------- signature


def _signature_changes(a: Program, b: Program) -> Iterator[Change]:
    if a.name != b.name:
        yield NameChanged(a.name, b.name)
    old = {tensor.name: describe_tensor(tensor) for tensor in a.signature.tensors}
    new = {tensor.name: describe_tensor(tensor) for tensor in b.signature.tensors}
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            yield TensorChanged(name, old.get(name), new.get(name))
    if set(old) == set(new) and list(old) != list(new):
        yield TensorsReordered(tuple(old), tuple(new))


# ------------------------------------------------------------------------------------------------------------------------ items


@dataclass(frozen=True, slots=True)
class _Placed:
    """An item with its path, its text and the loops around it."""

    item: Item
    path: Path
    text: str
    names: tuple[str, ...]

    @property
    def words(self) -> Counter[str]:
        return Counter(re.findall(r"\w+", self.text))


def _items(items: Sequence[Item], path: Path, names: tuple[str, ...]) -> list[_Placed]:
    return [_Placed(item, (*path, k), print_item(item, names), names) for k, item in enumerate(items)]


def _sequence(old: Sequence[_Placed], new: Sequence[_Placed]) -> list[Change]:
    """The changes between two lists of siblings."""
    kept = _common(old, new)
    anchors = list(kept)
    removed: list[_Placed] = []
    found: list[tuple[int, Change]] = []  # with the place in `new` where it shows
    added: list[_Placed] = []
    start_old = start_new = 0
    for end_old, end_new in (*kept, (len(old), len(new))):
        gap_old, gap_new = old[start_old:end_old], new[start_new:end_new]
        pairs = _pairs(gap_old, gap_new)
        for a, b in pairs:
            anchors.append((a.path[-1], b.path[-1]))
            found += ((b.path[-1], change) for change in _changed(a, b))
        paired_old, paired_new = {a.path for a, _ in pairs}, {b.path for _, b in pairs}
        removed += (a for a in gap_old if a.path not in paired_old)
        added += (b for b in gap_new if b.path not in paired_new)
        start_old, start_new = end_old + 1, end_new + 1
    for a in removed:
        twin = next((b for b in added if b.text == a.text), None)
        if twin is None:
            found.append((_shown_at(a, anchors, len(new)), Removed(a.path, a.text)))
        else:
            added.remove(twin)
            found.append((twin.path[-1], Moved(a.path, twin.path, a.text)))
    found += ((b.path[-1], Added(b.path, b.text)) for b in added)
    found.sort(key=lambda entry: (entry[0], not isinstance(entry[1], Removed)))
    return [change for _, change in found]


def _shown_at(a: _Placed, anchors: Sequence[tuple[int, int]], end: int) -> int:
    """A removed item shows before what became of the next one that was not removed."""
    return min((new for old, new in anchors if old > a.path[-1]), default=end)


def _common(old: Sequence[_Placed], new: Sequence[_Placed]) -> list[tuple[int, int]]:
    """Index pairs of a longest common subsequence by text."""
    start, end = 0, min(len(old), len(new))
    while start < end and old[start].text == new[start].text:
        start += 1
    tail = 0
    while tail < end - start and old[-1 - tail].text == new[-1 - tail].text:
        tail += 1
    middle = _align(old[start : len(old) - tail], new[start : len(new) - tail], lambda a, b: float(a.text == b.text))
    return [
        *((k, k) for k in range(start)),
        *((start + i, start + j) for i, j in middle),
        *((len(old) - tail + k, len(new) - tail + k) for k in range(tail)),
    ]


def _pairs(old: Sequence[_Placed], new: Sequence[_Placed]) -> list[tuple[_Placed, _Placed]]:
    """Which items of a gap count as the same one, changed: the alignment that has most words in common."""
    words = {id(x): x.words for x in (*old, *new)}

    def likeness(a: _Placed, b: _Placed) -> float:
        if a.text == b.text or isinstance(a.item, Nest) is not isinstance(b.item, Nest):
            return 0.0
        if len(old) == len(new) == 1:
            return 1.0
        left, right = words[id(a)], words[id(b)]
        score = 2 * (left & right).total() / (left.total() + right.total())
        return score if score >= _ALIKE else 0.0

    return [(old[i], new[j]) for i, j in _align(old, new, likeness)]


def _align(old: Sequence[_Placed], new: Sequence[_Placed], score: Callable[[_Placed, _Placed], float]) -> list[tuple[int, int]]:
    """The increasing index pairs of positive score whose scores have the greatest sum; the earliest among equals."""
    scores = [[score(a, b) for b in new] for a in old]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + scores[i][j])
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(old) and j < len(new):
        if scores[i][j] > 0 and best[i][j] == best[i + 1][j + 1] + scores[i][j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _changed(a: _Placed, b: _Placed) -> list[Change]:
    """The changes inside a pair."""
    if isinstance(a.item, Equation) and isinstance(b.item, Equation):
        return [EquationChanged(a.path, b.path, print_equation(a.item, a.names), print_equation(b.item, b.names))]
    assert isinstance(a.item, Nest) and isinstance(b.item, Nest)
    old_loops, new_loops = _loops(a.item), _loops(b.item)
    changes: list[Change] = [LoopsChanged(a.path, b.path, old_loops, new_loops)] if old_loops != new_loops else []
    return changes + _sequence(_items(a.item.body, a.path, _inner(a)), _items(b.item.body, b.path, _inner(b)))


def _loops(nest: Nest) -> str:
    return "".join(f"{loop.kind}^{{{loop.extent}}}_{{{loop.name}=0}}" for loop in nest.schedule)


def _inner(placed: _Placed) -> tuple[str, ...]:
    assert isinstance(placed.item, Nest)
    return placed.names + tuple(loop.name for loop in placed.item.schedule)
