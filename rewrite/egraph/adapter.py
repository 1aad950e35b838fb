"""The one place that talks to egglog: text in line by line, rows in by file, whole tables out (facts-egglog.md).

To be imported in a child process only: egglog and processes made by copying their parent do not go together.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

os.environ["RUST_BACKTRACE"] = "0"  # read by egglog when it is loaded: else every error prints fifty lines

import egglog.bindings as egglog

VERSION = "13.2.0"
MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108 - rows pass through files, which need not reach a disk; the folder below it is our own

Cell: TypeAlias = int | float | str
Row: TypeAlias = tuple[int, ...]


class EGraphError(RuntimeError):
    """egglog refused a command or gave up on one: a bug in the encoding, or a limit of egglog."""


class Tables:
    """One e-graph. Rows go in by `insert`, where a cell is an integer, a float or a text without tab and newline; `rows` reads."""

    def __init__(self, declarations: Iterable[str]) -> None:
        if version("egglog") != VERSION:
            raise EGraphError(f"egglog {version('egglog')} is installed, and the encoding is written for {VERSION}")
        if os.environ.get("RAYON_NUM_THREADS", "1") != "1":
            raise EGraphError("RAYON_NUM_THREADS is set: with more than one thread, egglog's rows come in another order each time")
        self._folder = tempfile.TemporaryDirectory(dir=MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None)
        self._graph = egglog.EGraph(fact_directory=self._folder.name)
        self._files = 0
        for line in declarations:
            self.command(line)

    def __enter__(self) -> Tables:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._folder.cleanup()

    def command(self, line: str) -> list[egglog._CommandOutput]:
        """One command. Short ones only: the parser copies the whole text for every node of it."""
        with _translated(line):
            return self._graph.run_program(*self._graph.parse_program(line))

    def insert(self, relation: str, rows: Sequence[Sequence[Cell]]) -> None:
        """Many rows of a relation over i64, f64 and String at once."""
        if not rows:
            return
        self._files += 1
        path = Path(self._folder.name) / f"rows{self._files}"
        path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
        self.command(f'(input {relation} "{path.name}")')
        path.unlink()

    def run(self, ruleset: str) -> tuple[bool, dict[str, int]]:
        """One iteration of a ruleset: whether it changed anything, and the number of matches per rule."""
        (output,) = self.command(f"(run {ruleset} 1)")
        assert isinstance(output, egglog.RunScheduleOutput)
        return output.report.updated, dict(output.report.num_matches_per_rule)

    def frozen(self) -> Frozen:
        """All tables as they are now."""
        with _translated("freeze"):
            return Frozen(self._graph, self._graph.freeze().functions)


class Frozen:
    """All tables at one moment. A class is a number; numbers are good within one `Frozen` only."""

    def __init__(self, graph: egglog.EGraph, functions: dict[str, egglog.FrozenFunction]) -> None:
        self._graph = graph
        self._functions = functions  # asked for once: every access copies everything
        self._classes: dict[egglog.Value, int] = {}

    def count(self) -> int:
        """Rows in all tables."""
        return sum(len(function.rows) for function in self._functions.values())

    def rows(self, name: str) -> Iterator[tuple[tuple[Cell, ...], Cell]]:
        """The rows of a function, as inputs and output; a term is the number of its class."""
        function = self._functions[name]
        read = [self._reader(sort) for sort in function.input_sorts]
        result = self._reader(function.output_sort)
        for row in function.rows:
            yield tuple(one(value) for one, value in zip(read, row.inputs, strict=True)), result(row.output)

    def _reader(self, sort: str):  # type: ignore[no-untyped-def]
        match sort:
            case "i64":
                return self._graph.value_to_i64
            case "f64":
                return self._graph.value_to_f64
            case "String":
                return self._graph.value_to_string
            case "Unit":
                return lambda value: 0
            case _:
                return lambda value: self._classes.setdefault(value, len(self._classes))


@contextmanager
def _translated(command: str) -> Iterator[None]:
    try:
        yield
    except egglog.EggSmolError as problem:
        raise EGraphError(f"{command[:200]}: {problem}") from problem
    except BaseException as problem:
        if type(problem).__name__ != "PanicException":  # which is no Exception, and not to be had by import
            raise
        raise EGraphError(f"{command[:200]}: egglog gave up: {problem}") from None
