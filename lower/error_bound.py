"""How far rounding may carry a program's outputs from their exact values: a running error analysis, written in LEIR.

For every float tensor X of a program there is a second one, X', that bounds ``|computed X - exact X|`` to first order, for the very
order of operations of the program. It is computed next to X by the rules of Higham, *Accuracy and Stability of Numerical
Algorithms*, chapter 3, as equations in f64 that the interpreter runs. With u the unit roundoff of an operation's dtype,
``r(v) = u*|v| + (least subnormal)`` its rounding, and x', y' the bounds of the operands:

    x+y, x-y    x' + y' + r(v)
    x*y         |x|*y' + |y|*x' + x'*y' + r(v)
    x/y         (x' + |v|*y') / (|y| - y') + r(v)         infinite where y may be zero
    max, min    max(x', y')
    exp         v*x'*exp(x') + 4r(v)
    log         x' / (|x| - x') + 4r(v)                    infinite where x may be zero
    x**n        n*(|x| + x')**(n-1)*x' + 4r(v)             for n = 2, 3, 4
    x**y        |v| * (|y|*x'/(|x| - x') + |log|x||*y') + 4r(v)
    floor, ceil 0 where x-x' and x+x' agree, else infinite
    a condition on floats that rounding may flip makes the bound of what it chooses infinite

4r(v) stands for library functions: TVM's and NumPy's stay within 2 ulp (measured; tanh through LLVM). Inputs are exact. A sum
``X=X+e1+...`` adds, at every step, the bounds of its terms and one rounding per addition, and a product accumulates relative
errors. An infinite or undefined bound means: nothing can be said about this element, and a comparison leaves it out.

Integers and bools are taken as exact even where they come from rounded floats.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leir.elaborate import Apply, Const, IndexValue, Load, Typed, elaborate
from leir.interpret import run_flat
from leir.ir import (
    FLOAT_DTYPES,
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Int,
    Known,
    Nest,
    Program,
    Real,
    Signature,
    Tensor,
    Unary,
    accumulation,
)
from leir.lift import flatten_program
from leir.names import fresh_tensor
from leir.scalars import constant
from leir.shapes import walk_equations

UNIT_ROUNDOFF: Mapping[str, float] = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}
LEAST: Mapping[str, float] = {"f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-149, "f64": 2.0**-1074}
"""The least subnormal: what a result near zero may lose whole."""
LIBRARY = 4
"""Roundings granted to a call of a library function."""

_MANTISSA = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
_ZERO = Real(0.0)


def error_bounds(program: Program, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The bound of every element of every float output, f64, infinite where nothing can be said.

    Raises InterpretError as `leir.interpret.interpret` does.
    """
    flat = flatten_program(program)
    analysis = _Analysis(program.signature, flat)
    nests = tuple(analysis.nest(nest) for nest in flat)
    wide = {k: v.astype(np.float64) if v.dtype.kind == "f" else v for k, v in inputs.items()}
    found = run_flat(analysis.signature(), nests, wide)
    bounds: dict[str, NDArray[Any]] = {}
    for tensor in program.signature.outputs:
        if tensor.dtype in FLOAT_DTYPES:
            bound = found[analysis.twin[tensor.name]]
            if tensor.name in analysis.relative:
                with np.errstate(all="ignore"):
                    bound = bound * (1 + bound) * np.abs(found[tensor.name])
            bounds[tensor.name] = np.where(np.isnan(bound), np.inf, bound)
    return bounds


