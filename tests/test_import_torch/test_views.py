"""Views are access maps: they agree with PyTorch, compose in least form, and cost no loop."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from leir.import_torch.access_maps import compose
from leir.import_torch.values import Value, expand, permute, reshape, whole
from leir.ir import Access, Binary, Expr, Index, Int, Tensor, Unary, subexpressions
from leir.printer import print_expr
from tests.test_import_torch.oracle import agrees, randn, text

A = Tensor("A", "f32", "g")
LETTERS = "acdfghijk"


def evaluate(expr: Expr, point: tuple[int, ...]) -> int:
    match expr:
        case Int():
            return expr.value
        case Index():
            return point[expr.axis]
        case Unary():
            return -evaluate(expr.operand, point)
        case Binary():
            x, y = evaluate(expr.left, point), evaluate(expr.right, point)
            return {"+": x + y, "-": x - y, "*": x * y, "//": x // y if y else 0, "%": x % y if y else 0}[expr.op]
    raise AssertionError(expr)


def read(value: Value) -> np.ndarray:
    """The flat positions in A that the value reads, A being row-major of any shape that fits."""
    assert isinstance(value.element, Access)
    result = np.empty(value.shape, dtype=object)
    for point in np.ndindex(*value.shape):
        result[point] = tuple(evaluate(s, point) for s in value.element.subscripts)
    return result


@st.composite
def factorisations(draw: st.DrawFn, total: int) -> tuple[int, ...]:
    """A shape of ``total`` elements, with dimensions of extent 1 here and there."""
    shape: list[int] = []
    while total > 1:
        factor = draw(st.sampled_from([d for d in range(2, total + 1) if total % d == 0]))
        shape.append(factor)
        total //= factor
    for _ in range(draw(st.integers(0, 2))):
        shape.insert(draw(st.integers(0, len(shape))), 1)
    return tuple(draw(st.permutations(shape)))


@given(st.data())
def test_any_chain_of_views_reads_what_numpy_reads(data: st.DataObject) -> None:
    total = data.draw(st.sampled_from([1, 6, 12, 24, 36]))
    shape = data.draw(factorisations(total))
    value = whole(A, shape)
    reference = read(value)
    for _ in range(data.draw(st.integers(1, 4))):
        if data.draw(st.booleans()):
            order = data.draw(st.permutations(range(value.rank)))
            value, reference = permute(value, order), reference.transpose(order)
        else:
            new = data.draw(factorisations(total))
            value, reference = reshape(value, new), reference.reshape(new)
    wider = (2, *value.shape)
    value, reference = expand(value, wider), np.broadcast_to(reference, wider)
    assert value.shape == reference.shape
    assert (read(value) == reference).all()


index_expressions = st.recursive(
    st.one_of(st.integers(0, 7).map(Int), st.integers(0, 2).map(Index)),
    lambda inner: st.one_of(
        st.builds(Binary, st.sampled_from(["+", "-"]), inner, inner),
        st.builds(lambda e, n: Binary("*", e, Int(n)), inner, st.integers(0, 6)),
        st.builds(lambda op, e, n: Binary(op, e, Int(n)), st.sampled_from(["//", "%"]), inner, st.integers(1, 6)),
        st.builds(lambda e: Unary("-", e), inner),
    ),
    max_leaves=8,
)


@given(index_expressions, st.tuples(*[st.integers(1, 6)] * 3))
def test_simplification_keeps_every_value(expr: Expr, extents: tuple[int, int, int]) -> None:
    simple = compose(expr, [Index(k) for k in range(3)], extents)
    assert all(evaluate(simple, point) == evaluate(expr, point) for point in np.ndindex(*extents))
    assert all(e.value >= 0 for e in subexpressions(simple) if isinstance(e, Int))


def test_a_view_and_back_is_the_tensor_itself() -> None:
    value = whole(A, (4, 6, 5))
    for shape in ((24, 5), (4, 30), (2, 2, 6, 5), (4, 2, 3, 5), (120,), (4, 1, 6, 5), (2, 12, 5), (8, 3, 5)):
        assert reshape(reshape(value, shape), value.shape).element is value.element, shape


def test_the_least_form_of_common_views() -> None:
    def subscripts(value: Value) -> str:
        assert isinstance(value.element, Access)
        return ",".join(print_expr(s, LETTERS) for s in value.element.subscripts)

    assert subscripts(reshape(whole(A, (4, 6)), (24,))) == "a//6,a%6"
    assert subscripts(reshape(whole(A, (24,)), (4, 6))) == "a*6+c"
    assert subscripts(reshape(whole(A, (2, 12)), (4, 6))) == "a//2,a%2*6+c"
    assert subscripts(reshape(whole(A, (2, 3, 4)), (24,))) == "a//12,a//4%3,a%4"
    assert subscripts(permute(reshape(whole(A, (4, 6)), (4, 2, 3)), (1, 0, 2))) == "c,a*3+d"
    assert subscripts(reshape(permute(reshape(whole(A, (4, 6)), (4, 2, 3)), (1, 0, 2)), (8, 3))) == "a%4,a//4*3+c"
    assert subscripts(expand(whole(A, (4, 1)), (2, 4, 5))) == "c,0"


def test_view_operators_agree_as_outputs() -> None:
    def views(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            x.permute(2, 0, 1),
            x.permute(-1, 0, -2),
            x.transpose(0, -1),
            x[..., None].squeeze(-1).mT,
            x.reshape(6, 20).t(),
            x.reshape(-1),
            x.view(2, 3, 2, 2, 5).transpose(1, 2).flatten(2),
            x.unflatten(1, (2, 6)),
            x.unsqueeze(1),
            x.unsqueeze(-1).expand(-1, -1, -1, 3),
            x.sum(1, keepdim=True).expand_as(x),
            x.sum(1, keepdim=True).squeeze(1),
            x.sum((0, 2), keepdim=True).squeeze((0, 2)),
            x.sum((0, 1), keepdim=True).squeeze(),
            x.contiguous().clone().detach(),
        )

    agrees(views, randn(2, 12, 5))


def test_attention_heads_cost_no_copies() -> None:
    def heads(x: torch.Tensor) -> torch.Tensor:
        q = x.view(3, 4, 2, 5).transpose(1, 2)
        return (q @ q.transpose(-2, -1) @ q).transpose(1, 2).reshape(3, 4, 10) * 2

    imported = agrees(heads, randn(3, 4, 10), scale=16)
    assert len(imported.program.nests) == 3  # two products and the scaling
    assert text(heads, randn(3, 4, 10)).endswith("[E^{f32,g}_{a,c,d}=D^{f32,g}_{a,d//5,c,d%5}*2;];")


def test_dimensions_of_extent_one_have_no_loop() -> None:
    assert text(lambda x: x.sum(1, keepdim=True) * 2, randn(3, 4)) == (
        "L^{3}_{a=0}L^{4}_{c=0}[C^{f32,g}_{a}=C^{f32,g}_{a}+A^{f32,g}_{a,c};];L^{3}_{a=0}[D^{f32,g}_{a,0}=C^{f32,g}_{a}*2;];"
    )
