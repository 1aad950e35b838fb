"""Graph level: a producer is computed again where its value is read (strategies.md).

What must hold of the program is in `rules.legality.flow`; which instance of the producer a read means is in
`rules.legality.inversion`. Here the producer's right-hand side takes the place of the reads, with the same dtypes in every
operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from leir.elaborate import Apply, Const, IndexValue, Load, Typed, TypingError, elaborate
from leir.ir import Access, Call, Equation, Expr, Int, Item, Nest, accesses, accumulation, children, equations, with_children
from leir.lift import flatten, lift, substitute
from leir.polyhedral import Statement, statements
from leir.printer import print_tensor
from rules.legality.decide import same_order
from rules.legality.dependence import Clash, Undecided
from rules.legality.flow import Broken, Changed, Foreign, broken_flow
from rules.legality.inversion import instance, inverse
from rules.legality.witness import loop_values, sentence, witness_of
from rules.strategy import Arguments, Instance, ProgramUnit, Proof, Proposal, Refusal, Witness

Path = tuple[int, ...]


def consumers(unit: ProgramUnit) -> Iterator[Arguments]:
    """Every other equation, in the producer's expression or a later one, that reads what the producer writes, in program order."""
    producer = _item(unit.expressions, unit.path)
    assert isinstance(producer, Equation)
    if accumulation(producer) is not None:
        return
    for path, equation in _equations(unit.expressions):
        ranks = {len(read.subscripts) for read in _reads(equation, producer.target.tensor.name)}
        if path[0] >= unit.path[0] and path != unit.path and ranks == {len(producer.target.subscripts)}:
            yield (("consumer", path),)


def compute_inline(unit: ProgramUnit, arguments: Arguments) -> Proposal | Refusal:
    """The right-hand side of the equation at the site takes the place of every read of its target in the equation `consumer`.

    before::

        # A f32[8,16] input
        # C f32[8] input
        # E f32[16,8] output
        L^{8}_{a=0}L^{16}_{c=0}[D^{f32,g}_{a,c}=exp(A^{f32,g}_{a,c}-C^{f32,g}_{a});];
        L^{16}_{a=0}L^{8}_{c=0}[E^{f32,g}_{a,c}=D^{f32,g}_{c,a}*2.0;];

    step::

        compute_inline 0.0 consumer=1,0

    after::

        # A f32[8,16] input
        # C f32[8] input
        # E f32[16,8] output
        L^{16}_{a=0}L^{8}_{c=0}[E^{f32,g}_{a,c}=exp(A^{f32,g}_{c,a}-C^{f32,g}_{c})*2.0;];

    The producer goes when its target is no output and nothing reads that any more, accumulations included. It does not accumulate
    itself. Legal when its write map is invertible, every one of the reads gets the producer's value, and nothing that the producer
    reads is written in between. A value that is index arithmetic or a constant is cast, so that it is rounded where it was.

    From Table 7 of the paper.
    """
    ((_, consumer),) = arguments
    assert isinstance(consumer, tuple)
    reader = tuple(map(int, consumer))
    p, c = _statement(unit.expressions, unit.path), _statement(unit.expressions, reader)
    name = p.equation.target.tensor.name
    if inverse(p.equation.target, p.extents) is None:
        message = f"the subscripts of {print_tensor(p.equation.target.tensor)} do not tell which iteration of the producer wrote"
        return Refusal("write-map", f"{message}, for all that is decided here")
    if _subscripted(c.equation.value, name):
        return Refusal("read-in-subscript", f"the consumer reads {name} in a subscript, where only integers and indices may stand")
    numbers, window = _window(unit.expressions, p, c)
    broken = broken_flow(window, (numbers.index(p.path[0]), *p.path[1:]), (len(numbers) - 1, *c.path[1:]))
    if broken is not None:
        return _refused(unit.expressions, numbers, broken)
    changed = _substituted(p, c)
    if isinstance(changed, Refusal):
        return changed
    result = _result(unit, reader, changed)
    touched = [nest for nest in result if nest not in unit.expressions]
    kernels: list[Proof] = []
    for nest in touched:
        verdict = same_order(nest, nest)
        if isinstance(verdict, Refusal):
            return verdict
        kernels += [proof for proof in verdict.proofs if proof.condition != "order" and proof not in kernels]
    return Proposal(result, "bitwise", (*_proofs(p, name), *kernels))


