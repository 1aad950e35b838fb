"""Import of LEIR text that other tools wrote: missing casts are put in, bound reductions kept or made serial, all of it reported.

    program, diagnostics = import_text(text, signature)
    program, diagnostics = import_text(text, signature, demote=True)

The diagnostics are those of `leir.check.check` on the result, and one for each thing that was changed, with places in the text
as it came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leir.check import check_flat
from leir.checker.carried import Finding, carried
from leir.checker.facts import Facts
from leir.diagnostics import Diagnostic, Place, diagnose, order
from leir.ir import (
    CALL_ARITY,
    FLOAT_DTYPES,
    INT_DTYPES,
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Item,
    Loop,
    Nest,
    Program,
    Real,
    Signature,
    Unary,
    accumulation,
    children,
    is_index_arithmetic,
    with_children,
)
from leir.lift import make_program
from leir.names import fresh_index
from leir.parser import parse_nests
from leir.syntax.spans import Position, SpanTable

Path = tuple[int, ...]
Casts = Mapping[Path, str]
"""The dtype that a cast was put around a subexpression for, by its path in the value as it came."""


def import_text(
    text: str, signature: Signature, *, demote: bool = False, source: str = "<text>"
) -> tuple[Program, list[Diagnostic]]:
    """The program that foreign text means, and what there is to say about it, sorted by place.

    A missing cast is inserted (`cast-inserted`): mixed operands go to the wider dtype, an accumulation to its target's. A B loop
    that carries a reduction or another dependence keeps its sequential meaning and is reported as such, or, with ``demote``,
    becomes an L loop with a fresh index (`loop-demoted`). Raises LeirSyntaxError.
    """
    parsed = parse_nests(text, name=source)
    casts: dict[Path, Casts] = {}
    nests = tuple(_with_casts(nest, (k,), casts) for k, nest in enumerate(parsed.nests))
    spans = _RepairedSpans(parsed.spans, casts)
    found = [
        diagnose("cast-inserted", _place(parsed.spans, path, at), f"cast_{dtype} around an operand of another dtype")
        for path, inserted in casts.items()
        for at, dtype in inserted.items()
    ]
    if demote:
        nests, demoted = demote_bound_loops(signature, nests)
        for finding in demoted:
            path = finding.node.nest
            found.append(diagnose("loop-demoted", _place(parsed.spans, path, None), f"{finding.label}: it is serial now"))
    found += check_flat(signature, nests, spans=spans)
    return make_program(signature, nests), sorted(found, key=order)


def _place(spans: SpanTable, path: Path, scalar: Path | None) -> Place:
    line, column = spans.item(path) if scalar is None else spans.value(path, scalar)
    return Place(path, scalar, line, column)


@dataclass(frozen=True, slots=True)
class _RepairedSpans:
    """Positions in the text as it came, by paths in what it was repaired to."""

    original: SpanTable
    casts: Mapping[Path, Casts]

    def item(self, path: Sequence[int]) -> Position:
        return self.original.item(path)

    def value(self, path: Sequence[int], scalar: Sequence[int] = ()) -> Position:
        return self.original.value(path, original_path(self.casts.get(tuple(path), {}), scalar))


def original_path(casts: Casts, scalar: Sequence[int]) -> Path:
    """The path before the casts went in: each adds one step below the place where it stands."""
    path: Path = ()
    rest = list(scalar)
    while True:
        if path in casts and rest:
            rest.pop(0)
        if not rest:
            return path
        path = (*path, rest.pop(0))


# -------------------------------------------------------------------------------------------------------------------------- casts


def _with_casts(item: Nest, path: Path, casts: dict[Path, Casts]) -> Nest:
    body: list[Item] = []
    for k, child in enumerate(item.body):
        here = (*path, k)
        if isinstance(child, Nest):
            body.append(_with_casts(child, here, casts))
            continue
        equation, inserted = insert_casts(child)
        body.append(equation)
        if inserted:
            casts[here] = inserted
    return Nest(item.axes, item.schedule, tuple(body))


def insert_casts(equation: Equation) -> tuple[Equation, Casts]:
    """The equation with the casts that it lacks, and where they went. What no cast can mend stays as it is."""
    caster = _Caster(equation)
    value = caster.run()
    return (Equation(equation.target, value, equation.init) if caster.casts else equation), dict(sorted(caster.casts.items()))


_FREE = ""
"""The dtype of what takes its dtype from outside: literals and index arithmetic."""
_FREE_FLOAT = "."
"""The same for a literal with a point: it takes a float dtype only."""
_FLOAT_ONLY = tuple(fn for fn, arity in CALL_ARITY.items() if arity == 1 and fn != "abs" and not fn.startswith("cast_"))


class _Caster:
    def __init__(self, equation: Equation) -> None:
        self.value = equation.value
        self.target = equation.target.tensor.dtype
        found = accumulation(equation)
        self.accumulator = None if found is None else found[1]
        self.casts: dict[Path, str] = {}

    @property
    def float(self) -> str:
        """The float dtype for what must be one and is none: the target's, else f32."""
        return self.target if self.target in FLOAT_DTYPES else "f32"

    def run(self) -> Expr:
        value, dtype = self.visit(self.value, ())
        return self.cast(value, dtype, self.target, ())

    def cast(self, expr: Expr, dtype: str, want: str, path: Path) -> Expr:
        if dtype in (_FREE, _FREE_FLOAT, want):
            return expr
        self.casts[path] = want
        return Call(f"cast_{want}", (expr,))

    def visit(self, expr: Expr, path: Path) -> tuple[Expr, str]:
        """The repaired expression and its dtype."""
        if is_index_arithmetic(expr):
            return expr, _FREE
        match expr:
            case Real():
                return expr, _FREE_FLOAT
            case Access():
                return expr, expr.tensor.dtype
            case Call() if expr.fn.startswith("cast_"):
                inner, _ = self.visit(expr.args[0], (*path, 0))
                return Call(expr.fn, (inner,)), expr.fn.removeprefix("cast_")
            case Unary(op="!") | Binary(op="&" | "|"):
                return self.conditions(expr, path), "bool"
            case Compare():
                parts, _ = self.joined(expr.operands, path)
                return Compare(parts, expr.ops), "bool"
            case Call(fn="if_then_else"):
                guard, dtype = self.visit(expr.args[0], (*path, 0))
                branches, common = self.joined(expr.args[1:], path, first=1)
                return Call(expr.fn, (self.cast(guard, dtype, "bool", (*path, 0)), *branches)), common
        parts, common = self.joined(children(expr), path, op=expr.fn if isinstance(expr, Call) else getattr(expr, "op", ""))
        return with_children(expr, parts), common

    def conditions(self, expr: Expr, path: Path) -> Expr:
        visited = [self.visit(part, (*path, k)) for k, part in enumerate(children(expr))]
        return with_children(expr, tuple(self.cast(e, dtype, "bool", (*path, k)) for k, (e, dtype) in enumerate(visited)))

    def joined(self, operands: Sequence[Expr], path: Path, *, first: int = 0, op: str = "") -> tuple[tuple[Expr, ...], str]:
        """The operands in one dtype; ``op`` if it is arithmetic, which bool does not have."""
        visited = [self.visit(operand, (*path, k)) for k, operand in enumerate(operands, first)]
        common = _FREE
        for _, dtype in visited:
            common = _wider(common, dtype)
        if op and self.accumulator is not None and self.accumulator[: len(path)] == path != self.accumulator:
            common = self.target
        elif (_FREE_FLOAT in [d for _, d in visited] or op == "/" or op in _FLOAT_ONLY) and common in (*INT_DTYPES, "bool"):
            common = self.float
        elif op and common == "bool":
            common = self.target if self.target != "bool" else "i32"
        return tuple(self.cast(e, dtype, common, (*path, k)) for k, (e, dtype) in enumerate(visited, first)), common


