"""Random programs that are legal by construction, for property tests.

Every tensor is written in full before anything reads it, every subscript is built to stay inside its dimension, every guard makes
the access behind it safe. So a program from here passes the checker, interprets without an error, and obeys the laws of the
language; a test that finds otherwise has found a bug. Chance comes only from the ``random.Random`` that is passed in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import hypothesis.strategies as st
import numpy as np

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
    Unary,
)
from leir.lift import make_program

INDEX_NAMES = tuple("acdfghijklmnopqrsuw")
TENSOR_NAMES = tuple("ACDEFGHIJKMNOQRSWXYZ") + tuple(f"{c}{d}" for c in "ACDE" for d in "acdfg")


@dataclass(frozen=True, slots=True)
class Options:
    """What the programs may contain. ``extents`` are those of loops and dimensions, ``recurrences`` the weight of equations that
    read what they wrote, ``transcendental`` allows exp and so on."""

    dtypes: tuple[str, ...] = ("f32",)
    expressions: int = 4
    extents: tuple[int, ...] = (1, 2, 3, 4, 6)
    depth: int = 3
    nested: bool = True
    gathers: bool = True
    guards: bool = True
    recurrences: int = 1
    transcendental: bool = True
    kinds: bool = True


SMALL = Options(extents=(2, 3, 4), expressions=3)


def programs(options: Options | None = None) -> st.SearchStrategy[Program]:
    """Legal programs in normal form."""
    chosen = options or Options()
    return st.builds(lambda rng: random_program(rng, chosen), st.randoms(use_true_random=False))


def random_program(rng: Random, options: Options | None = None) -> Program:
    """A legal program; its last expression writes the output."""
    signature, flat = random_flat(rng, options)
    return make_program(signature, flat)


def random_flat(rng: Random, options: Options | None = None) -> tuple[Signature, tuple[Nest, ...]]:
    """The signature and the flat nests of a legal program."""
    return _Builder(rng, options or Options()).program()


def random_kernel(rng: Random) -> Program:
    """A legal program of one GPU kernel: items under one block loop, each with a thread loop of its own, and a second expression
    that reads what the kernel wrote."""
    blocks, threads, length = rng.choice((2, 3, 4)), rng.choice((2, 4, 6)), rng.choice((2, 3))
    known = (
        Known("A", "f32", (blocks, threads, length), "input"),
        Known("C", "f32", (threads, length), "input"),
        Known("H", "f32", (blocks, threads), "output"),
    )

    def bound(name: str, axis: int, size: int) -> Loop:
        return Loop("B", name, whole(axis, size))

    def at(name: str, *subs: int) -> Access:
        return Access(Tensor(name, "f32", "g"), tuple(Index(k) for k in subs))

    own: list[Item] = []
    written: list[str] = []
    for name in ("D", "E", "F")[: rng.randint(2, 3)]:
        operand: Expr = at(rng.choice(written), 0, 1) if written and rng.random() < 0.6 else Real(0.5)
        target = at(name, 0, 1)
        thread = bound(rng.choice(("tx", "txa")), 1, threads)
        if rng.random() < 0.5:
            product = Binary("*", at("A", 0, 1, 2), at("C", 1, 2))
            body = Equation(target, Binary("+", target, Binary("*", product, operand)))
            loops = (thread, Loop("L", "c", whole(2, length)))
            own.append(Nest((threads, length), loops, (body,)))
        else:
            own.append(Nest((threads,), (thread,), (Equation(target, Call("max", (operand, Real(0.25)))),)))
        written.append(name)
    kernel = Nest((blocks,), (bound("bx", 0, blocks),), tuple(own))
    kind = rng.choice("LB")
    names = ("bx", "tx") if kind == "B" else ("a", "c")
    outer = tuple(Loop(kind, n, whole(k, s)) for k, (n, s) in enumerate(zip(names, (blocks, threads), strict=True)))  # type: ignore[arg-type]
    last = Nest((blocks, threads), outer, (Equation(at("H", 0, 1), Binary("+", at(rng.choice(written), 0, 1), Real(1.0))),))
    return make_program(Signature("kernel", known), (kernel, last))


def random_inputs(program: Program, seed: int) -> dict[str, np.ndarray]:
    """Values for every known tensor that is not an output: normal floats, integers within their range, fair bools."""
    rng = np.random.default_rng(seed)
    values: dict[str, np.ndarray] = {}
    for tensor in program.signature.inputs:
        if tensor.dtype == "bool":
            values[tensor.name] = rng.integers(0, 2, tensor.shape).astype(np.bool_)
        elif tensor.dtype.startswith("i"):
            low, high = tensor.range or (-5, 5)
            values[tensor.name] = rng.integers(low, high + 1, tensor.shape).astype(
                {"i8": "int8", "i32": "int32", "i64": "int64"}[tensor.dtype]
            )
        else:
            values[tensor.name] = rng.standard_normal(tensor.shape).astype(
                {"f16": "float16", "f32": "float32", "f64": "float64"}[tensor.dtype]
            )
    return values


@dataclass(slots=True)
class _Loops:
    """Loops in scope, outermost first: (name, extent); axis k is loop k."""

    loops: list[tuple[str, int]]

    def extended(self, more: list[tuple[str, int]]) -> _Loops:
        return _Loops(self.loops + more)


@dataclass(slots=True)
class _Builder:
    rng: Random
    options: Options
    known: list[Known] = field(default_factory=list)
    readable: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    names: int = 0
    previous: list[int] = field(default_factory=list)
    row_only: set[str] = field(default_factory=set)

    def program(self) -> tuple[Signature, tuple[Nest, ...]]:
        rng = self.rng
        dtype = rng.choice(self.options.dtypes)
        for _ in range(rng.randint(1, 3)):
            self.declare(dtype, tuple(rng.choice(self.options.extents) for _ in range(rng.randint(1, 3))), "input")
        if self.options.gathers and rng.random() < 0.4:
            size = rng.choice(self.options.extents)
            self.declare("i64", (rng.choice(self.options.extents),), "input", (0, size - 1))
        nests: list[Nest] = []
        for _ in range(rng.randint(1, self.options.expressions)):
            nests += self.expression(dtype)
        name, (last, shape) = list(self.readable.items())[-1]
        self.known.append(Known(name, last, shape, "output"))
        return Signature("random", tuple(self.known)), tuple(nests)

    def declare(self, dtype: str, shape: tuple[int, ...], role: str, span: tuple[int, int] | None = None) -> None:
        name = self.fresh()
        self.known.append(Known(name, dtype, shape, role, span))  # type: ignore[arg-type]
        self.readable[name] = (dtype, shape)

    def fresh(self) -> str:
        self.names += 1
        return TENSOR_NAMES[self.names - 1]

    # ------------------------------------------------------------------------------------------------------------ expressions

    def expression(self, dtype: str) -> list[Nest]:
        forms: list[Callable[[str], list[Nest]]] = [self.pointwise, self.pointwise, self.reduction, self.reduction, self.update]
        forms += [self.recurrence, self.stencil, self.overwrite] * self.options.recurrences
        if self.options.nested:
            forms += [self.nested, self.nested]
        return self.rng.choice(forms)(dtype)

    def new_loops(self, scope: _Loops, most: int) -> list[tuple[str, int]]:
        count = self.rng.randint(1, most)
        start = len(scope.loops)
        extents = [self.rng.choice(self.options.extents) for _ in range(count)]
        if start == 0 and self.previous and self.rng.random() < 0.6:  # walk what the expression before walked, in part
            extents = (self.previous + extents)[:count]
        if start == 0:
            self.previous = extents
        return [(INDEX_NAMES[start + k], size) for k, size in enumerate(extents)]

    def pointwise(self, dtype: str) -> list[Nest]:
        scope = _Loops(self.new_loops(_Loops([]), self.options.depth))
        subs, shape = self.target(scope, list(range(len(scope.loops))))
        value = self.value(dtype, scope, 3)
        tensor = self.write(dtype, shape)
        return [self.nest(scope, 0, [Equation(Access(tensor, subs), value)], free=True)]

    def reduction(self, dtype: str) -> list[Nest]:
        scope = _Loops(self.new_loops(_Loops([]), self.options.depth))
        kept = [k for k in range(len(scope.loops)) if self.rng.random() < 0.6]
        subs, shape = self.target(scope, kept)
        value = self.value(dtype, scope, 2)
        tensor = self.write(dtype, shape)
        return [self.nest(scope, 0, [self.accumulate(Access(tensor, subs), value)])]

    def accumulate(self, target: Access, value: Expr) -> Equation:
        form = self.rng.choice(("+", "+", "-", "*", "max", "min", "first"))
        if form in ("max", "min"):
            args = (target, value) if self.rng.random() < 0.7 else (value, target)
            return Equation(target, Call(form, args))
        if form == "first":
            return Equation(target, Binary("+", Binary("+", target, value), Real(0.5) if target.tensor.dtype[0] == "f" else Int(2)))
        return Equation(target, Binary(form, target, value))

    def update(self, dtype: str) -> list[Nest]:
        """A second accumulation into, or an in-place change of, a temporary."""
        own = [n for n, (d, s) in self.readable.items() if d == dtype and s and all(k.name != n for k in self.known)]
        if not own:
            return self.pointwise(dtype)
        name = self.rng.choice(own)
        shape = self.readable[name][1]
        scope = _Loops([(INDEX_NAMES[k], n) for k, n in enumerate(shape)])
        target = Access(Tensor(name, dtype, "g"), tuple(Index(k) for k in range(len(shape))))
        held = self.readable.pop(name)
        value = self.value(dtype, scope, 2)
        self.readable[name] = held
        if self.rng.random() < 0.5:
            return [self.nest(scope, 0, [self.accumulate(target, value)])]
        return [self.nest(scope, 0, [Equation(target, Binary("-", value, target))], free=True)]

    def recurrence(self, dtype: str) -> list[Nest]:
        """A running value along the last loop, the first step guarded."""
        scope = _Loops(self.new_loops(_Loops([]), min(2, self.options.depth)))
        last = len(scope.loops) - 1
        value = self.value(dtype, scope, 1)
        tensor = self.write(dtype, tuple(n for _, n in scope.loops))
        subs = tuple(Index(k) for k in range(last + 1))
        back = Access(tensor, (*subs[:-1], Binary("-", Index(last), Int(1))))
        guard = Compare((Binary("-", Index(last), Int(1)), Int(0)), ("<",))
        start = Call("if_then_else", (guard, self.constant(dtype), back))
        combined = self.rng.choice((Binary("+", start, value), Call("max", (start, value)), Binary("*", start, value)))
        return [self.nest(scope, 0, [Equation(Access(tensor, subs), combined)])]

    def stencil(self, dtype: str) -> list[Nest]:
        """A value that reads an element written earlier, some steps back along the loops, guarded to where it exists."""
        rng = self.rng
        scope = _Loops([(name, max(2, n)) for name, n in self.new_loops(_Loops([]), 3)])
        sizes = [n for _, n in scope.loops]
        back = [rng.choice((-1, 0, 1)) for _ in sizes]
        lead = rng.randrange(len(sizes))
        back[:lead] = [0] * lead
        back[lead] = -1
        value = self.value(dtype, scope, 1)
        tensor = self.write(dtype, tuple(sizes))
        guard: Expr | None = None
        subs: list[Expr] = []
        for k, (step, size) in enumerate(zip(back, sizes, strict=True)):
            subs.append(Index(k) if step == 0 else Binary("+" if step > 0 else "-", Index(k), Int(1)))
            if step:
                inside = Compare((Int(0), subs[-1], Int(size)), ("<=", "<"))
                guard = inside if guard is None else Binary("&", guard, inside)
        assert guard is not None
        earlier = Call("if_then_else", (guard, Access(tensor, tuple(subs)), self.constant(dtype)))
        combined = rng.choice((Binary("+", earlier, value), Call("min", (value, earlier))))
        target = Access(tensor, tuple(Index(k) for k in range(len(sizes))))
        return [self.nest(scope, 0, [Equation(target, combined)])]

    def overwrite(self, dtype: str) -> list[Nest]:
        """A target written several times over a loop that it does not depend on, from its neighbour's value so far."""
        scope = _Loops(self.new_loops(_Loops([]), 2))
        if len(scope.loops) < 2:
            scope = scope.extended(self.new_loops(scope, 1))
        value = self.value(dtype, scope, 1)
        at = self.rng.randrange(2)
        tensor = self.write(dtype, (scope.loops[at][1],))
        target = Access(tensor, (Index(at),))
        if at == 0 and self.rng.random() < 0.6:
            back = Access(tensor, (Binary("-", Index(at), Int(1)),))
            guard = Compare((Binary("-", Index(at), Int(1)), Int(0)), ("<",))
            value = Binary("+", Binary("*", Call("if_then_else", (guard, self.constant(dtype), back)), Int(2)), value)
        return [self.nest(scope, 0, [Equation(target, value)])]

    def nested(self, dtype: str) -> list[Nest]:
        """Items that share outer loops: row results computed, then used, inside one bracket."""
        outer = _Loops(self.new_loops(_Loops([]), 2))
        shared = list(range(len(outer.loops)))
        items: list[Item] = []
        before = dict(self.readable)
        for _ in range(self.rng.randint(2, 3)):
            row = [self.rng.choice([*shared, None]) for _ in shared] if self.rng.random() < 0.2 else list(shared)
            kept = [k for k in shared if k in row] if len(set(row)) == len(row) and None not in row else shared
            if self.rng.random() < 0.5:
                inner = outer.extended(self.new_loops(outer, 2))
                own = list(range(len(outer.loops), len(inner.loops)))
                if self.rng.random() < 0.5:
                    subs, shape = self.target(inner, kept, plain=len(shared))
                    value = self.value(dtype, inner, 2, shared=len(shared))
                    tensor = self.write(dtype, shape)
                    items.append(self.nest(inner, len(outer.loops), [self.accumulate(Access(tensor, subs), value)]))
                else:
                    subs, shape = self.target(inner, kept + own, plain=len(shared))
                    value = self.value(dtype, inner, 2, shared=len(shared))
                    tensor = self.write(dtype, shape)
                    items.append(self.nest(inner, len(outer.loops), [Equation(Access(tensor, subs), value)]))
            else:
                subs, shape = self.target(outer, kept, plain=len(shared))
                value = self.value(dtype, outer, 2, shared=len(shared))
                tensor = self.write(dtype, shape)
                items.append(Equation(Access(tensor, subs), value))
            self.row_only.add(tensor.name)
        self.row_only.clear()
        assert list(before) == list(self.readable)[: len(before)]
        return [self.nest(outer, 0, items)]

    # ------------------------------------------------------------------------------------------------------------------ parts

    def write(self, dtype: str, shape: tuple[int, ...]) -> Tensor:
        name = self.fresh()
        self.readable[name] = (dtype, shape)
        return Tensor(name, dtype, "g")

    def target(self, scope: _Loops, kept: list[int], plain: int = 0) -> tuple[tuple[Expr, ...], tuple[int, ...]]:
        """Subscripts that write every element of a new tensor exactly once over the loops ``kept``, and its shape. The first
        ``plain`` loops stand as whole subscripts in front."""
        rng = self.rng
        subs: list[Expr] = []
        shape: list[int] = []
        front = [k for k in kept if k < plain]
        rest = [k for k in kept if k >= plain]
        rng.shuffle(rest)
        for k in front:
            subs.append(Index(k))
            shape.append(scope.loops[k][1])
        while rest:
            k = rest.pop()
            size = scope.loops[k][1]
            form = rng.random()
            if form < 0.12 and rest:
                j = rest.pop()
                inner = scope.loops[j][1]
                subs.append(Binary("+", Binary("*", Index(k), Int(inner)), Index(j)))
                shape.append(size * inner)
            elif form < 0.24 and size in (4, 6):
                subs += [Binary("//", Index(k), Int(2)), Binary("%", Index(k), Int(2))]
                shape += [size // 2, 2]
            elif form < 0.3:
                subs.append(Binary("-", Int(size - 1), Index(k)))
                shape.append(size)
            else:
                subs.append(Index(k))
                shape.append(size)
        return tuple(subs), tuple(shape)

    def nest(self, scope: _Loops, outer: int, body: list[Item], free: bool = False) -> Nest:
        """The loops from number ``outer`` on, around ``body``. Where ``free`` (one equation, no loop carries anything) some are
        parallel, unrolled, vectorized or bound."""
        kinds = ["L"] * (len(scope.loops) - outer)
        names = [name for name, _ in scope.loops]
        if self.options.kinds and free:
            target = body[0].target if isinstance(body[0], Equation) else None
            whole_subs = {sub.axis for sub in target.subscripts if isinstance(sub, Index)} if target else set()
            for k in range(len(kinds)):
                if outer + k in whole_subs and self.rng.random() < 0.35:
                    kinds[k] = self.rng.choice("PUUB")
                    if kinds[k] == "B":
                        names[outer + k] = ("bx", "by", "ty", "tx")[k]
        elif self.options.kinds:
            kinds = ["U" if self.rng.random() < 0.1 else "L" for _ in kinds]
        loops = tuple(
            Loop(kind, names[outer + k], whole(outer + k, scope.loops[outer + k][1]))  # type: ignore[arg-type]
            for k, kind in enumerate(kinds)
        )
        return Nest(tuple(loop.extent for loop in loops), loops, tuple(body))

    def constant(self, dtype: str) -> Expr:
        if dtype.startswith("i"):
            return Int(self.rng.randint(0, 3))
        return self.rng.choice((Real(0.5), Int(1), Real(1.0), Int(2), Real(0.25), Real(1e-05), Binary("/", Int(1), Int(2))))

    def value(self, dtype: str, scope: _Loops, depth: int, shared: int = 0) -> Expr:
        rng = self.rng
        if depth == 0 or rng.random() < 0.15:
            return self.leaf(dtype, scope, shared)
        form = rng.random()
        if form < 0.6 or dtype.startswith("i"):
            op = rng.choice(("+", "-", "*", "+", "*"))
            return Binary(op, self.value(dtype, scope, depth - 1, shared), self.value(dtype, scope, depth - 1, shared))
        if form < 0.7:
            return Call(
                rng.choice(("max", "min")),
                (self.value(dtype, scope, depth - 1, shared), self.value(dtype, scope, depth - 1, shared)),
            )
        if form < 0.76:
            return Unary("-", self.value(dtype, scope, depth - 1, shared))
        if form < 0.82:
            return Binary("/", self.value(dtype, scope, depth - 1, shared), rng.choice((Int(2), Real(4.0), Int(3))))
        if form < 0.9 and self.options.transcendental:
            return Call(
                rng.choice(("exp", "tanh", "sigmoid", "abs", "erf", "floor")), (self.value(dtype, scope, depth - 1, shared),)
            )
        if self.options.guards:
            condition = Compare((self.leaf(dtype, scope, shared), self.constant(dtype)), (rng.choice(("<", "<=", ">", "==")),))
            branches = (self.value(dtype, scope, depth - 1, shared), self.value(dtype, scope, depth - 1, shared))
            return Call("if_then_else", (condition, *branches))
        return self.leaf(dtype, scope, shared)

    def leaf(self, dtype: str, scope: _Loops, shared: int) -> Expr:
        rng = self.rng
        form = rng.random()
        if form < 0.12:
            return self.constant(dtype)
        if form < 0.18 and scope.loops:
            k = rng.randrange(len(scope.loops))
            return rng.choice((Index(k), Binary("+", Index(k), Int(1))))
        names = [n for n, (d, _) in self.readable.items() if d == dtype]
        if not names:
            return self.constant(dtype)
        return self.read(rng.choice(names), scope, shared)

    def read(self, name: str, scope: _Loops, shared: int) -> Expr:
        dtype, shape = self.readable[name]
        tensor = Tensor(name, dtype, "g")
        if name in self.row_only:  # written in this very bracket: only the row of this iteration exists yet
            front = tuple(Index(k) for k in range(min(shared, len(shape))))
            return Access(tensor, front + tuple(self.subscript(n, scope) for n in shape[len(front) :]))
        if self.options.guards and shape and self.rng.random() < 0.2:
            return self.padded(tensor, shape, scope)
        if (
            self.rng.random() < 0.4
            and len(shape) <= len(scope.loops)
            and all(n <= m for (_, n), m in zip(scope.loops, shape, strict=False))
        ):
            return Access(tensor, tuple(Index(k) for k in range(len(shape))))
        return Access(tensor, tuple(self.subscript(n, scope) for n in shape))

    def padded(self, tensor: Tensor, shape: tuple[int, ...], scope: _Loops) -> Expr:
        """A read one to the side, guarded to the tensor's bounds."""
        at = self.rng.randrange(len(shape))
        k = self.rng.randrange(len(scope.loops))
        low = self.rng.choice((0, 1))
        moved: Expr = Binary("-", Index(k), Int(low)) if low else Binary("+", Index(k), Int(1))
        guard = Compare((Int(low), Index(k), Int(shape[at] + low if low else shape[at] - 1)), ("<=", "<"))
        subs = tuple(moved if d == at else self.subscript(n, scope) for d, n in enumerate(shape))
        return Call("if_then_else", (guard, Access(tensor, subs), self.constant(tensor.dtype)))

    def subscript(self, size: int, scope: _Loops) -> Expr:
        """An index expression with values in [0, size)."""
        rng = self.rng
        fits = [k for k, (_, n) in enumerate(scope.loops) if n <= size]
        choices: list[Expr] = [Int(rng.randrange(size))]
        choices += [Index(k) for k in fits] * 3
        for k in fits:
            choices.append(Binary("-", Int(size - 1), Index(k)))
            if scope.loops[k][1] < size:
                choices.append(Binary("+", Index(k), Int(size - scope.loops[k][1])))
        for k, (_, n) in enumerate(scope.loops):
            if n > size:
                choices.append(Binary("%", Index(k), Int(size)))
                if n % size == 0:
                    choices.append(Binary("//", Index(k), Int(n // size)))
            for j, (_, m) in enumerate(scope.loops):
                if j != k and n * m <= size:
                    choices.append(Binary("+", Binary("*", Index(k), Int(m)), Index(j)))
                if j != k and n + m - 1 <= size:
                    choices.append(Binary("+", Index(k), Index(j)))
        if self.options.gathers:
            for known in self.known:
                fit = (
                    [k for k, (_, n) in enumerate(scope.loops) if n <= known.shape[0]]
                    if known.range and known.range[1] < size
                    else []
                )
                choices += [Access(Tensor(known.name, "i64", "g"), (Index(k),)) for k in fit]
        return rng.choice(choices)
