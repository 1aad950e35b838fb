"""What the parser says about text that it cannot read: place, fault, what was expected."""

from __future__ import annotations

from copy import copy

import pytest

from leir.parser import LeirSyntaxError, parse_nests

CASES = {
    # the shape of the text
    "foo": "1:1: unexpected `foo`; expected a loop, `[` or the end of the text",
    "M^{4}_{a=0}[];": "1:1: unexpected `M`; expected a loop, `[` or the end of the text",
    "L^{4}_{a=0}[D^{f32,g}_{a}=1;]": "1:30: the text ends too early; expected `;`",
    "[D^{f32,g}=1;]\n\n  [D^{f32,g}=2;];": "3:3: unexpected `[`; expected `;`",
    "L^{4}_{a=0}D^{f32,g}_{a}=1;": "1:12: unexpected `D`; expected a loop or `[`",
    "[D^{f32,g}+1=1;];": "1:11: unexpected `+`; expected `=`",
    "[D^{f32,g}==1;];": "1:11: unexpected `==`; expected `=`",
    "[1=1;];": "1:2: unexpected `1`; expected a loop, `[`, a tensor or `]`",
    "[D^{f32,g}=;];": "1:12: unexpected `;`; expected a value",
    "[D^{f32,g}=1+;];": "1:14: unexpected `;`; expected a value",
    "[D^{f32,g}=1 2;];": "1:14: unexpected `2`; expected an operator or `;`",
    "[D^{f32,g}=(1 2);];": "1:15: unexpected `2`; expected an operator or `)`",
    "[D^{f32,g}=max(1 2);];": "1:18: unexpected `2`; expected an operator, `)` or `,`",
    "[D^{f32,g}=1\x00;];": "1:13: unexpected `\\x00`; expected an operator or `;`",
    "[D^{f32,g}=é;];": "1:12: unexpected `é`; expected a value",
    "[D^{f32,g}=\u00a01;];": "1:12: unexpected `\\xa0`; expected a value",
    "[D^{f32,g}=1;];\n# x": "2:1: a comment line stands only above the text; expected a loop, `[` or the end of the text",
    # brackets
    "[D^{f32,g}=(1;];": "1:15: `]` does not close the `(` opened at 1:12",
    "[D^{f32,g}=1)];": "1:13: `)` does not close the `[` opened at 1:1",
    "[];];": "1:4: `]` closes nothing",
    "[D^{f32,g}=1;": "1:1: this `[` is never closed",
    # loops
    "L^{4}[];": "1:6: unexpected `[`; expected `_{`",
    "L^4_{a=0}[];": "1:2: unexpected `^`; expected an extent, as in `^{64}`",
    "L^{N}_{a=0}[];": "1:4: unexpected `N`; expected an integer",
    "L^{4}_{a=1}[];": "1:10: a loop starts at 1; expected 0",
    "L^{0}_{a=0}[];": "1:4: a loop of 0 iterations; expected an extent from 1 to 2147483647",
    "L^{2147483648}_{a=0}[];": "1:4: a loop of 2147483648 iterations; expected an extent from 1 to 2147483647",
    "L^{4}_{a=0}L^{4}_{a=0}[];": "1:19: the index a is already used by an enclosing loop",
    "L^{4}_{a=0}[L^{4}_{a=0}[];];": "1:20: the index a is already used by an enclosing loop",
    "L^{4}_{tx=0}[];": "1:8: tx begins with tx, which only the index of a B loop may",
    "B^{4}_{a=0}[];": "1:8: a B loop is mapped to a GPU index, and a begins with none of bx by bz tx ty tz",
    "B^{4}_{txb=0}[];": "1:8: txb has the letter b: t b x y z stand only in the prefixes bx by bz tx ty tz",
    "L^{4}_{ax=0}[];": "1:8: ax has the letter x: t b x y z stand only in the prefixes bx by bz tx ty tz",
    "L^{4}_{e=0}[];": "1:8: e is reserved and names no index",
    "L^{4}_{sin=0}[];": "1:8: sin is reserved and names no index",
    "L^{4}_{a1=0}[];": "1:8: 'a1' is no index name: lowercase letters only, as in a or ac",
    # names
    "L^{4}_{a=0}P^{2}_{c=0}[D^{f32,g}_{q}=1;];": "1:35: no loop has the index `q`: the loops around it are a, c",
    "[D^{f32,g}=a;];": "1:12: no loop has the index `a`: no loop is around it",
    "L^{4}_{a=0}[];[D^{f32,g}=a;];": "1:26: no loop has the index `a`: no loop is around it",
    "[T^{f32,g}=1;];": "1:2: T is a reserved letter (L P V U B T) and names no tensor",
    "[D^{f32,g}=P^{f32,g};];": "1:12: P is a reserved letter (L P V U B T) and names no tensor",
    "[P^{f32,g}=1;];": (
        "1:5: unexpected `f32` in a loop (the letters L P V U B start loops and name no tensor); expected an integer"
    ),
    "[DE^{f32,g}=1;];": "1:2: 'DE' is no tensor name: an uppercase letter, then lowercase letters, as in A or Ac",
    "[D1^{f32,g}=1;];": "1:2: 'D1' is no tensor name: an uppercase letter, then lowercase letters, as in A or Ac",
    "[Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa^{f32,g}=1;];": "1:2: a name of 34 letters, and the limit is 32",
    # tensors
    "[D=1;];": "1:3: unexpected `=`; expected a dtype and scope, as in `^{f32,g}`",
    "[D^{f32}=1;];": "1:3: unexpected `^{`; expected a dtype and scope, as in `^{f32,g}`",
    "[D^{u8,g}=1;];": "1:5: `u8` is no dtype of LEIR; expected f16, bf16, f32, f64, i8, i32, i64 or bool",
    "[D^{c64,g}=1;];": "1:5: `c64` is no dtype of LEIR; expected f16, bf16, f32, f64, i8, i32, i64 or bool",
    "[D^{f32,x}=1;];": "1:9: `x` is no memory scope; expected g (global), s (shared) or l (local)",
    "[D^{f32,g}_{}=1;];": "1:13: unexpected `}`; expected a value",
    "[D^{f32,g}_{1/2}=1;];": ("1:2: a subscript of D contains `/`; expected indices, integers or integer tensors under + - * // %"),
    "[D^{f32,g}=A^{f32,g}_{0,1+max(1,2)};];": (
        "1:12: a subscript of A contains `max`; expected indices, integers or integer tensors under + - * // %"
    ),
    "[D^{f32,g}_{1.0}=1;];": (
        "1:2: a subscript of D contains a number with a point; expected indices, integers or integer tensors under + - * // %"
    ),
    "[D^{f32,g}_{0<1}=1;];": (
        "1:2: a subscript of D contains a comparison; expected indices, integers or integer tensors under + - * // %"
    ),
    # calls and numbers
    "[D^{f32,g}=relu(1);];": (
        "1:12: `relu` is no function of LEIR; expected exp, log, sqrt, abs, erf, tanh, sin, cos, floor, ceil, sigmoid, max, min, "
        "cast_f16, cast_bf16, cast_f32, cast_f64, cast_i8, cast_i32, cast_i64, cast_bool or if_then_else"
    ),
    "[D^{f32,g}=max(1);];": "1:12: max with 1 argument; expected 2",
    "[D^{f32,g}=exp(1,2,3);];": "1:12: exp with 3 arguments; expected 1",
    "[D^{f32,g}=exp();];": "1:16: unexpected `)`; expected a value",
    "[D^{f32,g}=max;];": "1:12: the function max without its arguments; expected max(...)",
    "[D^{f32,g}=9223372036854775808;];": "1:12: 9223372036854775808 is too large; expected at most 9223372036854775807",
    "[D^{f32,g}=1e999;];": "1:12: `1e999` is too large for a number; infinity is written inf",
    "[D^{f32,g}=1e-999;];": "1:12: `1e-999` is too small for a number",
    "[D^{f32,g}=2e;];": "1:13: unexpected `e`; expected an operator or `;`",
    "[D^{f32,g}=nan;];": "1:12: no loop has the index `nan`: no loop is around it",
}


