"""The scalar level of one saturation: terms and unions of terms go in, new bodies come out as kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias

from leir.ir import Access, Binary, Call, Compare, Equation, Expr, Index, Nest, Tensor, Unary
from leir.lift import flatten, lift
from rewrite.egraph.adapter import Cell, Frozen, Row
from rewrite.egraph.classes import Classes
from rewrite.egraph.engine import Engine
from rewrite.egraph.growth import Derivation, ScalarUnion
from rewrite.egraph.templates import HOLE, template, tensors
from rewrite.egraph.terms import OWN, Head, NoTerm, Terms, constant, number, value_name, wraps
from rules.mathematics.sites import dtype_of

Node: TypeAlias = tuple[int | str, ...]
"""A row of a constructor of S: its name and arguments, subterms by class, values by leader."""

SUBTERMS = {"Op1": (1,), "Op2": (1, 2), "Op3": (1, 2, 3), "Sel": (0, 1, 2)}
RESULT = "#written"


@dataclass(slots=True)
class Bodies:
    """Keeps the scalar level in step with a dataflow. ``variants``: how many terms of a class are made into kernels, and for how
    many of the schedules that are known for it."""

    engine: Engine
    variants: int
    terms: Terms = field(init=False)
    _kernels: int = 0
    _loaded: int = 0
    _heads: int = 0
    _made: set[tuple[int, int, Expr]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.terms = Terms(self.engine.flow)

    # ---------------------------------------------------------------------------------------------------------------------- in

    def load(self, leader: Sequence[int], unions: Iterable[ScalarUnion]) -> None:
        """Hand over the computations of new kernels, and unions of terms."""
        flow, terms = self.engine.flow, self.terms
        united = [pair for pair in (self._pair(union, leader) for union in unions) if pair is not None]
        new = range(self._kernels, len(flow.kernels))
        for kernel in new:
            terms.add_kernel(kernel, leader)
        self._kernels = len(flow.kernels)
        lists: dict[str, list[Row]] = {"LNone": [], "LMore": []}
        rows: dict[str, list[tuple[Cell, ...]]] = {}
        for handle in range(self._loaded, len(terms.terms)):
            name, *rest = terms.terms[handle]
            match name:
                case "Rd":
                    of = self.engine.list_of(tuple(int(v) for v in rest[1:]), lists)
                    rows.setdefault("LRd", []).append((handle, of, rest[0]))
                case "C":
                    text = str(rest[0])
                    rows.setdefault("LC", []).append((handle, text, number(text), int(text[0] == "i")))
                case _:
                    rows.setdefault(f"L{name}", []).append((handle, *rest))
        self._loaded = len(terms.terms)
        for kernel in new:
            if kernel in terms.computations:
                head, term, earlier = terms.computations[kernel]
                (output,) = flow.outputs(kernel)
                rows.setdefault("LComp", []).append((output, head, self.engine.list_of(earlier, lists), term))
        plain = [(at,) for at in range(self._heads, len(terms.heads)) if terms.heads[at].plain]
        self._heads = len(terms.heads)
        data: dict[str, Sequence[Sequence[Cell]]] = {**lists, **rows, "plain": plain, "US": united}
        for relation, found in data.items():
            self.engine.tables.insert(relation, found)
        self.engine.run("load")

    def _pair(self, union: ScalarUnion, leader: Sequence[int]) -> tuple[int, int] | None:
        """The terms of a union. None where there are none, or where nothing in them tells their dtype, so that they might mean
        something else elsewhere."""
        nest = self.engine.flow.template_of(union.kernel).nest
        match nest:
            case Nest(body=(Equation() as equation,)) if dtype_of(union.before) and dtype_of(union.after):
                pass
            case _:
                return None
        if wraps(equation):
            return None
        names = {name: f"{HOLE}{k}" for k, name in enumerate(union.names)}
        try:
            frame = self.terms.frame(union.kernel, equation, leader)
            frame = frame.called(names)
            return self.terms.term(union.before, frame), self.terms.term(union.after, frame)
        except NoTerm:
            return None

    # --------------------------------------------------------------------------------------------------------------------- out

    def read(self, frozen: Frozen, view: Classes, leader_of: dict[int, int]) -> list[Derivation]:
        """Kernels with bodies that the terms of a class allow. ``leader_of``: the leading value of a class of T in ``frozen``."""
        nodes = _nodes(frozen, leader_of)
        best = _cheapest(nodes)
        found = []
        lists = _lists(frozen, leader_of)
        for (head, earlier, term), output in frozen.rows("Comp"):
            value = leader_of.get(int(output))
            if value is None:
                continue
            before = lists[int(earlier)]
            for expr in self._bodies(self.terms.heads[int(head)], int(term), nodes, best):
                key = int(head), value, expr
                if key not in self._made:
                    self._made.add(key)
                    found += self._kernels_of(view, int(head), value, before, expr)
        return found

    def _bodies(self, head: Head, term: int, nodes: dict[int, list[Node]], best: dict[int, tuple[int, Node]]) -> Iterator[Expr]:
        ranked = sorted((_size(node, best), node) for node in nodes.get(term, ()))
        for size, node in ranked[: self.variants]:
            if size < inf:
                yield self._expr(node, best)

    def _expr(self, node: Node, best: dict[int, tuple[int, Node]]) -> Expr:
        def below(at: int | str) -> Expr:
            return self._expr(best[int(at)][1], best)

        match node:
            case ("C", str(text)):
                return constant(text)
            case ("Ix", int(position), int()):
                return Index(position)
            case ("Rd", int(found), *values):
                return self.terms.read_back(found, [int(v) for v in values], RESULT)
            case ("Self", int(), int(found)):
                return self.terms.read_back(found, [OWN], RESULT)
            case ("Op1", "-" | "!" as op, a):
                return Unary(op, below(a))
            case ("Op2", str(op), a, b) if op in BINARY:
                return Binary(op, below(a), below(b))
            case ("Sel", c, a, b):
                return Call("if_then_else", (below(c), below(a), below(b)))
            case (_, str(op), *parts) if op.split()[0] in COMPARISONS:
                return Compare(tuple(below(part) for part in parts), tuple(op.split()))
            case (_, str(fn), *parts):
                return Call(fn, tuple(below(part) for part in parts))
        raise AssertionError(node)

    def _kernels_of(self, view: Classes, head: int, value: int, earlier: tuple[int, ...], expr: Expr) -> list[Derivation]:
        """The body under the schedules that are known for its computation."""
        flow, shape = view.flow, self.terms.heads[head]
        tensor = Tensor(RESULT, shape.dtype, shape.scope)  # type: ignore[arg-type]
        target = Access(tensor, shape.target)
        equation = Equation(target, expr, shape.init)
        if equation.accumulates != shape.operator:
            return []
        found = []
        bases = [k for k in view.kernels.get(value, ()) if k in self.terms.computations and self.terms.computations[k][0] == head]
        for base in bases[: self.variants]:
            nest = Nest(shape.axes, flow.template_of(base).nest.schedule, (equation,))
            if lift(flatten(nest)) is not nest:
                continue
            operands = {value_name(v): v for v in range(len(view.leader)) if value_name(v) in tensors(nest)}
            if earlier:
                operands[RESULT] = earlier[0]
            last = len(flow.kernels)
            plain, names, _ = template(nest, operands)
            old = flow.values[value]
            shapes, types = {old.name: old.shape}, {old.name: old.dtype}
            made = flow.kernel(plain, tuple(operands[n] for n in names), (old.name,), shapes, types, flow.place[base])
            (output,) = flow.outputs(made)
            new = output >= len(view.leader)
            if made >= last or (not new and view.leader[output] != value):
                found.append(Derivation(None, "real", (base,), (made,), ((value, output),)))
        return found


BINARY = ("+", "-", "*", "/", "//", "%", "**", "&", "|")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def _lists(frozen: Frozen, leader_of: dict[int, int]) -> dict[int, tuple[int, ...]]:
    """By class of Ts: the leaders of its values."""
    found: dict[int, tuple[int, ...]] = {int(out): () for _, out in frozen.rows("None")}
    rows = {int(out): (int(first), int(rest)) for (first, rest), out in frozen.rows("More")}

    def values(at: int) -> tuple[int, ...]:
        if at not in found:
            first, rest = rows[at]
            found[at] = (leader_of[first], *values(rest))
        return found[at]

    for at in rows:
        values(at)
    return found


def _nodes(frozen: Frozen, leader_of: dict[int, int]) -> dict[int, list[Node]]:
    """By class of S: its rows."""
    lists = _lists(frozen, leader_of)
    found: dict[int, list[Node]] = {}
    for name in ("C", "Ix", "Self", *SUBTERMS):
        for inputs, out in frozen.rows(name):
            found.setdefault(int(out), []).append((name, *(x if isinstance(x, str) else int(x) for x in inputs)))
    for (values, access), out in frozen.rows("Rd"):
        found.setdefault(int(out), []).append(("Rd", int(access), *lists[int(values)]))
    return found


def _cheapest(nodes: dict[int, list[Node]]) -> dict[int, tuple[int, Node]]:
    """By class: the size of its smallest term, and the row at its top."""
    best: dict[int, tuple[int, Node]] = {}
    changed = True
    while changed:
        changed = False
        for at, rows in nodes.items():
            for node in rows:
                size = _size(node, best)
                if size < inf and (at not in best or size < best[at][0]):
                    best[at] = int(size), node
                    changed = True
    return best


def _size(node: Node, best: dict[int, tuple[int, Node]]) -> float:
    name = node[0]
    below = [node[1 + at] for at in SUBTERMS.get(str(name), ())]
    return 1 + sum(best[int(at)][0] if int(at) in best else inf for at in below)
