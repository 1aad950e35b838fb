"""Descriptions of the machines that programs are costed for: figures with units and sources, in TOML files beside this module.

    load("h200")      the description by that name, or at that path
    this_cpu()        the CPU description with what this machine says of itself put in its place

A file holds one device: ``format = 1``, ``kind`` ("cpu" or "gpu"), ``name``, a table ``figures``, the tables ``operations`` and
``calls``, and ``levels`` of memory from the innermost out, the last one without a capacity. Every figure is ``{ value, unit,
source }``; a table of rates has one unit and one source. What is missing, unknown, not positive or without a source is reported
with the file and the key.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

FORMAT_VERSION = 1
FOLDER = Path(__file__).parent / "devices"

Kind: TypeAlias = Literal["cpu", "gpu"]

FIGURES: Mapping[Kind, tuple[str, ...]] = {
    "cpu": (
        *("frequency", "cores", "simd", "registers", "window", "issue", "loads", "stores", "straight_line"),
        *("loop_entry", "loop_iteration", "mispredict", "predicted_trips", "spill", "interleave"),
        *("unroll", "unroll_boost", "unroll_boosted", "call", "call_rate", "parallel_launch"),
    ),
    "gpu": (
        *("frequency", "multiprocessors", "warp", "threads", "blocks", "shared_memory", "issue", "latency", "load_latency"),
        *("memory_latency", "in_flight", "first_level_bytes", "launch"),
    ),
}
OPERATIONS: Mapping[Kind, tuple[str, ...]] = {
    "cpu": ("fma", "add", "mul", "max", "div", "sqrt", "simple", "select", "cast", "int_add", "int_mul"),
    "gpu": ("f16", "bf16", "f32", "f64", "i8", "i32", "i64", "bool"),
}
CALLS: Mapping[Kind, tuple[str, ...]] = {
    "cpu": ("exp", "log", "sigmoid", "sin", "cos", "tanh", "erf", "pow", "int_div"),
    "gpu": ("exp", "log", "sigmoid", "sin", "cos", "tanh", "erf", "pow", "sqrt", "div", "int_div"),
}


_LEVEL_FIGURES = ("capacity", "line", "sets", "bandwidth", "line_time", "set_time", "set_write_time")


class DeviceError(ValueError):
    """A device description that cannot be used. The message names the file and the key."""


@dataclass(frozen=True, slots=True)
class Figure:
    value: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class Level:
    """A level of memory: ``capacity`` and ``line`` in bytes, ``sets`` of its associativity (None: no conflicts), ``bandwidth`` in
    bytes per second and ``line_time`` in seconds per line out of sequence, both of what it delivers to the level inside it;
    ``set_time`` and ``set_write_time``: seconds for one set to take in a line that is read, or written. The innermost level
    delivers nothing, the outermost has no capacity. ``shared``: by all cores."""

    name: str
    shared: bool
    capacity: float = float("inf")
    line: int = 64
    sets: int | None = None
    bandwidth: float = float("inf")
    line_time: float = 0.0
    set_time: float = 0.0
    set_write_time: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """A description; see the module and the files for the meaning of each figure. Devices compare by identity: `load` and
    `this_cpu` return one object per description."""

    name: str
    kind: Kind
    figures: Mapping[str, Figure] = field(repr=False)
    operations: Mapping[str, tuple[float, ...]] = field(repr=False)
    calls: Mapping[str, tuple[float, ...]] = field(repr=False)
    levels: tuple[Level, ...] = field(repr=False)
    path: str = ""

    def __getitem__(self, figure: str) -> float:
        """The value of a figure, in the unit that its file states."""
        return self.figures[figure].value


def names() -> tuple[str, ...]:
    """The devices that come with the project."""
    return tuple(sorted(p.stem for p in FOLDER.glob("*.toml")))


@cache
def load(name: str) -> Device:
    """The device by name, or from the file at a path that ends in ``.toml``. Raises DeviceError."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = ", ".join(names())
        raise DeviceError(f"{name}: no such device; known are {known}, or the path of a .toml file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise DeviceError(f"{path}: {problem}") from problem
    return _Reader(str(path), content).device()


# ----------------------------------------------------------------------------------------------------------------- reading files


class _Reader:
    def __init__(self, path: str, content: dict[str, Any]) -> None:
        self.path = path
        self.content = content

    def device(self) -> Device:
        version = self.content.get("format")
        if version != FORMAT_VERSION:
            raise self.wrong("format", f"version {version!r} is not {FORMAT_VERSION}, the one that this version of leir reads")
        kind = self.content.get("kind")
        if kind not in ("cpu", "gpu"):
            raise self.wrong("kind", f'{kind!r} is neither "cpu" nor "gpu"')
        name = self.content.get("name")
        if not isinstance(name, str):
            raise self.wrong("name", "a string is needed")
        self.only(self.content, "", ("format", "kind", "name", "figures", "operations", "calls", "levels"))
        figures = self.table(self.content, "figures")
        self.only(figures, "figures", FIGURES[kind])
        return Device(
            name,
            kind,
            {key: self.figure(figures, key, f"figures.{key}") for key in FIGURES[kind]},
            self.rates("operations", OPERATIONS[kind], 2 if kind == "cpu" else 1),
            self.rates("calls", CALLS[kind], 2 if kind == "cpu" else 1),
            self.levels(),
            self.path,
        )

    def figure(self, table: Mapping[str, Any], key: str, where: str) -> Figure:
        entry = self.table(table, key, where)
        self.only(entry, where, ("value", "unit", "source"))
        return Figure(
            self.number(entry.get("value"), f"{where}.value"), self.text(entry, "unit", where), self.text(entry, "source", where)
        )

    def rates(self, section: str, keys: tuple[str, ...], numbers: int) -> dict[str, tuple[float, ...]]:
        table = self.table(self.content, section)
        self.only(table, section, ("unit", "source", *keys))
        self.text(table, "unit", section)
        self.text(table, "source", section)
        found = {}
        for key in keys:
            row = table.get(key)
            row = row if isinstance(row, list) else [row]
            if len(row) != numbers:
                raise self.wrong(
                    f"{section}.{key}", "a number is needed" if numbers == 1 else f"a list of {numbers} numbers is needed"
                )
            found[key] = tuple(self.number(value, f"{section}.{key}") for value in row)
        return found

    def levels(self) -> tuple[Level, ...]:
        entries = self.content.get("levels")
        if not isinstance(entries, list) or len(entries) < 2:
            raise self.wrong("levels", "at least two levels are needed, the innermost first")
        return tuple(self.level(entry, k, len(entries)) for k, entry in enumerate(entries))

    def level(self, entry: Any, position: int, count: int) -> Level:
        where = f"levels[{position}]"
        if not isinstance(entry, dict):
            raise self.wrong(where, "a table is needed")
        self.only(entry, where, ("name", "shared", *_LEVEL_FIGURES))
        if not isinstance(entry.get("shared"), bool):
            raise self.wrong(f"{where}.shared", "true or false is needed")
        values: dict[str, Any] = {}
        wanted = {"capacity", "line"} if position < count - 1 else set()
        wanted |= {"bandwidth"} if position else set()
        for key in _LEVEL_FIGURES:
            if key in entry or key in wanted:
                value = self.figure(entry, key, f"{where}.{key}").value
                values[key] = int(value) if key in ("line", "sets") else value
        return Level(self.text(entry, "name", where), entry["shared"], **values)

    def table(self, inside: Mapping[str, Any], key: str, where: str = "") -> dict[str, Any]:
        found = inside.get(key)
        if not isinstance(found, dict):
            raise self.wrong(where or key, "missing" if found is None else "a table is needed")
        return found

    def text(self, table: Mapping[str, Any], key: str, where: str) -> str:
        found = table.get(key)
        if not isinstance(found, str) or not found:
            raise self.wrong(f"{where}.{key}", "a text is needed")
        return found

    def number(self, value: Any, where: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise self.wrong(where, f"{value!r} is no positive number")
        return float(value)

    def only(self, table: Mapping[str, Any], where: str, keys: tuple[str, ...]) -> None:
        unknown = sorted(set(table) - set(keys))
        if unknown:
            raise self.wrong(f"{where}.{unknown[0]}" if where else unknown[0], "an unknown key")

    def wrong(self, where: str, message: str) -> DeviceError:
        return DeviceError(f"{self.path}: {where}: {message}")


# --------------------------------------------------------------------------------------------------------------------- this CPU


@cache
def this_cpu(root: str = "/") -> Device:
    """The stored description ``cpu``, with this machine's core count and cache sizes where the system tells them.

    Rates stay those of the file. ``root`` is where ``sys`` is looked for. What cannot be read keeps its stored value.
    """
    stored = load("cpu")
    source = Path(root) / "sys/devices/system/cpu"
    figures = dict(stored.figures)
    cores = _cores(source)
    if cores:
        figures["cores"] = Figure(cores, "cores", f"{source}: those that this process may use, without simultaneous threads")
    found = {level: _cache(source / "cpu0/cache", level) for level in ("1", "2", "3")}
    levels = []
    for level in stored.levels:
        read = found.get(level.name.removeprefix("L"))
        if read is None:
            levels.append(level)
            continue
        capacity, line, sets = read
        if level.shared and cores:
            capacity /= cores
        levels.append(replace(level, capacity=capacity, line=line, sets=sets if level.sets is not None else None))
    return replace(stored, figures=figures, levels=tuple(levels))


def _cores(source: Path) -> int:
    """How many different cores this process may run on; 0 where the system does not say."""
    siblings = set()
    for cpu in os.sched_getaffinity(0):
        text = _read(source / f"cpu{cpu}/topology/thread_siblings_list")
        if text:
            siblings.add(text)
    return len(siblings)


def _cache(folder: Path, level: str) -> tuple[float, int, int] | None:
    """Bytes, bytes per line and sets of the data cache of a level."""
    for index in range(8):
        entry = folder / f"index{index}"
        if _read(entry / "level") == level and _read(entry / "type") in ("Data", "Unified"):
            size, line, sets = (_read(entry / name) for name in ("size", "coherency_line_size", "number_of_sets"))
            if size.endswith("K") and size[:-1].isdecimal() and line.isdecimal() and sets.isdecimal():
                return float(size[:-1]) * 1024, int(line), int(sets)
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
