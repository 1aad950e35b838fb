"""Reading LEIR text: every construct, precedence, scopes, and the same text back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
)
from leir.parser import parse_nests
from leir.printer import print_nests

DATA = Path(__file__).parents[1] / "data"
A, D = Tensor("A", "f32", "g"), Tensor("D", "f32", "g")


def value(text: str) -> Expr:
    """The right-hand side ``text``, under loops a, c, d."""
    (nest,) = parse_nests(f"L^{{9}}_{{a=0}}L^{{8}}_{{c=0}}L^{{7}}_{{d=0}}[D^{{f32,g}}={text};];").nests
    (equation,) = nest.body
    assert isinstance(equation, Equation)
    return equation.value


a, c, d = Index(0), Index(1), Index(2)


def test_a_nest_is_flat_and_numbers_its_axes_in_loop_order() -> None:
    (nest,) = parse_nests("B^{96}_{tx=0}L^{40}_{a=0}[D^{f32,g}_{tx,a}=max(D^{f32,g}_{tx,a},0);];").nests
    access = Access(D, (Index(0), Index(1)))
    assert nest is Nest(
        (96, 40),
        (Loop("B", "tx", (Digit(0, 96, 1),)), Loop("L", "a", (Digit(1, 40, 1),))),
        (Equation(access, Call("max", (access, Int(0)))),),
    )


def test_axes_of_a_nested_expression_count_on_from_those_around_it() -> None:
    text = (
        "L^{4}_{a=0}[L^{3}_{c=0}[D^{f32,g}_{a,c}=1;];L^{2}_{d=0}P^{5}_{c=0}[D^{f32,g}_{d,c}=a;];];L^{6}_{a=0}[D^{f32,g}_{a,0}=2;];"
    )
    first, second = parse_nests(text).nests
    inner, other = first.body
    assert isinstance(inner, Nest) and isinstance(other, Nest)
    assert inner.schedule[0].digits == (Digit(1, 3, 1),)
    assert [loop.digits for loop in other.schedule] == [(Digit(1, 2, 1),), (Digit(2, 5, 1),)]
    assert other.body == (Equation(Access(D, (Index(1), Index(2))), Index(0)),)
    assert second.schedule[0].digits == (Digit(0, 6, 1),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", Int(7)),
        ("1.0", Real(1.0)),
        ("1e-05", Real(1e-05)),
        ("2E3", Real(2000.0)),
        (".5", Real(0.5)),
        ("3.", Real(3.0)),
        ("inf", Real(float("inf"))),
        ("-inf", Unary("-", Real(float("inf")))),
        ("-1", Unary("-", Int(1))),
        ("c", c),
        ("A^{f32,g}", Access(A, ())),
        ("A^{bf16,s}_{a,c*2+d}", Access(Tensor("A", "bf16", "s"), (a, Binary("+", Binary("*", c, Int(2)), d)))),
        ("a-c-d", Binary("-", Binary("-", a, c), d)),
        ("a-(c-d)", Binary("-", a, Binary("-", c, d))),
        ("a/c*d", Binary("*", Binary("/", a, c), d)),
        ("a+c*d", Binary("+", a, Binary("*", c, d))),
        ("a//c%d", Binary("%", Binary("//", a, c), d)),
        ("a**c**d", Binary("**", a, Binary("**", c, d))),
        ("(a**c)**d", Binary("**", Binary("**", a, c), d)),
        ("-a**2", Unary("-", Binary("**", a, Int(2)))),
        ("(-a)**2", Binary("**", Unary("-", a), Int(2))),
        ("a**-1", Binary("**", a, Unary("-", Int(1)))),
        ("a**-c**d", Binary("**", a, Unary("-", Binary("**", c, d)))),
        ("--a", Unary("-", Unary("-", a))),
        ("-a*c", Binary("*", Unary("-", a), c)),
        ("a*-c", Binary("*", a, Unary("-", c))),
        ("a--c", Binary("-", a, Unary("-", c))),
        ("1<=c<9", Compare((Int(1), c, Int(9)), ("<=", "<"))),
        ("(1<=c)<9", Compare((Compare((Int(1), c), ("<=",)), Int(9)), ("<",))),
        ("a==c!=d>1>=0", Compare((a, c, d, Int(1), Int(0)), ("==", "!=", ">", ">="))),
        (
            "a<1&c<2|d<3",
            Binary("|", Binary("&", Compare((a, Int(1)), ("<",)), Compare((c, Int(2)), ("<",))), Compare((d, Int(3)), ("<",))),
        ),
        ("!(a<c)&d<1", Binary("&", Unary("!", Compare((a, c), ("<",))), Compare((d, Int(1)), ("<",)))),
        ("max(a,min(c,d))", Call("max", (a, Call("min", (c, d))))),
        (
            "if_then_else(a<1,exp(c),-inf)",
            Call("if_then_else", (Compare((a, Int(1)), ("<",)), Call("exp", (c,)), Unary("-", Real(float("inf"))))),
        ),
        ("cast_bf16(a)", Call("cast_bf16", (a,))),
    ],
)
def test_expressions(text: str, expected: Expr) -> None:
    assert value(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[];",
        "[D^{f32,g}=1;];",
        "L^{1}_{a=0}P^{2}_{c=0}V^{4}_{d=0}U^{3}_{f=0}B^{5}_{tyac=0}B^{6}_{bz=0}[Cem^{i64,l}_{a,c,d,f,tyac}=bz;];",
        "L^{4}_{a=0}[X^{i32,g}_{a}=1;L^{4}_{c=0}[Ac^{bool,s}_{c}=X^{i32,g}_{a}<c;];X^{i32,g}_{a}=2;];",
        "L^{4}_{a=0}[I^{f64,g}_{a}=-H^{i64,g}_{C^{i64,g}_{a}}*E^{f64,g}_{a,C^{i64,g}_{a}+1};];",
        "L^{4}_{a=0}[A^{f16,g}_{a//2,(a+1)%2,(a-1)*3,-a}=1.0*(1/2);];",
    ],
)
def test_text_comes_back_to_the_letter(text: str) -> None:
    assert print_nests(parse_nests(text).nests) == text


def test_blanks_and_line_breaks_may_stand_between_any_two_tokens() -> None:
    text = "B^{9}_{tx=0}[D^{f32,g}_{tx}=max(A^{f32,g}_{tx},-1.5e-3)**2//1>=0;];"
    spaced = (
        " B ^ {\n9 } _ { tx = 0 }\t[ D ^ { f32 , g } _ { tx } = max ( A^ {f32,g} _{ tx } , - 1.5e-3 ) ** 2 // 1 >= 0 ; \r\n] ;\n"
    )
    assert parse_nests(spaced).nests == parse_nests(text).nests


def test_redundant_parentheses_go() -> None:
    assert value("((a)+((c*d)))") is value("a+c*d")


def test_index_names_are_free_again_after_their_expression() -> None:
    assert len(parse_nests("L^{4}_{a=0}[D^{f32,g}=a;];" * 3).nests) == 3


def test_a_failed_parse_leaves_nothing_behind() -> None:
    with pytest.raises(ValueError, match="no loop has the index"):
        parse_nests("L^{4}_{a=0}[D^{f32,g}=q;];")
    assert len(parse_nests("L^{4}_{a=0}[D^{f32,g}=a;];").nests) == 1


def test_the_reference_programs_come_back_to_the_letter() -> None:
    texts = [json.loads(line)["leir"] for line in (DATA / "reference_leir_sample.jsonl").read_text().splitlines()]
    assert len(texts) == 60
    for text in texts:
        assert print_nests(parse_nests(text).nests) == text
