"""Nodes: hash-consing, pickling, and when an equation accumulates (leir.md, sections 3 and 4)."""

from __future__ import annotations

import copy
import gc
import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import FrozenInstanceError
from multiprocessing import get_context

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leir.ir import (
    Access,
    Binary,
    Call,
    Compare,
    Digit,
    Equation,
    Expr,
    Index,
    Int,
    Loop,
    Nest,
    Real,
    Tensor,
    Unary,
    accesses,
    accumulation,
    children,
    equations,
    is_index_arithmetic,
    subexpressions,
    with_children,
)
from leir.parser import parse_nests

leaves: st.SearchStrategy[Expr] = st.one_of(
    st.builds(Int, st.integers(0, 9)),
    st.builds(Real, st.floats(min_value=0, allow_nan=False)),
    st.builds(Index, st.integers(0, 3)),
)


def _combined(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    tensors = st.builds(Tensor, st.sampled_from("ACD"), st.sampled_from(("f32", "i64")), st.sampled_from("gsl"))
    pairs = st.tuples(inner, inner)
    return st.one_of(
        st.builds(Access, tensors, st.lists(inner, max_size=2).map(tuple)),
        st.builds(Unary, st.sampled_from("-!"), inner),
        st.builds(Binary, st.sampled_from(("+", "-", "*", "/", "//", "%", "**", "&", "|")), inner, inner),
        st.builds(lambda operands, op: Compare(operands, (op,)), pairs, st.sampled_from(("<", "=="))),
        st.builds(Call, st.just("max"), pairs),
    )


exprs = st.recursive(leaves, _combined, max_leaves=12)


def equation(text: str) -> Equation:
    """The equation ``text`` under loops a, c, d; capital letters are f32 tensors."""
    flat = "".join(f"{c}^{{f32,g}}" if c.isupper() else c for c in text)
    (nest,) = parse_nests(f"L^{{4}}_{{a=0}}L^{{4}}_{{c=0}}L^{{4}}_{{d=0}}[{flat};];").nests
    item = nest.body[0]
    assert isinstance(item, Equation)
    return item


def rebuilt(expr: Expr) -> Expr:
    """The same expression, every node constructed once more."""
    return with_children(type(expr)(*(getattr(expr, f) for f in expr.__dataclass_fields__)), tuple(map(rebuilt, children(expr))))


# --------------------------------------------------------------------------------------------------------------- hash-consing


@given(exprs)
def test_equal_nodes_are_one_node(expr: Expr) -> None:
    assert rebuilt(expr) is expr


@given(exprs, exprs)
def test_equal_means_identical(left: Expr, right: Expr) -> None:
    assert (left == right) == (left is right)
    assert (repr(left) == repr(right)) == (left is right)


def test_keywords_and_defaults_name_the_same_node() -> None:
    target = Access(Tensor("A", "f32", "g"), ())
    assert Equation(target, Int(1)) is Equation(target=target, value=Int(1), init=None)
    assert Binary("+", Int(1), right=Int(2)) is Binary("+", Int(1), Int(2))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Int(1), Real(1.0)),
        (Int(0), Real(0.0)),
        (Index(1), Int(1)),
        (Binary("+", Int(1), Int(2)), Binary("+", Real(1.0), Int(2))),
        (Tensor("A", "f32", "g"), Tensor("A", "f32", "s")),
        (Call("max", (Int(1), Int(2))), Call("max", (Int(2), Int(1)))),
        (Unary("-", Int(0)), Int(0)),
    ],
)
def test_what_prints_differently_is_different(one: object, other: object) -> None:
    assert one is not other
    assert one != other


def test_a_literal_keeps_its_type() -> None:
    """1 and 1.0 compare equal in Python; the two classes do not share their nodes."""
    assert Int(1) is not Real(1.0)
    assert type(Int(1).value) is int
    assert type(Real(1.0).value) is float


def test_infinity_is_one_node() -> None:
    assert Real(math.inf) is Real(float("inf"))


def test_nodes_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Int(1).value = 2  # type: ignore[misc]


def test_nodes_nobody_holds_are_freed() -> None:
    live = Int._live  # type: ignore[attr-defined]
    held = Int(123_456_789)
    assert (123_456_789,) in live
    del held
    gc.collect()
    assert (123_456_789,) not in live


# ------------------------------------------------------------------------------------------------------------------- pickling


@given(exprs)
def test_a_copy_by_fields_is_the_node(expr: Expr) -> None:
    """`copy` takes the way of pickle: class and fields, then the constructor."""
    assert copy.copy(expr) is expr
    assert copy.deepcopy(expr) is expr


def test_nests_copy_to_themselves() -> None:
    (nest,) = parse_nests("L^{4}_{a=0}[A^{f32,g}_{a}=1;L^{2}_{c=0}[D^{f32,g}_{a}=D^{f32,g}_{a}+c;];];").nests
    assert copy.deepcopy(nest) is nest


def test_there_and_back_through_another_process() -> None:
    """Pickled twice and interned twice: what comes back is the node that went."""
    expr = Binary("+", Access(Tensor("A", "f32", "g"), (Index(0),)), Real(1e-05))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(with_children, expr, children(expr)).result() is expr


# ---------------------------------------------------------------------------------------------------------------- expressions


@given(exprs)
def test_with_children_undoes_children(expr: Expr) -> None:
    assert with_children(expr, children(expr)) is expr