class _Analysis:
    """``twin``: the name of X' for every written float tensor X. ``relative``: those whose X' is a relative error."""

    def __init__(self, signature: Signature, nests: Sequence[Nest]) -> None:
        self.given = signature
        taken = {t.name for t in signature.tensors}
        written: dict[str, str] = {}
        self.relative: set[str] = set()
        for _, _, equation in walk_equations(nests):
            taken.add(equation.target.tensor.name)
            if equation.target.tensor.dtype in FLOAT_DTYPES:
                written.setdefault(equation.target.tensor.name, equation.target.tensor.dtype)
                if equation.accumulates == "*":
                    self.relative.add(equation.target.tensor.name)
        self.twin: dict[str, str] = {}
        for name in written:
            self.twin[name] = fresh_tensor(taken)
            taken.add(self.twin[name])

    def signature(self) -> Signature:
        known = [Known(t.name, _wide(t.dtype), t.shape, t.role, t.range) for t in self.given.tensors]
        known += [Known(self.twin[t.name], "f64", t.shape, "output") for t in self.given.outputs if t.name in self.twin]
        return Signature(self.given.name, tuple(known))

    def nest(self, nest: Nest) -> Nest:
        body: list[Equation | Nest] = []
        for item in nest.body:
            body += [self.nest(item)] if isinstance(item, Nest) else self.equation(item)
        return Nest(nest.axes, nest.schedule, tuple(body))

    def equation(self, equation: Equation) -> list[Equation]:
        """The equation in f64, and that of its bound."""
        target = _wide_access(equation.target)
        typed = elaborate(equation)
        plain = Equation(target, _value(typed), equation.init)
        if equation.target.tensor.dtype not in FLOAT_DTYPES:
            return [plain]
        twin = self.twin_of(equation.target)
        found = accumulation(equation)
        if found is None:  # the right-hand side may read what the equation overwrites, so the bound comes first
            bound = self.bound(typed)
            if equation.target.tensor.name in self.relative:
                bound = _relative(bound, plain.value)
            return [Equation(twin, bound or _ZERO), plain]
        return [plain, Equation(twin, self.accumulated(typed, found[0], found[1], twin, target))]

    def accumulated(self, typed: Typed, op: str, path: tuple[int, ...], twin: Access, target: Access) -> Expr:
        """The new X' from the old one; ``target`` holds the new X by then."""
        assert isinstance(typed, Apply)
        dtype = typed.dtype
        if op in ("max", "min"):
            return Call("max", (twin, self.bound(typed.args[1 - path[0]]) or _ZERO))
        terms: list[Typed] = []  # last first
        node: Typed = typed
        for _ in path:
            assert isinstance(node, Apply)
            terms.append(node.args[1])
            node = node.args[0]
        partial: Expr = _abs(target)
        parts: list[Expr | None] = []
        if op == "*":  # the partial products of X*e1*e2: X_new, then X_new/e2
            for term in terms:
                parts += [_relative(self.bound(term), _value(term)), Binary("/", _rounding(partial, dtype), partial)]
                partial = Binary("/", partial, _abs(_value(term)))
            return _sum([twin, *parts])
        for term in terms:  # the partial sums of X+e1+e2: X_new, then |X_new|+|e2| at most
            parts += [self.bound(term), _rounding(partial, dtype)]
            partial = Binary("+", partial, _abs(_value(term)))
        return _sum([twin, *parts])

    def twin_of(self, access: Access) -> Access:
        return Access(Tensor(self.twin[access.tensor.name], "f64", "g"), access.subscripts)

    def bound(self, typed: Typed) -> Expr | None:
        """The bound of an expression's value; None is zero."""
        match typed:
            case Const(dtype=dtype):
                return _constant_error(typed) if dtype in FLOAT_DTYPES else None
            case IndexValue(dtype=dtype):
                return _rounding(_abs(_value(typed)), dtype) if dtype in ("f16", "bf16", "f32") else None
            case Load():
                name = typed.access.tensor.name
                if name not in self.twin:
                    return None
                twin = self.twin_of(typed.access)
                if name not in self.relative:
                    return twin
                return _times(_times(twin, Binary("+", Real(1.0), twin)), _abs(_value(typed)))
            case Apply():
                return self.operation(typed) if typed.dtype in FLOAT_DTYPES else None

    def operation(self, typed: Apply) -> Expr | None:
        dtype, op = typed.dtype, typed.op
        if op == "if_then_else":
            guard, then, other = typed.args
            flips = self.flips(guard)
            a, b = self.bound(then), self.bound(other)
            chosen = Call("if_then_else", (_value(guard), a or _ZERO, b or _ZERO)) if a or b else None
            return _sum_or_none([chosen, *flips])
        if op == "cast":
            return _sum_or_none([self.bound(typed.args[0]), _cast_rounding(typed)])
        bounds = [self.bound(a) for a in typed.args]
        values = [_value(a) for a in typed.args]
        value = _value(typed)
        rounded = _rounding(_abs(value), dtype)
        match op:
            case "neg" | "abs":
                return bounds[0]
            case "max" | "min":
                return Call("max", (bounds[0] or _ZERO, bounds[1] or _ZERO)) if any(bounds) else None
            case "+" | "-":  # an infinity stays what it is: masks add -inf
                infinite = Compare((_abs(value), Real(math.inf)), ("==",))
                return Call("if_then_else", (infinite, _ZERO, _sum([*bounds, rounded])))
            case "*":
                return _sum([*_product_error(values, bounds), rounded])
            case "/":
                above = _sum_or_none([bounds[0], _times(_abs(value), bounds[1])])
                return _sum([_over(above, _away_from_zero(values[1], bounds[1])), rounded])
            case "floor" | "ceil":
                return _step(op, values[0], bounds[0])
            case "sqrt":
                return _sum([_root_error(value, bounds[0]), rounded])
        propagated = self.library(op, values, bounds, value)
        return _sum([propagated, _times(Real(float(LIBRARY)), rounded)])

    def library(self, op: str, x: Sequence[Expr], e: Sequence[Expr | None], value: Expr) -> Expr | None:
        """What a library function makes of its operands' bounds."""
        first = e[0]
        match op:
            case "exp":
                return None if first is None else Binary("*", _abs(value), Binary("*", first, Call("exp", (first,))))
            case "log":
                return _over(first, _away_from_zero(x[0], first))
            case "sin" | "cos" | "tanh":
                return first
            case "erf":
                return _times(Real(2 / math.sqrt(math.pi)), first)
            case "sigmoid":
                return _times(Real(0.25), first)
            case "**" if isinstance(x[1], Real) and e[1] is None and x[1].value in (2, 3, 4):
                largest = Binary("+", _abs(x[0]), first or _ZERO)
                slope = Binary("*", x[1], Binary("**", largest, Real(x[1].value - 1)))
                return _times(slope, first)
            case "**":
                power = _times(_abs(x[1]), _over(first, _away_from_zero(x[0], first)))
                exponent = _times(_abs(Call("log", (_abs(x[0]),))), e[1])
                return _times(_abs(value), _sum_or_none([power, exponent]))
        raise AssertionError(op)

    def flips(self, guard: Typed) -> list[Expr | None]:
        """For every comparison of rounded floats in ``guard``: infinity where rounding may turn it around."""
        if not isinstance(guard, Apply):
            return []
        if guard.op in ("&", "|", "not"):
            return [flip for arg in guard.args for flip in self.flips(arg)]
        if guard.op == "if_then_else" or len(guard.args) != 2 or guard.args[0].dtype not in FLOAT_DTYPES:
            return []
        error = _sum_or_none([self.bound(a) for a in guard.args])
        if error is None:
            return []
        distance = _abs(Binary("-", _value(guard.args[0]), _value(guard.args[1])))
        close = Binary("&", Compare((error, _ZERO), (">",)), Compare((distance, error), ("<=",)))
        return [Call("if_then_else", (close, Real(math.inf), _ZERO))]


