"""Random programs whose brackets pass values around in every direction, for the dependences of graph-level steps.

Every temporary is written in full at the start, so that any item may read and write any element of it afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from leir.digits import whole
from leir.ir import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Int,
    Item,
    Known,
    Loop,
    Nest,
    Program,
    Real,
    Signature,
    Tensor,
)
from leir.lift import make_program


def random_bracket(rng: Random) -> Program:
    """A legal program: temporaries filled, one or two brackets of several items over them, an output made of all."""
    return _Brackets(rng, rng.choice((2, 3, 4)), rng.choice((2, 3))).program()


@dataclass(slots=True)
class _Brackets:
    rng: Random
    rows: int
    columns: int

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        n, m = self.rows, self.columns
        return {"A": (n, m), "C": (n,), "D": (n, m), "E": (n,), "F": (m,), "H": (n, m)}

    def program(self) -> Program:
        n, m = self.rows, self.columns
        roles = {"A": "input", "C": "input", "H": "output"}
        signature = Signature("bracket", tuple(Known(k, "f32", self.shapes[k], role) for k, role in roles.items()))  # type: ignore[arg-type]
        filled = [self.filled(name) for name in ("D", "E", "F")]
        self.rng.shuffle(filled)
        brackets = [self.bracket() for _ in range(self.rng.randint(1, 2))]
        total: Expr = Binary("+", Binary("+", self.at("D", 0, 1), self.at("E", 0)), self.at("F", 1))
        last = _nest((n, m), 0, (Equation(self.at("H", 0, 1), total),))
        return make_program(signature, (*filled, *brackets, last))

    def at(self, name: str, *axes: int) -> Access:
        return Access(Tensor(name, "f32", "g"), tuple(Index(k) for k in axes))

    def filled(self, name: str) -> Nest:
        shape = self.shapes[name]
        source = self.at("A", 0, 1) if len(shape) == 2 else self.at("C", 0) if name == "E" else self.at("A", 0, 0)
        if name == "F":
            source = Access(Tensor("A", "f32", "g"), (Int(self.rng.randrange(self.rows)), Index(0)))
        value: Expr = self.rng.choice((source, Binary("*", source, Real(0.5)), Int(1), Index(0)))
        return _nest(shape, 0, (Equation(self.at(name, *range(len(shape))), value),))

    def bracket(self) -> Nest:
        outer = self.rng.choice(((self.rows,), (self.columns,), (self.rows, self.columns)))
        items: list[Item] = []
        for _ in range(self.rng.randint(2, 4)):
            if self.rng.random() < 0.4:
                inner = self.rng.choice((self.rows, self.columns))
                items.append(_nest((inner,), len(outer), (self.equation((*outer, inner)),)))
            else:
                items.append(self.equation(outer))
        return _nest(outer, 0, tuple(items))

    def equation(self, sizes: tuple[int, ...]) -> Equation:
        target = self.access(self.rng.choice("DEF"), sizes)
        value: Expr = self.read(sizes)
        if self.rng.random() < 0.6:
            value = Binary(self.rng.choice("+*"), value, self.read(sizes))
        if self.rng.random() < 0.25:
            value = self.rng.choice((Binary("+", target, value), Call("max", (target, value))))
        return Equation(target, value)

    def read(self, sizes: tuple[int, ...]) -> Expr:
        access = self.access(self.rng.choice("ACDEFDEF"), sizes)
        first = access.subscripts[0]
        if self.rng.random() < 0.3 and isinstance(first, Index):
            back = Binary("-", first, Int(1))
            earlier = Access(access.tensor, (back, *access.subscripts[1:]))
            return Call("if_then_else", (Compare((Int(1), first), ("<=",)), earlier, Real(0.25)))
        return access

    def access(self, name: str, sizes: tuple[int, ...]) -> Access:
        return Access(Tensor(name, "f32", "g"), tuple(self.subscript(size, sizes) for size in self.shapes[name]))

    def subscript(self, size: int, sizes: tuple[int, ...]) -> Expr:
        fitting = [Index(k) for k, extent in enumerate(sizes) if extent <= size]
        if not fitting or self.rng.random() < 0.1:
            return Int(self.rng.randrange(size))
        axis = self.rng.choice(fitting)
        return Binary("-", Int(size - 1), axis) if self.rng.random() < 0.15 else axis


def _nest(sizes: tuple[int, ...], outer: int, body: tuple[Item, ...]) -> Nest:
    names = "acdfgh"[outer : outer + len(sizes)]
    loops = tuple(Loop("L", name, whole(outer + k, size)) for k, (name, size) in enumerate(zip(names, sizes, strict=True)))
    return Nest(sizes, loops, body)
