"""Is the store under a vectorized loop a vector of the target? Asked of the addresses, which are quasi-affine in the loops of the
text, so that isl decides exactly."""

from __future__ import annotations

from leir.checker.facts import ITEM_BYTES, evaluate, shown
from leir.ir import Access, Binary, Equation, Expr, Int, Nest
from leir.lift import flatten
from leir.polyhedral import OverBudgetError, affine, box, parse_set, sample, tuple_text, within_budget
from leir.shapes import ShapeError, temporary_shapes
from rules.strategy import Refusal, ScheduleUnit

VECTOR_BYTES = 16
"""The largest vector access of a GPU."""


def store_problem(unit: ScheduleUnit, changed: Nest) -> Refusal | None:
    """Why an equation of the unit's nest stores no vector under its innermost loop; ``changed`` is the expression afterwards."""
    flat = flatten(changed)
    nest, extents = flat, flat.axes
    names = [loop.name for loop in flat.schedule]
    for number in unit.path:
        inner = nest.body[number]
        assert isinstance(inner, Nest)
        nest, extents = inner, extents + inner.axes
        names += [loop.name for loop in inner.schedule]
    for equation in nest.body:
        assert isinstance(equation, Equation)
        shape = _shape(unit, flat, equation.target.tensor.name)
        if shape is None:
            return Refusal("vector-access", f"the shape of {equation.target.tensor.name} is not known")
        try:
            problem = within_budget(lambda e=equation, s=shape: _problem(e.target, s, extents, names, unit))
        except OverBudgetError:
            return Refusal("over-budget", f"isl ran over its budget on the addresses of {shown(equation.target, names)}")
        if problem is not None:
            return Refusal("vector-access", f"{shown(equation.target, names)}: {problem}")
    return None


def _shape(unit: ScheduleUnit, flat: Nest, name: str) -> tuple[int, ...] | None:
    """The shape of a tensor that the expression writes."""
    known = unit.signature.find(name)
    if known is not None:
        return known.shape
    listed = dict(unit.shapes).get(name)
    if listed is not None:
        return listed
    try:
        return temporary_shapes(unit.signature, (flat,)).get(name)
    except ShapeError:
        return None


def _problem(target: Access, shape: tuple[int, ...], extents: tuple[int, ...], names: list[str], unit: ScheduleUnit) -> str | None:
    lanes, dtype = extents[-1], target.tensor.dtype
    size = lanes * ITEM_BYTES[dtype]
    if unit.target == "cuda" and size > VECTOR_BYTES:
        return f"{lanes} lanes of {dtype} are {size} bytes, and the limit is {VECTOR_BYTES}"
    address = _address(target, shape)
    apart = _apart(address, extents)
    if apart is not None:
        step = evaluate(address, (*apart[:-1], apart[-1] + 1)) - evaluate(address, apart)
        return f"at {_point(names, apart)} the next lane is {step} elements away, and not the next element"
    askew = _askew(address, extents)
    if askew is not None:
        element = evaluate(address, askew)
        return f"at {_point(names, askew)} the vector starts at element {element}, and not at a multiple of {lanes}"
    return None


def _address(target: Access, shape: tuple[int, ...]) -> Expr:
    """The number of the element in row-major order."""
    address: Expr = Int(0)
    stride = 1
    for subscript, size in zip(reversed(target.subscripts), reversed(shape), strict=True):
        address = Binary("+", address, Binary("*", subscript, Int(stride)))
        stride *= size
    return address


def _apart(address: Expr, extents: tuple[int, ...]) -> tuple[int, ...] | None:
    """A lane that is not the last, where the next one is not at the next element."""
    names = [f"i{k}" for k in range(len(extents))]
    here, there = affine(address, names), affine(address, [*names[:-1], f"({names[-1]} + 1)"])
    assert here is not None, "a target's subscripts are quasi-affine"
    assert there is not None
    found = parse_set(f"{{ {tuple_text(names)} : {there} != {here} + 1 }}").intersect(box((*extents[:-1], extents[-1] - 1)))
    return sample(found)


def _askew(address: Expr, extents: tuple[int, ...]) -> tuple[int, ...] | None:
    """A first lane that is at no multiple of the number of lanes."""
    names = [f"i{k}" for k in range(len(extents))]
    here = affine(address, names)
    found = parse_set(f"{{ {tuple_text(names)} : ({here}) mod {extents[-1]} != 0 }}").intersect(box((*extents[:-1], 1)))
    return sample(found)


def _point(names: list[str], values: tuple[int, ...]) -> str:
    return ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))