# ------------------------------------------------------------------------------------------------------------- values, in f64


def _wide(dtype: str) -> str:
    return "f64" if dtype in FLOAT_DTYPES else dtype


def _wide_access(access: Access) -> Access:
    return Access(Tensor(access.tensor.name, _wide(access.tensor.dtype), access.tensor.scope), access.subscripts)


def _value(typed: Typed) -> Expr:
    """The expression with every float dtype replaced by f64."""
    match typed:
        case Const():
            return Real(float(typed.value)) if typed.dtype in FLOAT_DTYPES else Int(int(typed.value))
        case IndexValue():
            return Call(f"cast_{_wide(typed.dtype)}", (typed.expr,))
        case Load():
            return _wide_access(typed.access)
        case Apply():
            args = tuple(_value(a) for a in typed.args)
            match typed.op:
                case "neg":
                    return Unary("-", args[0])
                case "not":
                    return Unary("!", args[0])
                case "cast":
                    return Call(f"cast_{_wide(typed.dtype)}", args)
                case "+" | "-" | "*" | "/" | "//" | "%" | "**" | "&" | "|":
                    return Binary(typed.op, args[0], args[1])
                case "<" | "<=" | ">" | ">=" | "==" | "!=":
                    return Compare(args, (typed.op,))
            return Call(typed.op, args)


