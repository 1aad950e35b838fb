"""Any expression tree prints to text that parses to the same node."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from leir.ir import (
    CALL_ARITY,
    COMPARISONS,
    DTYPES,
    SCOPES,
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
)
from leir.names import RESERVED_TENSORS
from leir.parser import MAX_INT, LeirSyntaxError, parse_nests
from leir.printer import print_nests

NAMES = ("a", "c", "txd", "fg")
KINDS = ("L", "P", "B", "U")

integers = st.builds(Int, st.one_of(st.integers(0, 20), st.integers(0, MAX_INT)))
indices = st.builds(Index, st.integers(0, len(NAMES) - 1))
numbers = st.builds(Real, st.floats(min_value=0, allow_nan=False).map(abs))
tensors = st.builds(
    Tensor,
    st.from_regex(r"[A-Z][a-z]{0,3}", fullmatch=True).filter(lambda name: name not in RESERVED_TENSORS),
    st.sampled_from(DTYPES),
    st.sampled_from(SCOPES),
)


def subscripts_over(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.builds(Binary, st.sampled_from(["+", "-", "*", "//", "%"]), inner, inner),
        st.builds(Unary, st.just("-"), inner),
        st.builds(Access, tensors, st.lists(inner, max_size=2).map(tuple)),
    )


subscripts: st.SearchStrategy[Expr] = st.recursive(st.one_of(indices, integers), subscripts_over, max_leaves=6)
accesses = st.builds(Access, tensors, st.lists(subscripts, max_size=3).map(tuple))


def values_over(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    operators = st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "&", "|"])
    return st.one_of(
        st.builds(Binary, operators, inner, inner),
        st.builds(Unary, st.sampled_from(["-", "!"]), inner),
        st.lists(inner, min_size=2, max_size=4).flatmap(
            lambda operands: st.builds(
                Compare,
                st.just(tuple(operands)),
                st.lists(st.sampled_from(COMPARISONS), min_size=len(operands) - 1, max_size=len(operands) - 1).map(tuple),
            )
        ),
        st.sampled_from(sorted(CALL_ARITY.items())).flatmap(
            lambda call: st.builds(Call, st.just(call[0]), st.tuples(*[inner] * call[1]))
        ),
    )


values: st.SearchStrategy[Expr] = st.recursive(st.one_of(indices, integers, numbers, accesses), values_over, max_leaves=14)


@settings(max_examples=1500)
@given(target=accesses, value=values)
def test_a_printed_equation_parses_to_the_same_node(target: Access, value: Expr) -> None:
    loops = tuple(Loop(kind, name, (Digit(k, 9, 1),)) for k, (kind, name) in enumerate(zip(KINDS, NAMES, strict=True)))  # type: ignore[arg-type]
    nest = Nest((9,) * len(NAMES), loops, (Equation(target, value),))
    text = print_nests([nest])
    assert " " not in text
    (read,) = parse_nests(text).nests
    assert read is nest


TOKENS = (
    *("L^{4}_{a=0}", "B^{2}_{tx=0}", "[", "]", ";", "=", "D^{f32,g}", "A^{i32,g}", "_{", "}", "^{", ",", "a", "tx", "0", "1.5"),
    *("inf", "+", "-", "*", "**", "//", "/", "%", "<", "<=", "==", "!=", "!", "&", "|", "(", ")", "max(", "exp(", "cast_f32("),
    *("é", "\0", "#"),
)


@settings(max_examples=1500)
@given(st.lists(st.sampled_from(TOKENS), max_size=25))
def test_soup_is_read_or_refused_with_a_place(tokens: list[str]) -> None:
    text = "".join(tokens)
    try:
        parsed = parse_nests(text)
    except LeirSyntaxError as error:
        assert error.line == 1
        assert 1 <= error.column <= len(text) + 1
        assert str(error).startswith("<text>:1:")
    else:
        assert parse_nests(print_nests(parsed.nests)).nests == parsed.nests
