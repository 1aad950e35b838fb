"""The loop-equation IR in memory (design: leir.md, section 4).

    Program(signature, nests)
      Nest(axes, schedule, body)            an expression: WHAT is computed, over logical axes
        schedule: Loop(kind, name, digits)  HOW the iteration space is walked, outermost first
                    Digit(axis, extent, stride)
        body:     Equation(target, value, init) | Nest
                    Expr = Int | Real | Index | Access | Unary | Binary | Compare | Call

Axes have no names, only numbers. A nest inside a bracket sees the axes of its ancestors, so its own axes are numbered
from the count of theirs: ``Index(k)`` and ``Digit(k, ...)`` mean the k-th axis along the path. The order of the numbers is the
*reference order*: walking the axes as nested loops in that order is a legal order of the nest.

A nest whose every loop is one whole axis, in axis order, is called *flat*; it is the text, as a tree. `leir.lift` goes from flat to
normal form and back, and `Program` holds nests in normal form only.

Nodes are frozen and hash-consed: equality is identity, hashing is free, and memo tables may key on nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from math import prod
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from weakref import WeakValueDictionary

Kind: TypeAlias = Literal["L", "P", "V", "U", "B"]
Scope: TypeAlias = Literal["g", "s", "l"]
Role: TypeAlias = Literal["input", "param", "constant", "output"]

KINDS = ("L", "P", "V", "U", "B")
SCOPES = ("g", "s", "l")
ROLES = ("input", "param", "constant", "output")
FLOAT_DTYPES = ("f16", "bf16", "f32", "f64")
INT_DTYPES = ("i8", "i32", "i64")
DTYPES = (*FLOAT_DTYPES, *INT_DTYPES, "bool")
GPU_AXES = ("bx", "by", "bz", "tx", "ty", "tz")

UNARY_CALLS = ("exp", "log", "sqrt", "abs", "erf", "tanh", "sin", "cos", "floor", "ceil", "sigmoid")
BINARY_CALLS = ("max", "min")
CASTS = tuple(f"cast_{dtype}" for dtype in DTYPES)
CALL_ARITY = {
    **dict.fromkeys(UNARY_CALLS, 1),
    **dict.fromkeys(BINARY_CALLS, 2),
    **dict.fromkeys(CASTS, 1),
    "if_then_else": 3,
}
ARITHMETIC = ("+", "-", "*", "/", "//", "%", "**")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")

if TYPE_CHECKING:
    Interned = type  # the metaclass below hides constructor signatures from the type checker
else:

    class Interned(type):
        """Hash-consing: a constructor call returns the one live node with these fields."""

        literal = None  # the only type that a literal's value may have

        def __init__(cls, *args: Any) -> None:
            super().__init__(*args)
            cls._live = WeakValueDictionary()

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            if len(args) < len(cls.__dataclass_fields__):
                missing = fields(cls)[len(args) :]
                args += tuple(kwargs[f.name] if f.name in kwargs or f.default is MISSING else f.default for f in missing)
            if cls.literal is not None and type(args[0]) is not cls.literal:  # 1, 1.0 and True are equal, and not the same text
                raise TypeError(f"{cls.__name__}({args[0]!r}): the value is a {cls.literal.__name__}")
            node = cls._live.get(args)
            if node is None:
                node = super().__call__(*args)
                cls._live[args] = node
            return node


class Node(metaclass=Interned):
    """A hash-consed value. Pickles by its fields, so that another process interns it again."""

    __slots__ = ("__weakref__",)

    def __reduce__(self) -> tuple[type[Node], tuple[Any, ...]]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------------------- scalar expressions


class Expr(Node):
    """A scalar expression; also a subscript, where it is an integer expression."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Int(Expr):
    """A literal without a point; never negative (the text has a unary minus)."""

    value: int


@dataclass(frozen=True, slots=True, eq=False)
class Real(Expr):
    """A literal with a point or an exponent, or ``inf``; never negative, never NaN."""

    value: float


if not TYPE_CHECKING:
    Int.literal, Real.literal = int, float


@dataclass(frozen=True, slots=True, eq=False)
class Index(Expr):
    """The value of an axis, an exact i64."""

    axis: int


@dataclass(frozen=True, slots=True, eq=False)
class Tensor(Node):
    """A tensor as an access names it."""

    name: str
    dtype: str
    scope: Scope


@dataclass(frozen=True, slots=True, eq=False)
class Access(Expr):
    """An element of a tensor. A 0-d tensor has no subscripts."""

    tensor: Tensor
    subscripts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Expr):
    op: Literal["-", "!"]
    operand: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Expr):
    """``+ - * / // % **`` and the strict boolean ``& |``."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Compare(Expr):
    """A chain, as in mathematics: ``1<=c<63`` has three operands and two operators."""

    operands: tuple[Expr, ...]
    ops: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Call(Expr):
    fn: str
    args: tuple[Expr, ...]


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct subexpressions, in the order of the text; a scalar path counts them from 0."""
    match expr:
        case Access():
            return expr.subscripts
        case Unary():
            return (expr.operand,)
        case Binary():
            return (expr.left, expr.right)
        case Compare():
            return expr.operands
        case Call():
            return expr.args
        case _:
            return ()