# ---------------------------------------------------------------------------------------------------------------------- bounds


def _abs(expr: Expr) -> Expr:
    return expr if isinstance(expr, Real) else Call("abs", (expr,))


def _rounding(magnitude: Expr, dtype: str) -> Expr:
    return Binary("+", Binary("*", Real(UNIT_ROUNDOFF[dtype]), magnitude), Real(LEAST[dtype]))


def _constant_error(const: Const) -> Expr | None:
    exact = float(const.value)
    if not math.isfinite(exact):
        return None
    error = abs(float(constant(const.value, const.dtype)) - exact)
    return Real(error) if error else None


def _cast_rounding(typed: Apply) -> Expr | None:
    source, dtype = typed.args[0].dtype, typed.dtype
    exact = source in ("bool", "i8") or (source in FLOAT_DTYPES and _MANTISSA[source] <= _MANTISSA[dtype])
    if exact and not (source == "f16" and dtype == "bf16"):
        return None
    return _rounding(_abs(_value(typed)), dtype)


def _product_error(values: Sequence[Expr], bounds: Sequence[Expr | None]) -> list[Expr | None]:
    (x, y), (ex, ey) = values, bounds
    return [_times(_abs(x), ey), _times(_abs(y), ex), _times(ex, ey)]


def _away_from_zero(value: Expr, bound: Expr | None) -> Expr:
    """The least that |value| can be."""
    return _abs(value) if bound is None else Call("max", (Binary("-", _abs(value), bound), _ZERO))


def _step(op: str, value: Expr, bound: Expr | None) -> Expr | None:
    if bound is None:
        return None
    low, high = Call(op, (Binary("-", value, bound),)), Call(op, (Binary("+", value, bound),))
    return Call("if_then_else", (Compare((low, high), ("==",)), _ZERO, Real(math.inf)))


def _root_error(root: Expr, bound: Expr | None) -> Expr | None:
    """|sqrt(x+e)-sqrt(x)| is at most sqrt(e), and at most e/sqrt(x)."""
    if bound is None:
        return None
    return Call("min", (Binary("/", bound, Binary("+", root, Real(LEAST["f64"]))), Call("sqrt", (bound,))))


def _relative(bound: Expr | None, value: Expr) -> Expr:
    if bound is None:
        return _ZERO
    return Call("if_then_else", (Compare((bound, _ZERO), ("==",)), _ZERO, Binary("/", bound, _abs(value))))


def _over(numerator: Expr | None, denominator: Expr) -> Expr | None:
    return None if numerator is None else Binary("/", numerator, denominator)


def _times(left: Expr | None, right: Expr | None) -> Expr | None:
    return None if left is None or right is None else Binary("*", left, right)


def _sum(parts: Sequence[Expr | None]) -> Expr:
    return _sum_or_none(parts) or _ZERO


def _sum_or_none(parts: Sequence[Expr | None]) -> Expr | None:
    present = [p for p in parts if p is not None]
    if not present:
        return None
    total = present[0]
    for part in present[1:]:
        total = Binary("+", total, part)
    return total
