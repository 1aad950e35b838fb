"""Bounds: every access that can run stays inside its tensor; index arithmetic has a value.

Intervals first; isl only for what they leave open, with the least offending point as witness.
"""

from __future__ import annotations

from collections.abc import Iterator

from leir.checker.facts import Facts, Site, TensorUse, at_point, describe, element, evaluate, shown
from leir.checker.opaque import Exposed, expose
from leir.checker.regions import clipped, ranges, reach
from leir.diagnostics import Witness
from leir.elaborate import subscript_is_integer
from leir.ir import Access, Binary, Call, Expr, children, is_index_arithmetic, subexpressions
from leir.polyhedral import (
    Guard,
    OverBudgetError,
    Touch,
    affine,
    guarded_domain,
    parse_set,
    sample,
    tuple_text,
    within_budget,
)
from leir.printer import print_expr

_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1


def check_bounds(facts: Facts) -> None:
    """Report accesses that leave their tensor."""
    for site in facts.sites:
        for touch in site.touches:
            use = facts.tensors[touch.access.tensor.name]
            if use.shape is None or len(touch.access.subscripts) != len(use.shape) or site.path in facts.no_value:
                continue
            if all(subscript_is_integer(s) for s in touch.access.subscripts):
                _check_access(facts, site, touch, use, use.shape)


def _check_access(facts: Facts, site: Site, touch: Touch, use: TensorUse, shape: tuple[int, ...]) -> None:
    exposed = expose(facts, site, touch)
    box = ranges(exposed.touch.access, exposed.extents)
    if box is not None and clipped(box, shape) == box:
        return
    try:
        point = within_budget(lambda: _outside(exposed, shape))
    except OverBudgetError as problem:
        facts.report("undecided", f"{use.name} may be accessed outside its shape: {problem}", site.path, touch.scalar)
        return
    if point is None:
        return
    verb = "reads" if touch.role == "read" else "writes"
    cell = element(use.name, [evaluate(s, point) for s in exposed.touch.access.subscripts])
    if exposed.has("unranged"):
        witness = at_point(site.names, point)
        unknown = [o.expr.tensor.name for o in exposed.opaque if o.kind == "unranged" and isinstance(o.expr, Access)]
        message = f"{describe(witness)}{verb} {shown(touch.access, site.names)}, shape {list(shape)}"
        message += f", and no range is known for {', '.join(dict.fromkeys(unknown))}"
        facts.report("range-missing", message, site.path, touch.scalar, witness=witness)
        return
    witness = point_of(site, exposed, point)
    message = f"{describe(witness)}{verb} {cell}, shape {list(shape)}"
    if exposed.has("not affine"):
        facts.report("undecided", f"a subscript is not quasi-affine: it may be that {message}", site.path, touch.scalar)
    else:
        code = "gather-out-of-range" if exposed.has("ranged") else "out-of-bounds"
        facts.report(code, message, site.path, touch.scalar, witness=witness)


def _outside(exposed: Exposed, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The least point at which the access runs and leaves its tensor."""
    names = [f"i{k}" for k in range(len(exposed.extents))]
    domain, _ = guarded_domain(exposed.extents, exposed.touch.guards)
    outside = []
    for subscript, size in zip(exposed.touch.access.subscripts, shape, strict=True):
        text = affine(subscript, names)
        assert text is not None, "what is not affine has become an axis"
        outside += [f"{text} < 0", f"{text} >= {size}"]
    return sample(domain.intersect(parse_set(f"{{ {tuple_text(names)} : {' or '.join(outside)} }}")))


def point_of(site: Site, exposed: Exposed, point: tuple[int, ...]) -> Witness:
    """A point of an exposed read as a witness: the loops, then the values of opaque integers."""
    loops = at_point(site.names, point)
    first = len(site.loops)
    values = tuple((shown(o.expr, site.names), point[first + k] + o.low) for k, o in enumerate(exposed.opaque))
    return loops + values


# ------------------------------------------------------------------------------------------------------------- index arithmetic


def check_index_arithmetic(facts: Facts) -> None:
    """Report divisions by zero and values beyond i64 in subscripts and in index values."""
    for site in facts.sites:
        equation = site.equation
        parts = [((), None, s) for s in equation.target.subscripts]
        parts += [(guards, path, e) for guards, path, e in _index_parts(equation.value, (), ())]  # type: ignore[misc]
        for guards, path, expr in parts:
            _check_arithmetic(facts, site, guards, path, expr)


def _index_parts(
    expr: Expr, guards: tuple[Guard, ...], path: tuple[int, ...]
) -> Iterator[tuple[tuple[Guard, ...], tuple[int, ...], Expr]]:
    """The maximal subexpressions of index arithmetic, and subscripts, with the guards that select them."""
    if is_index_arithmetic(expr):
        yield guards, path, expr
        return
    for k, part in enumerate(children(expr)):
        taken = guards
        if isinstance(expr, Call) and expr.fn == "if_then_else" and k > 0:
            taken = (*guards, Guard(expr.args[0], k == 1))
        yield from _index_parts(part, taken, (*path, k))


def _check_arithmetic(facts: Facts, site: Site, guards: tuple[Guard, ...], path: tuple[int, ...] | None, whole: Expr) -> None:
    for expr in subexpressions(whole):
        if not isinstance(expr, Binary) or not is_index_arithmetic(expr):
            continue
        if expr.op in ("//", "%"):
            divisor = reach(expr.right, site.extents)
            if divisor is None or not divisor[0] <= 0 <= divisor[1]:
                continue
            _check_divisor(facts, site, guards, path, expr)
            continue
        bounds = reach(expr, site.extents)
        if bounds is not None and (bounds[0] < _LEAST or bounds[1] > _GREATEST):
            far = bounds[1] if bounds[1] > _GREATEST else bounds[0]
            facts.report("index-overflow", f"{print_expr(expr, site.names)} reaches {far}", site.path, path)
            return


def _check_divisor(facts: Facts, site: Site, guards: tuple[Guard, ...], path: tuple[int, ...] | None, expr: Binary) -> None:
    names = [f"i{k}" for k in range(len(site.extents))]
    text = affine(expr.right, names)
    words = f"{print_expr(expr, site.names)} divides by zero"
    if text is None:
        facts.report("undecided", f"it may be that {words}", site.path, path)
        return
    try:
        domain, _ = guarded_domain(site.extents, guards)
        point = within_budget(lambda: sample(domain.intersect(parse_set(f"{{ {tuple_text(names)} : {text} = 0 }}"))))
    except OverBudgetError as problem:
        facts.report("undecided", f"it may be that {words}: {problem}", site.path, path)
        return
    if point is not None:
        witness = at_point(site.names, point)
        facts.no_value.add(site.path)
        facts.report("zero-divisor", f"{describe(witness)}{words}", site.path, path, witness=witness)
