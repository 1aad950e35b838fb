"""What programs mean (leir.md, section 3), each shown on a few elements and by both walks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from leir.interpret import InterpretError, interpret
from leir.ir import Known, Signature
from leir.parser import parse
from tests.test_leir.running import run


def random(*shape: int, dtype: type = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


# --------------------------------------------------------------------------------------------------------------- whole programs


def test_matmul() -> None:
    a, c = random(4, 7), random(7, 5, seed=1)
    text = "B^{4}_{tx=0}L^{5}_{a=0}L^{7}_{c=0}[D^{f32,g}_{tx,a}=D^{f32,g}_{tx,a}+A^{f32,g}_{tx,c}*C^{f32,g}_{c,a};];"
    result = run(text, A=a, C=c, D=("f32", (4, 5)))["D"]
    np.testing.assert_allclose(result, a @ c, rtol=1e-5)


def test_softmax() -> None:
    a = random(3, 9, dtype=np.float64)
    text = (
        "L^{3}_{a=0}L^{9}_{c=0}[M^{f64,g}_{a}=max(M^{f64,g}_{a},A^{f64,g}_{a,c});];"
        "L^{3}_{a=0}L^{9}_{c=0}[S^{f64,g}_{a}=S^{f64,g}_{a}+exp(A^{f64,g}_{a,c}-M^{f64,g}_{a});];"
        "L^{3}_{a=0}L^{9}_{c=0}[D^{f64,g}_{a,c}=exp(A^{f64,g}_{a,c}-M^{f64,g}_{a})/S^{f64,g}_{a};];"
    )
    weights = np.exp(a - a.max(1, keepdims=True))
    np.testing.assert_allclose(run(text, A=a, D=("f64", (3, 9)))["D"], weights / weights.sum(1, keepdims=True), rtol=1e-13)


def test_row_by_row_with_local_scalars() -> None:
    a = random(5, 8, dtype=np.float64)
    text = (
        "B^{5}_{tx=0}[M^{f64,l}=-inf;L^{8}_{a=0}[M^{f64,l}=max(M^{f64,l},A^{f64,g}_{tx,a});];S^{f64,l}=0;"
        "L^{8}_{a=0}[S^{f64,l}=S^{f64,l}+exp(A^{f64,g}_{tx,a}-M^{f64,l});];D^{f64,g}_{tx}=log(S^{f64,l})+M^{f64,l};];"
    )
    np.testing.assert_allclose(run(text, A=a, D=("f64", (5,)))["D"], np.log(np.exp(a).sum(1)), rtol=1e-13)


def test_a_fused_loop_and_its_lifted_program_agree() -> None:
    a = random(4, 6)
    text = "L^{24}_{a=0}[D^{f32,g}_{a%6,a//6}=A^{f32,g}_{a//6,a%6}*2;];"
    program = parse(text, Signature("t", (Known("A", "f32", (4, 6), "input"), Known("D", "f32", (6, 4), "output"))))
    assert program.nests[0].axes == (6, 4)
    assert np.array_equal(interpret(program, {"A": a})["D"], a.T * 2)
    assert np.array_equal(interpret(program, {"A": a}, walk="points")["D"], a.T * 2)


def test_errors_in_a_fused_loop_name_its_digits() -> None:
    known = (Known("A", "f32", (2, 2), "input"), Known("D", "f32", (2, 2), "output"))
    text = "L^{2}_{a=0}L^{4}_{c=0}[D^{f32,g}_{c//2,c%2}=D^{f32,g}_{c//2,c%2}+A^{f32,g}_{c//2*2,a};];"
    program = parse(text, Signature("t", known))
    with pytest.raises(InterpretError, match=r"reads A\[2,0\], outside its shape \[2,2\], at a=0, c//2=1, c%2=0"):
        interpret(program, {"A": random(2, 2)})


# -------------------------------------------------------------------------------------------------------------------- arithmetic


def test_an_f16_sum_rounds_at_every_step() -> None:
    ones = np.ones(2050, np.float16)
    text = "L^{2050}_{a=0}[S^{f16,g}=S^{f16,g}+A^{f16,g}_{a};];"
    assert run(text, A=ones, S=("f16", ()))["S"] == 2048  # 2049 is no f16
    assert run(text, mode="f64", A=ones, S=("f16", ()))["S"] == 2050


def test_a_sum_is_sequential() -> None:
    values = np.array([2.0**24, *[1.0] * 300], np.float32)
    total = run("L^{301}_{a=0}[S^{f32,g}=S^{f32,g}+A^{f32,g}_{a};];", A=values, S=("f32", ()))["S"]
    assert total == 2.0**24  # pairwise summation would see the ones
    last = run("L^{301}_{a=0}[S^{f32,g}=S^{f32,g}+A^{f32,g}_{300-a};];", A=values, S=("f32", ()))["S"]
    assert last == 2.0**24 + 300


def test_a_chain_adds_term_by_term() -> None:
    a, c = np.float32([2.0**24, 0]), np.float32([1.0, 1.0])
    text = "L^{2}_{a=0}[S^{f32,g}=S^{f32,g}+A^{f32,g}_{a}+C^{f32,g}_{a}-1;];"
    assert run(text, A=a, C=c, S=("f32", ()))["S"] == np.float32(((2.0**24) - 1) + 1 - 1)
    grouped = "L^{2}_{a=0}[S^{f32,g}=S^{f32,g}+(A^{f32,g}_{a}+C^{f32,g}_{a}-1);];"
    assert run(grouped, A=a, C=c, S=("f32", ()))["S"] == np.float32(2.0**24 - 1)


def test_the_f64_mode_does_not_round_in_between() -> None:
    third = np.float16([1 / 3])
    text = "L^{1}_{a=0}[D^{f16,g}_{a}=cast_f16(cast_f32(A^{f16,g}_{a})*3)+0.1;];"
    result = run(text, mode="f64", A=third, D=("f16", (1,)))["D"]
    assert result.dtype == np.float64
    assert result[0] == float(third[0]) * 3 + 0.1


def test_integers_wrap() -> None:
    total = run("L^{5}_{a=0}[S^{i8,g}=S^{i8,g}+A^{i8,g}_{a};];", A=np.full(5, 100, np.int8), S=("i8", ()))["S"]
    assert total == np.int8(500 - 512)


def test_an_index_expression_is_exact_and_converted_once() -> None:
    result = run("L^{3}_{a=0}[D^{f16,g}_{a}=a*2049-a*2048;E^{f16,g}_{a}=a*2049;];", D=("f16", (3,)), E=("f16", (3,)))
    assert result["D"].tolist() == [0, 1, 2]
    assert result["E"].tolist() == [0, 2048, 4096]
    assert run("L^{3}_{a=0}[D^{i8,g}_{a}=a*100//2;];", D=("i8", (3,)))["D"].tolist() == [0, 50, 100]


def test_a_chained_comparison() -> None:
    text = "L^{6}_{a=0}[D^{i32,g}_{a}=if_then_else(1<=a<3|!(a<5),1,0);];"
    assert run(text, D=("i32", (6,)))["D"].tolist() == [0, 1, 1, 0, 0, 1]


def test_max_propagates_nan_and_orders_zeros() -> None:
    a = np.float32([[-0.0, 0.0, -0.0], [-math.inf, math.nan, 3.0], [-1.0, -0.0, -2.0]])
    text = (
        "L^{3}_{a=0}L^{3}_{c=0}[D^{f32,g}_{a}=max(D^{f32,g}_{a},A^{f32,g}_{a,c});"
        "E^{f32,g}_{a}=min(A^{f32,g}_{a,c},E^{f32,g}_{a});];"
    )
    result = run(text, A=a, D=("f32", (3,)), E=("f32", (3,)))
    assert math.copysign(1, result["D"][0]) == 1
    assert math.copysign(1, result["E"][0]) == -1
    assert np.isnan(result["D"][1])
    assert np.isnan(result["E"][1])
    assert math.copysign(1, result["D"][2]) == -1


def test_bf16_comes_and_goes_as_float32() -> None:
    signature = Signature("t", (Known("A", "bf16", (2,), "input"), Known("D", "bf16", (2,), "output")))
    program = parse("L^{2}_{a=0}[D^{bf16,g}_{a}=A^{bf16,g}_{a}+1;];", signature)
    result = interpret(program, {"A": np.float32([0.1, 256])})["D"]
    assert result.dtype == np.float32
    assert result.tolist() == [1.1015625, 256.0]


# ---------------------------------------------------------------------------------------------------- implicit initialisation


def test_an_output_starts_from_zero_once() -> None:
    a, w, b = random(3, 4, dtype=np.float64), random(4, dtype=np.float64, seed=1), random(3, dtype=np.float64, seed=2)
    text = (
        "L^{3}_{a=0}L^{4}_{c=0}[C^{f64,g}_{a}=C^{f64,g}_{a}+A^{f64,g}_{a,c}*W^{f64,g}_{c};];"
        "L^{3}_{a=0}[C^{f64,g}_{a}=C^{f64,g}_{a}+Bb^{f64,g}_{a};];"
    )
    np.testing.assert_allclose(run(text, A=a, W=w, Bb=b, C=("f64", (3,)))["C"], a @ w + b, rtol=1e-13)


@pytest.mark.parametrize(
    ("equation", "dtype", "result"),
    [
        ("X=X+5", "f32", 5),
        ("X=X-5", "f32", -5),
        ("X=X*5", "f32", 5),
        ("X=X*5", "i32", 5),
        ("X=max(X,-5)", "f32", -5),
        ("X=max(-5,X)", "i8", -5),
        ("X=min(X,5)", "i64", 5),
        ("X=min(X,inf)", "f16", math.inf),
        ("X=max(X,-inf)", "bf16", -math.inf),
        ("X=X+1-3+4", "f64", 2),
    ],
)
def test_identities(equation: str, dtype: str, result: float) -> None:
    access = f"X^{{{dtype},g}}"
    assert run(f"[{equation.replace('X', access)};];", X=(dtype, ()))["X"] == result


def test_only_elements_without_a_write_start_from_the_identity() -> None:
    text = "[X^{f32,g}_{1}=5;];L^{3}_{a=0}[X^{f32,g}_{a}=X^{f32,g}_{a}*2;];"
    assert run(text, X=("f32", (3,)))["X"].tolist() == [2, 10, 2]


def test_another_operator_continues_from_what_is_there() -> None:
    text = "L^{3}_{a=0}[X^{i32,g}=X^{i32,g}+1;];L^{3}_{a=0}[X^{i32,g}=max(X^{i32,g},a);];[X^{i32,g}=X^{i32,g}*7;];"
    assert run(text, X=("i32", ()))["X"] == 21


def test_the_first_write_may_come_in_the_middle_of_a_loop() -> None:
    text = "L^{4}_{a=0}[X^{i32,g}_{a//2}=X^{i32,g}_{a//2}+a;Y^{i32,g}_{a}=X^{i32,g}_{a//2};];"
    result = run(text, X=("i32", (2,)), Y=("i32", (4,)))
    assert result["X"].tolist() == [1, 5]
    assert result["Y"].tolist() == [0, 1, 2, 5]


# -------------------------------------------------------------------------------------------------------------- order and kinds


@pytest.mark.parametrize("kind", "LPVU")
def test_kinds_do_not_matter(kind: str) -> None:
    text = f"{kind}^{{5}}_{{a=0}}[X^{{i32,g}}_{{a+1}}=X^{{i32,g}}_{{a}}*2+1;];"
    assert run("[X^{i32,g}_{0}=1;];" + text, X=("i32", (6,)))["X"].tolist() == [1, 3, 7, 15, 31, 63]


def test_a_sum_over_a_bound_loop_is_read_in_order() -> None:
    values = np.array([2.0**24, *[1.0] * 30], np.float32)
    assert run("B^{31}_{tx=0}[S^{f32,g}=S^{f32,g}+A^{f32,g}_{tx};];", A=values, S=("f32", ()))["S"] == 2.0**24


def test_loop_order_is_part_of_a_recurrence() -> None:
    fill = "L^{13}_{a=0}[M^{i32,g}_{a}=1;];"
    body = "[M^{i32,g}_{h*4+a+1}=M^{i32,g}_{h*4+a}+M^{i32,g}_{h*4+a+1};];"
    forward = run(fill + "L^{3}_{h=0}L^{4}_{a=0}" + body, M=("i32", (13,)))["M"]
    crossed = run(fill + "L^{4}_{a=0}L^{3}_{h=0}" + body, M=("i32", (13,)))["M"]
    assert forward.tolist() == list(range(1, 14))
    assert crossed.tolist() == [1, 2, 3, 4, 5, 2, 3, 4, 5, 2, 3, 4, 5]


def test_the_last_of_several_writes_stays() -> None:
    text = "L^{6}_{a=0}[D^{i32,g}_{a//2}=a;];L^{2}_{a=0}L^{3}_{c=0}[E^{i32,g}_{c}=a*10+c;];"
    result = run(text, D=("i32", (3,)), E=("i32", (3,)))
    assert result["D"].tolist() == [1, 3, 5]
    assert result["E"].tolist() == [10, 11, 12]


def test_items_alternate_within_a_shared_loop() -> None:
    text = "[X^{i32,g}=0;];L^{3}_{a=0}[X^{i32,g}=X^{i32,g}+a+1;L^{2}_{c=0}[X^{i32,g}=X^{i32,g}*2;];D^{i32,g}_{a}=X^{i32,g};];"
    assert run(text, D=("i32", (3,)))["D"].tolist() == [4, 24, 108]


# --------------------------------------------------------------------------------------------------------- guards and gathers


def test_a_guard_protects_an_access() -> None:
    a = np.float32([1, 2, 3, 4])
    text = "L^{6}_{a=0}[D^{f32,g}_{a}=if_then_else(1<=a<5,A^{f32,g}_{a-1},0);];"
    assert run(text, A=a, D=("f32", (6,)))["D"].tolist() == [0, 1, 2, 3, 4, 0]


def test_nested_guards_select_twice() -> None:
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    text = (
        "L^{5}_{a=0}L^{6}_{c=0}[D^{f32,g}_{a,c}=if_then_else(1<=a<4,if_then_else(1<=c&c<5,A^{f32,g}_{a-1,c-1},-1),"
        "if_then_else(c<4,A^{f32,g}_{a//2,c},-2))*2;];"
    )
    expected = np.full((5, 6), -2.0)
    expected[[0, 4], 4:] = -4
    expected[1:4, 1:5] = a * 2
    expected[0, :4], expected[4, :4] = a[0] * 2, a[2] * 2
    assert np.array_equal(run(text, A=a, D=("f32", (5, 6)))["D"], expected)


def test_a_guard_on_values() -> None:
    a, c = np.float32([4, -1, 9]), np.int32([2, 7, 0])
    text = "L^{3}_{a=0}[D^{f32,g}_{a}=if_then_else(C^{i32,g}_{a}<3,A^{f32,g}_{C^{i32,g}_{a}},sqrt(A^{f32,g}_{0}));];"
    assert run(text, A=a, C=c, D=("f32", (3,)))["D"].tolist() == [9, 2, 4]


def test_padded_convolution() -> None:
    a, w = random(2, 5, 6, dtype=np.float64), random(3, 2, 3, 3, dtype=np.float64, seed=1)
    text = (
        "L^{3}_{a=0}L^{5}_{c=0}L^{6}_{d=0}L^{2}_{f=0}L^{3}_{g=0}L^{3}_{h=0}[D^{f64,g}_{a,c,d}=D^{f64,g}_{a,c,d}+"
        "if_then_else(1<=c+g<6&1<=d+h<7,A^{f64,g}_{f,c+g-1,d+h-1},0)*W^{f64,g}_{a,f,g,h};];"
    )
    padded = np.pad(a, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    expected = np.einsum("fcdgh,afgh->acd", windows, w)
    np.testing.assert_allclose(run(text, A=a, W=w, D=("f64", (3, 5, 6)))["D"], expected, rtol=1e-12, atol=1e-12)


def test_a_gather_of_a_gather() -> None:
    a = np.int64([3, 0, 2, 1])
    text = "L^{4}_{a=0}[D^{i64,g}_{a}=A^{i64,g}_{A^{i64,g}_{a}}+A^{i64,g}_{3-a};];"
    assert run(text, A=a, D=("i64", (4,)))["D"].tolist() == (a[a] + a[::-1]).tolist()
