"""Where accumulations start, and which loop kinds survive lowering."""

from __future__ import annotations

import numpy as np
import pytest

from leir.interpret import interpret
from leir.lift import flatten_program
from lower.build import build, tir_text
from lower.plan import MAX_LANES, MAX_UNROLL, LoweringRefused, plan
from tests.test_lower.programs import program


def modes(tensors: str, text: str) -> list[str]:
    return [str(mode) for mode in plan(flatten_program(program(tensors, text))).modes.values()]


@pytest.mark.parametrize("order", ["acd", "adc", "cad", "cda", "dac", "dca"])
def test_a_sum_starts_from_zero_under_every_loop_order(order: str) -> None:
    size = {"a": 3, "c": 4, "d": 5}
    loops = "".join(f"L^{{{size[x]}}}_{{{x}=0}}" for x in order)
    p = program("A F[3,4]; C F[4,5]; D F[3,5] output", loops + "[D^F_{a,d}=D^F_{a,d}+A^F_{a,c}*C^F_{c,d};];")
    a, c = np.arange(12, dtype=np.float32).reshape(3, 4), np.arange(20, dtype=np.float32).reshape(4, 5)
    np.testing.assert_array_equal(build(p).run({"A": a, "C": c})["D"], a @ c)


def test_the_start_goes_before_the_outermost_loop_that_the_target_does_not_name() -> None:
    p = program("A F[3,4,5]; D F[3,5] output", "L^{3}_{a=0}L^{4}_{c=0}L^{5}_{d=0}[D^F_{a,d}=D^F_{a,d}+A^F_{a,c,d};];")
    (start,) = plan(flatten_program(p)).before_loop[(0,), 1]
    assert start.axes == ((2, 5),)
    assert start.op == "+"


def test_fused_and_split_subscripts_are_injective() -> None:
    text = "L^{12}_{a=0}L^{2}_{c=0}L^{5}_{d=0}[D^F_{a//4,a%4*2+c}=D^F_{a//4,a%4*2+c}+A^F_{a,c,d};];"
    p = program("A F[12,2,5]; D F[3,8] output", text)
    found = plan(flatten_program(p))
    assert not found.fills
    a = np.arange(120, dtype=np.float32).reshape(12, 2, 5)
    np.testing.assert_array_equal(build(p).run({"A": a})["D"], a.sum(2).reshape(3, 8))


def test_a_target_met_again_is_filled_at_the_start() -> None:
    p = program("A F[4,3]; D F[6] output", "L^{4}_{a=0}L^{3}_{c=0}[D^F_{a+c}=D^F_{a+c}+A^F_{a,c};];")
    (fill,) = plan(flatten_program(p)).fills
    assert (fill.tensor.name, fill.op) == ("D", "+")
    inputs = {"A": np.arange(12, dtype=np.float32).reshape(4, 3)}
    np.testing.assert_array_equal(build(p).run(inputs)["D"], interpret(p, inputs)["D"])


def test_a_partial_initialisation_fills_and_what_is_written_first_stays() -> None:
    p = program("A F[6]; D F[6] output", "L^{3}_{a=0}[D^F_{a}=5;];L^{6}_{a=0}[D^F_{a}=D^F_{a}+A^F_{a};];")
    assert plan(flatten_program(p)).fills
    inputs = {"A": np.arange(6, dtype=np.float32)}
    np.testing.assert_array_equal(build(p).run(inputs)["D"], [5, 6, 7, 3, 4, 5])


def test_two_operators_that_both_need_a_fill_are_refused_by_name() -> None:
    text = (
        "L^{2}_{a=0}[D^F_{a*3}=5;];L^{4}_{a=0}[D^F_{a}=D^F_{a}+A^F_{a};];"
        "L^{4}_{a=0}L^{2}_{c=0}[D^F_{a+c+1}=max(D^F_{a+c+1},A^F_{a});];"
    )
    with pytest.raises(LoweringRefused, match="mixed-initialisation: D"):
        plan(flatten_program(program("A F[6]; D F[6] output", text)))