def _proofs(p: Statement, name: str) -> tuple[Proof, ...]:
    operands = ", ".join(dict.fromkeys(access.tensor.name for access in accesses(p.equation.value)))
    between = f"nothing writes {operands} between the two" if operands else "the producer reads nothing"
    return (
        Proof("write map", "construction", f"an element of {name} tells the iteration that wrote it"),
        Proof("value flow", "isl", f"every read of {name} in the consumer gets the value of the producer"),
        Proof("operands", "isl" if operands else "construction", between),
        Proof("rounding", "construction", "every operation keeps its operands and its dtype"),
    )


# ---------------------------------------------------------------------------------------------------------------- the program


def _equations(nests: Sequence[Item], path: Path = ()) -> Iterator[tuple[Path, Equation]]:
    for number, item in enumerate(nests):
        if isinstance(item, Equation):
            yield (*path, number), item
        else:
            yield from _equations(item.body, (*path, number))


def _item(nests: Sequence[Item], path: Path) -> Item:
    item = nests[path[0]]
    for number in path[1:]:
        assert isinstance(item, Nest)
        item = item.body[number]
    return item


def _statement(nests: Sequence[Nest], path: Path) -> Statement:
    return next(s for s in statements((nests[path[0]],), first=path[0]) if s.path == path)


def _reads(equation: Equation, name: str) -> list[Access]:
    """Every access to a tensor on the right-hand side, an accumulator included."""
    return [access for access in accesses(equation.value) if access.tensor.name == name]


def _subscripted(expr: Expr, name: str) -> bool:
    """Whether a tensor is read in the subscript of an access."""
    return any(inner.tensor.name == name for access in accesses(expr) for sub in access.subscripts for inner in accesses(sub))


def _window(nests: Sequence[Nest], p: Statement, c: Statement) -> tuple[list[int], tuple[Nest, ...]]:
    """The expressions that decide the flow, and their numbers: the producer's, the consumer's, those that write the producer's
    tensor up to there, and those between that write its operands."""
    own = p.equation.target.tensor.name
    operands = {access.tensor.name for access in accesses(p.equation.value)}
    first, last = p.path[0], c.path[0]
    numbers = []
    for number, nest in enumerate(nests[: last + 1]):
        written = {equation.target.tensor.name for equation in equations(nest)}
        if number in (first, last) or own in written or (number > first and written & operands):
            numbers.append(number)
    return numbers, tuple(nests[number] for number in numbers)


def _result(unit: ProgramUnit, consumer: Path, changed: Equation) -> tuple[Nest, ...]:
    """The program with the consumer changed, and without the producer if nothing else reads what it writes."""
    nests: tuple[Item, ...] = _with_item(unit.expressions, consumer, changed)
    producer = _item(unit.expressions, unit.path)
    assert isinstance(producer, Equation)
    name = producer.target.tensor.name
    known = unit.signature.find(name)
    if known is None and not any(_reads(equation, name) for _, equation in _equations(nests)):
        nests = _with_item(nests, unit.path, None)
    made = []
    for nest in nests:
        assert isinstance(nest, Nest)
        made.append(nest if nest in unit.expressions else lift(flatten(nest)))
    return tuple(made)


def _with_item(items: Sequence[Item], path: Path, new: Item | None) -> tuple[Item, ...]:
    """The items with the one at ``path`` replaced, or taken away, and with it every bracket that it leaves empty."""
    old = items[path[0]]
    if len(path) > 1:
        assert isinstance(old, Nest)
        body = _with_item(old.body, path[1:], new)
        new = Nest(old.axes, old.schedule, body) if body else None
    return (*items[: path[0]], *(() if new is None else (new,)), *items[path[0] + 1 :])


# --------------------------------------------------------------------------------------------------------------- substitution


