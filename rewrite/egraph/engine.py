"""The dataflow in egglog: new kernels and unions in, classes out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType

from rewrite.egraph.adapter import Frozen, Row, Tables
from rewrite.egraph.dataflow import Dataflow
from rewrite.egraph.schema import GRAPH


class Engine:
    """Keeps the tables of egglog in step with a `Dataflow`."""

    def __init__(self, flow: Dataflow, declarations: Iterable[str] = ()) -> None:
        self.flow = flow
        self.tables = Tables((*GRAPH, *declarations))
        self.matches: dict[str, int] = {}
        self.rows = 0
        self._values = self._kernels = 0
        self._lists: dict[tuple[int, ...], int] = {}

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.tables.__exit__(kind, error, trace)

    def load(self, unions: Iterable[tuple[int, int]]) -> None:
        """Hand over what is new in the dataflow, and unions of values."""
        flow = self.flow
        lists: dict[str, list[Row]] = {"LNone": [], "LMore": []}
        kernels = []
        for number in range(self._kernels, len(flow.kernels)):
            kernel = flow.kernels[number]
            kernels.append((number, kernel.template, self.list_of(kernel.operands, lists)))
        outs, args = [], []
        for number in range(self._values, len(flow.values)):
            value = flow.values[number]
            if value.kernel is None:
                args.append((number, number))
            else:
                outs.append((number, value.kernel, value.output))
        self._kernels, self._values = len(flow.kernels), len(flow.values)
        new: dict[str, Sequence[Row]] = {"LArg": args, **lists, "LKern": kernels, "LOut": outs, "UT": list(unions)}
        for relation, rows in new.items():
            self.tables.insert(relation, rows)
        self.run("load")

    def list_of(self, values: tuple[int, ...], new: dict[str, list[Row]]) -> int:
        """The handle of a list of values; what is new is added to the rows."""
        found = self._lists.get(values)
        if found is not None:
            return found
        rest = self.list_of(values[1:], new) if values else 0
        found = self._lists[values] = len(self._lists)
        if values:
            new["LMore"].append((found, values[0], rest))
        else:
            new["LNone"].append((found,))
        return found

    def run(self, ruleset: str) -> bool:
        """One iteration; whether it changed anything."""
        updated, matches = self.tables.run(ruleset)
        for rule, count in matches.items():
            self.matches[rule] = self.matches.get(rule, 0) + count
        return updated

    def read(self) -> Reading:
        """The tables as they are now."""
        frozen = self.tables.frozen()
        self.rows = frozen.count()
        least: dict[int, int] = {}
        classes: dict[int, int] = {}
        for (handle,), found in frozen.rows("HT"):
            value, at = int(handle), int(found)
            classes[value] = at
            least[at] = min(value, least.get(at, value))
        return Reading(frozen, tuple(least[classes[number]] for number in range(len(self.flow.values))), least)


@dataclass(frozen=True)
class Reading:
    """``leader``: per value, the least value of its class; ``leader_of``: the same by class."""

    frozen: Frozen
    leader: tuple[int, ...]
    leader_of: dict[int, int]