def test_a_scalar_that_goes_on_accumulating_is_set_once() -> None:
    text = "L^{3}_{a=0}[L^{4}_{c=0}[S^F=S^F+A^F_{a,c};];D^F_{a}=S^F;];"
    p = program("A F[3,4]; D F[3] output", text)
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(build(p).run({"A": a})["D"], a.sum(1).cumsum())


@pytest.mark.parametrize(("op", "start"), [("+", 0.0), ("*", 1.0), ("max", -np.inf), ("min", np.inf)])
def test_every_operator_starts_from_its_identity(op: str, start: float) -> None:
    value = f"{op}(D^F_{{a}},A^F_{{a}})" if op in ("max", "min") else f"D^F_{{a}}{op}A^F_{{a}}"
    p = program("A F[4]; D F[4] output", f"L^{{4}}_{{a=0}}[D^F_{{a}}={value};];")
    a = np.array([1.5, -2, np.inf, 0], np.float32)
    np.testing.assert_array_equal(build(p).run({"A": a})["D"], a)
    assert repr(start)[:3] in tir_text(p)


def test_kinds_that_change_nothing_are_kept() -> None:
    assert modes("A F[4,6,8]; D F[4,6,8] output", "P^{4}_{a=0}U^{6}_{c=0}V^{8}_{d=0}[D^F_{a,c,d}=A^F_{a,c,d};];") == [
        "parallel",
        "unrolled",
        "vectorized",
    ]


def test_a_parallel_loop_inside_a_parallel_loop_is_serial() -> None:
    assert modes("A F[4,6]; D F[4,6] output", "P^{4}_{a=0}P^{6}_{c=0}[D^F_{a,c}=A^F_{a,c};];") == ["parallel", "serial"]


def test_bound_loops_are_serial() -> None:
    assert modes("A F[4,6]; D F[4,6] output", "B^{4}_{bx=0}B^{6}_{tx=0}[D^F_{bx,tx}=A^F_{bx,tx};];") == ["serial", "serial"]


@pytest.mark.parametrize("kind", ["P", "V"])
@pytest.mark.parametrize(
    "body",
    [
        "D^F_{a+1}=D^F_{a}*0.5+A^F_{a};",  # a value crosses iterations
        "D^F_{8-a}=A^F_{a};E^F_{a}=D^F_{a+1};",  # lanes would read each other's
        "D^F_{0}=D^F_{0}+A^F_{a};",  # a reduction
        "D^F_{a//2}=A^F_{a};",  # two iterations write one element
    ],
)
def test_a_kind_that_would_change_the_result_is_lowered_as_a_serial_loop(kind: str, body: str) -> None:
    text = f"L^{{9}}_{{a=0}}[D^F_{{a}}=0;];{kind}^{{8}}_{{a=0}}[{body}];"
    p = program("A F[9]; D F[9] output", text)
    assert list(plan(flatten_program(p)).modes.values())[1] == "serial"
    inputs = {"A": np.arange(9, dtype=np.float32)}
    np.testing.assert_array_equal(build(p).run(inputs)["D"], interpret(p, inputs)["D"])


def test_long_vectors_and_large_unrolls_become_serial() -> None:
    long = MAX_LANES + 1
    assert modes(f"A F[{long}]; D F[{long}] output", f"V^{{{long}}}_{{a=0}}[D^F_{{a}}=A^F_{{a}};];") == ["serial"]
    text = f"U^{{{MAX_UNROLL}}}_{{a=0}}U^{{2}}_{{c=0}}[D^F_{{a,c}}=A^F_{{a,c}};];"
    assert modes(f"A F[{MAX_UNROLL},2]; D F[{MAX_UNROLL},2] output", text) == ["unrolled", "serial"]