def _substituted(p: Statement, c: Statement) -> Equation | Refusal:
    """The consumer with the producer's value in place of its reads, plain if every operation keeps its dtype, else cast."""
    name, dtype = p.equation.target.tensor.name, p.equation.target.tensor.dtype
    axes = {read: _instance(p, read, c) for read in _reads(c.equation, name)}
    for cast in (False, True):

        def value(read: Access, cast: bool = cast) -> Expr:
            moved = substitute(p.equation.value, axes[read])
            return Call(f"cast_{dtype}", (moved,)) if cast else moved

        def meaning(read: Access, cast: bool = cast) -> Typed:
            moved = _moved(elaborate(p.equation), axes[read])
            return Apply("cast", (moved,), dtype) if cast else moved

        made = Equation(c.equation.target, _replaced(c.equation.value, name, value), c.equation.init)
        if made.init is not None and accumulation(made) is None:
            return Refusal("init-changes", f"the consumer would no longer accumulate into {made.target.tensor.name}, and starts it")
        try:
            if elaborate(made) == _expected(elaborate(c.equation), name, meaning):
                return made
        except TypingError:
            continue
    return Refusal(
        "typing-changes", f"the value of {name} would be computed in another dtype, or rounded elsewhere, in the consumer"
    )


def _instance(p: Statement, read: Access, c: Statement) -> tuple[Expr, ...]:
    found = instance(p.equation.target, p.extents, read, c.extents)
    assert found is not None, "the write map is solved"
    return found


def _replaced(expr: Expr, name: str, value: Callable[[Access], Expr]) -> Expr:
    if isinstance(expr, Access) and expr.tensor.name == name:
        return value(expr)
    parts = children(expr)
    return with_children(expr, tuple(_replaced(part, name, value) for part in parts)) if parts else expr


def _expected(typed: Typed, name: str, meaning: Callable[[Access], Typed]) -> Typed:
    """A typed expression with every load of a tensor replaced."""
    match typed:
        case Load(access=access) if access.tensor.name == name:
            return meaning(access)
        case Apply():
            return Apply(typed.op, tuple(_expected(arg, name, meaning) for arg in typed.args), typed.dtype)
        case _:
            return typed


def _moved(typed: Typed, axes: Sequence[Expr]) -> Typed:
    """A typed expression with its axes replaced: the same operations in the same dtypes."""
    match typed:
        case IndexValue():
            moved = substitute(typed.expr, axes)
            return Const(moved.value, typed.dtype) if isinstance(moved, Int) else IndexValue(moved, typed.dtype)
        case Load():
            access = substitute(typed.access, axes)
            assert isinstance(access, Access)
            return Load(access, typed.dtype)
        case Apply():
            return Apply(typed.op, tuple(_moved(arg, axes) for arg in typed.args), typed.dtype)
        case _:
            return typed


# ------------------------------------------------------------------------------------------------------------------- refusals


def _refused(nests: Sequence[Nest], numbers: Sequence[int], broken: Broken) -> Refusal:
    match broken:
        case Undecided(tensor=tensor):
            return Refusal(
                "over-budget", f"isl ran over its budget on the accesses to {tensor}; nothing was proved, so the step is refused"
            )
        case Foreign(tensor=tensor, clash=None):
            code = "other-source" if broken.exact else "dependence-inexact"
            return Refusal(code, f"the consumer reads elements of {tensor} that the producer has not written before")
        case Foreign(clash=clash) | Changed(clash=clash):
            assert clash is not None
            found = _witness(nests, numbers, clash)
            if isinstance(broken, Foreign):
                code, consequence = "other-source", "that value is not the producer's"
            else:
                code, consequence = "operand-changes", "the producer read it before that"
            return Refusal(code if broken.exact else "dependence-inexact", f"{sentence(found, broken.exact)}; {consequence}", found)
    raise AssertionError(broken)


def _witness(nests: Sequence[Nest], numbers: Sequence[int], clash: Clash) -> Witness:
    """A write that runs before the consumer; paths begin with the number of the expression in the program."""

    def place(statement: Statement, point: tuple[int, ...]) -> Instance:
        number = numbers[statement.path[0]]
        return Instance((number, *statement.path[1:]), loop_values(nests[number], statement.path[1:], point))

    first, second = place(clash.s, clash.x), place(clash.t, clash.y)
    return witness_of(clash, first, second)