@pytest.mark.parametrize("text", CASES)
def test_message(text: str) -> None:
    with pytest.raises(LeirSyntaxError) as caught:
        parse_nests(text, name="p.leir")
    assert str(caught.value).splitlines()[0] == "p.leir:" + CASES[text]


def test_the_place_is_shown_with_a_caret() -> None:
    with pytest.raises(LeirSyntaxError) as caught:
        parse_nests("[D^{f32,g}=0;];\n[D^{f32,g}=\t(1+é)*q;];", name="p.leir")
    assert str(caught.value) == (
        "p.leir:2:16: unexpected `é`; expected a value\n"
        "  [D^{f32,g}=?(1+?)*q;];\n"
        "                 ^"
    )  # fmt: skip
    error = copy(caught.value)  # as pickling does, for worker processes
    assert str(error) == str(caught.value)
    assert (error.line, error.column, error.source_name) == (2, 16, "p.leir")
    assert (error.message, error.expected) == ("unexpected `é`", ("a value",))


def test_a_long_line_is_cut_around_the_place() -> None:
    text = "[D^{f32,g}=1;];" * 100 + "[D^{f32,g}=q;];" + "[D^{f32,g}=1;];" * 100
    with pytest.raises(LeirSyntaxError) as caught:
        parse_nests(text)
    _, excerpt, caret = str(caught.value).splitlines()
    assert len(excerpt) < 100
    assert excerpt[caret.index("^")] == "q"
    assert caught.value.column == 1512