_WIDTH = ("bool", "i8", "i32", "i64", "f16", "bf16", "f32", "f64")


def _wider(a: str, b: str) -> str:
    """The dtype that holds both: any float is wider than any integer, and f16 and bf16 meet in f32."""
    if not a or not b or a == b:
        return a or b
    if _FREE_FLOAT in (a, b):
        return b if a == _FREE_FLOAT else a
    if {a, b} == {"f16", "bf16"}:
        return "f32"
    return max(a, b, key=_WIDTH.index)


# -------------------------------------------------------------------------------------------------------------------- bound loops


def demote_bound_loops(signature: Signature, flat_nests: Sequence[Nest]) -> tuple[tuple[Nest, ...], list[Finding]]:
    """The flat nests with every B loop serial that carries a dependence, and the first such dependence of each loop."""
    nests = tuple(flat_nests)
    demoted: dict[tuple[Path, int], Finding] = {}
    for finding in carried(Facts(signature, nests, "any", None)):
        if finding.node.loop.kind == "B":
            demoted.setdefault((finding.node.nest, finding.node.axis), finding)
    for path, axis in demoted:
        number = path[0]
        taken = {node.loop.name for node in Facts(signature, (nests[number],), "any", None).nodes}
        nests = (*nests[:number], _serial(nests[number], path[1:], axis, fresh_index(taken)), *nests[number + 1 :])
    return nests, list(demoted.values())


def _serial(nest: Nest, path: Path, axis: int, name: str, depth: int = 0) -> Nest:
    if path:
        child = nest.body[path[0]]
        assert isinstance(child, Nest)
        inner = _serial(child, path[1:], axis, name, depth + len(nest.schedule))
        return Nest(nest.axes, nest.schedule, (*nest.body[: path[0]], inner, *nest.body[path[0] + 1 :]))
    at = axis - depth
    loop = Loop("L", name, nest.schedule[at].digits)
    return Nest(nest.axes, (*nest.schedule[:at], loop, *nest.schedule[at + 1 :]), nest.body)