def with_children(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    """``expr`` with its direct subexpressions replaced."""
    match expr:
        case Access():
            return Access(expr.tensor, new)
        case Unary():
            return Unary(expr.op, new[0])
        case Binary():
            return Binary(expr.op, new[0], new[1])
        case Compare():
            return Compare(new, expr.ops)
        case Call():
            return Call(expr.fn, new)
        case _:
            return expr


def subexpressions(expr: Expr) -> Iterator[Expr]:
    """``expr`` and everything below it, preorder, subscripts included."""
    yield expr
    for child in children(expr):
        yield from subexpressions(child)


def accesses(expr: Expr) -> Iterator[Access]:
    """Every access in ``expr``, those inside subscripts included, in the order of the text."""
    return (e for e in subexpressions(expr) if isinstance(e, Access))


def is_index_arithmetic(expr: Expr) -> bool:
    """Loop indices and integers under ``+ - * // %`` and unary minus: an exact i64, converted once (leir.md, Arithmetic)."""
    match expr:
        case Int() | Index():
            return True
        case Unary(op="-"):
            return is_index_arithmetic(expr.operand)
        case Binary(op="+" | "-" | "*" | "//" | "%"):
            return is_index_arithmetic(expr.left) and is_index_arithmetic(expr.right)
        case _:
            return False


# ------------------------------------------------------------------------------------------------------------ loops and nests


@dataclass(frozen=True, slots=True, eq=False)
class Digit(Node):
    """One digit of an axis: ``extent`` values, each worth ``stride``."""

    axis: int
    extent: int
    stride: int


@dataclass(frozen=True, slots=True, eq=False)
class Loop(Node):
    """A loop over one or more digits, outermost first. ``name`` is how the text calls its index."""

    kind: Kind
    name: str
    digits: tuple[Digit, ...]

    @property
    def extent(self) -> int:
        return prod(d.extent for d in self.digits)

    @property
    def gpu_axis(self) -> str | None:
        """``bx`` ... ``tz`` for a bound loop."""
        return self.name[:2] if self.kind == "B" else None


AccumulateOp: TypeAlias = Literal["+", "*", "max", "min"]


@dataclass(frozen=True, slots=True, eq=False)
class Equation(Node):
    """``target=value``.

    ``init`` says which elements of the target start from the operator's identity here, because no write came before
    (leir.md, Implicit initialisation): ``None`` no element, ``"all"`` every element this equation writes, else the elements as the
    text of an isl set. Always ``None`` where the equation does not accumulate.
    """

    target: Access
    value: Expr
    init: str | None = None

    @property
    def accumulates(self) -> AccumulateOp | None:
        """The operator, if the target is the leftmost operand of the top-level ``+ -`` chain or ``*``, or an argument of the
        top-level ``max``/``min``, and occurs nowhere else on the right."""
        split = accumulation(self)
        return split[0] if split else None


def accumulation(equation: Equation) -> tuple[AccumulateOp, tuple[int, ...]] | None:
    """The operator of an accumulation and the scalar path of the accumulator in the value, or None.

    Any second access to the target's tensor on the right, at whatever subscripts, makes the equation an ordinary recurrence.
    """
    target, value = equation.target, equation.value
    if target.tensor.dtype == "bool":
        return None
    op: AccumulateOp
    path: list[int] = []
    occurrences = sum(a.tensor.name == target.tensor.name for a in accesses(value))
    match value:
        case Binary(op="+" | "-"):
            op, chain = "+", "+-"
        case Binary(op="*"):
            op, chain = "*", "*"
        case Call(fn="max" | "min"):
            if target not in value.args:
                return None
            where = value.args.index(target)
            if occurrences != 1:
                return None
            return ("max" if value.fn == "max" else "min"), (where,)
        case _:
            return None
    node: Expr = value
    while isinstance(node, Binary) and node.op in chain:
        path.append(0)
        node = node.left
    if node is not target or occurrences != 1:
        return None
    return op, tuple(path)


@dataclass(frozen=True, slots=True, eq=False)
class Nest(Node):
    """``axes``: the extents of the nest's own logical axes, in reference order. ``schedule``: loops whose digits partition
    those axes; sorted by stride, each stride is the product of the smaller extents."""

    axes: tuple[int, ...]
    schedule: tuple[Loop, ...]
    body: tuple[Item, ...]


Item: TypeAlias = Equation | Nest


def equations(item: Item) -> Iterator[Equation]:
    """The equations below ``item`` in program order."""
    if isinstance(item, Equation):
        yield item
    else:
        for child in item.body:
            yield from equations(child)


# --------------------------------------------------------------------------------------------------------------------- program


@dataclass(frozen=True, slots=True)
class Known:
    """A tensor that goes in or out: never renamed, reshaped, retyped; always global. ``range`` bounds the values of an integer
    tensor (both ends included)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: Role
    range: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Signature:
    name: str
    tensors: tuple[Known, ...]

    def find(self, name: str) -> Known | None:
        return next((t for t in self.tensors if t.name == name), None)

    @property
    def outputs(self) -> tuple[Known, ...]:
        return tuple(t for t in self.tensors if t.role == "output")

    @property
    def inputs(self) -> tuple[Known, ...]:
        """Every known tensor that is not an output, in signature order."""
        return tuple(t for t in self.tensors if t.role != "output")


@dataclass(frozen=True, slots=True)
class Program:
    """A signature and nests in normal form (`leir.lift.make_program` builds one). Equal when they print the same text under
    the same signature."""

    signature: Signature
    nests: tuple[Nest, ...]

    @property
    def name(self) -> str:
        return self.signature.name