@given(exprs)
def test_subexpressions_are_preorder_and_subscripts_count(expr: Expr) -> None:
    below = [e for child in children(expr) for e in subexpressions(child)]
    assert list(subexpressions(expr)) == [expr, *below]
    assert list(accesses(expr)) == [e for e in subexpressions(expr) if isinstance(e, Access)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=a+c*2", True),
        ("A=a//2%3-1", True),
        ("A=-a", True),
        ("A=7", True),
        ("A=1.0", False),
        ("A=a/2", False),
        ("A=a**2", False),
        ("A=a+1.0", False),
        ("A=max(a,1)", False),
        ("A=C", False),
        ("A=a+C", False),
        ("A=!a", False),
    ],
)
def test_index_arithmetic(text: str, expected: bool) -> None:
    assert is_index_arithmetic(equation(text).value) is expected


def test_equations_in_program_order() -> None:
    (nest,) = parse_nests("L^{4}_{a=0}[A^{f32,g}_{a}=1;L^{2}_{c=0}[C^{f32,g}_{a,c}=2;];D^{f32,g}_{a}=3;];").nests
    assert [e.target.tensor.name for e in equations(nest)] == ["A", "C", "D"]


def test_the_extent_and_gpu_axis_of_a_loop() -> None:
    assert Loop("L", "a", (Digit(0, 4, 1), Digit(1, 3, 1))).extent == 12
    assert Loop("B", "txf", (Digit(0, 4, 1),)).gpu_axis == "tx"
    assert Loop("L", "a", (Digit(0, 4, 1),)).gpu_axis is None
    assert Nest((), (), ()).axes == ()


# --------------------------------------------------------------------------------------------------------------- accumulation


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("X_{a}=X_{a}+A_{a,c}", ("+", (0,))),
        ("X_{a}=X_{a}-A_{a,c}", ("+", (0,))),
        ("X_{a}=X_{a}+A_{a,c}+C_{a,c}", ("+", (0, 0))),
        ("X_{a}=X_{a}-A_{a,c}+C_{a,c}", ("+", (0, 0))),
        ("X_{a}=X_{a}*A_{a,c}", ("*", (0,))),
        ("X_{a}=X_{a}*A_{a,c}*C_{a,c}", ("*", (0, 0))),
        ("X_{a}=max(X_{a},A_{a,c})", ("max", (0,))),
        ("X_{a}=max(A_{a,c},X_{a})", ("max", (1,))),
        ("X_{a}=min(X_{a},A_{a,c})", ("min", (0,))),
        ("X_{a}=min(A_{a,c},X_{a})", ("min", (1,))),
        ("X_{}=X_{}+A_{a}".replace("_{}", ""), ("+", (0,))),
        ("X_{a}=X_{a}+(A_{a,c}-C_{a})*2", ("+", (0,))),
        ("X_{a}=X_{a}+max(A_{a,c},0)", ("+", (0,))),
    ],
)
def test_equations_that_accumulate(text: str, expected: tuple[str, tuple[int, ...]]) -> None:
    found = equation(text)
    assert accumulation(found) == expected
    assert found.accumulates == expected[0]
    node: Expr = found.value
    for step in expected[1]:
        node = children(node)[step]
    assert node is found.target


@pytest.mark.parametrize(
    "text",
    [
        "X_{a}=A_{a,c}",
        "X_{a}=X_{a}",
        "X_{a}=A_{a,c}+X_{a}",
        "X_{a}=A_{a,c}-X_{a}",
        "X_{a}=A_{a,c}*X_{a}",
        "X_{a}=-X_{a}+A_{a,c}",
        "X_{a}=X_{a}/A_{a,c}",
        "X_{a}=X_{a}*A_{a,c}/2",
        "X_{a}=X_{a}*A_{a,c}+C_{a}",
        "X_{a}=(X_{a}+A_{a,c})*C_{a}",
        "X_{a}=X_{a}+(A_{a,c}+X_{a})",
        "X_{a}=X_{a}+X_{a}",
        "X_{a}=max(X_{a},X_{a})",
        "X_{a}=X_{a-1}+A_{a,c}",
        "X_{a,c}=X_{c,a}+A_{a,c}",
        "X_{a}=X_{a}+X_{a-1}",
        "X_{a}=max(X_{a-1},A_{a,c})",
        "X_{a}=max(X_{a}+1,A_{a,c})",
        "X_{a}=X_{a}**2",
        "X_{a}=exp(X_{a})",
        "X_{a}=if_then_else(A_{a,c}<0,X_{a},C_{a})",
    ],
)
def test_equations_that_do_not(text: str) -> None:
    assert accumulation(equation(text)) is None
    assert equation(text).accumulates is None


def test_a_second_occurrence_counts_inside_subscripts_too() -> None:
    (nest,) = parse_nests("L^{4}_{a=0}[X^{i64,g}_{a}=X^{i64,g}_{a}+A^{i64,g}_{X^{i64,g}_{0}};];").nests
    item = nest.body[0]
    assert isinstance(item, Equation)
    assert item.accumulates is None


def test_there_is_no_accumulation_into_bool() -> None:
    (nest,) = parse_nests("L^{4}_{a=0}[X^{bool,g}=max(X^{bool,g},A^{bool,g}_{a});];").nests
    item = nest.body[0]
    assert isinstance(item, Equation)
    assert item.accumulates is None
