"""TVM's LLVM against the interpreter: the same bits wherever there is no reduction and no transcendental call, and beyond."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from leir.interpret import bits, interpret
from leir.ir import Program
from lower.build import build
from lower.compare import summed, within
from lower.draws import draw_inputs
from lower.error_bound import error_bounds
from lower.plan import LoweringRefused
from tests.test_lower.programs import program

FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("i8", "i32", "i64")

# No transcendental call: every operation is exact or rounded once, in the same order on both sides.
EXACT = {
    "sum of products": (
        "A F[6,4]; C F[4,8]; D F[6,8] output",
        "L^{6}_{a=0}L^{4}_{c=0}L^{8}_{d=0}[D^F_{a,d}=D^F_{a,d}+A^F_{a,c}*C^F_{c,d};];",
    ),
    "chain without contraction": (
        "A F[64]; C F[64]; E F[64]; D F[64] output",
        "L^{64}_{a=0}[D^F_{a}=A^F_{a}*C^F_{a}+E^F_{a}-A^F_{a}*E^F_{a}/C^F_{a};];",
    ),
    "sqrt abs floor ceil neg": (
        "A F[64]; D F[64] output",
        "L^{64}_{a=0}[D^F_{a}=sqrt(abs(A^F_{a}))+floor(A^F_{a}*3)-ceil(-A^F_{a});];",
    ),
    "constants": ("A F[64]; D F[64] output", "L^{64}_{a=0}[D^F_{a}=A^F_{a}*0.1+1/3-A^F_{a}*0+0.0-(A^F_{a}-A^F_{a});];"),
    "division by a literal zero": ("A F[64]; D F[64] output", "L^{64}_{a=0}[D^F_{a}=A^F_{a}/0+0/A^F_{a};];"),
    "comparisons": (
        "A F[64]; C F[64]; D F[64] output",
        "L^{64}_{a=0}[D^F_{a}=if_then_else(!(A^F_{a}<C^F_{a})&A^F_{a}!=0|A^F_{a}==C^F_{a},1,if_then_else(A^F_{a}>=C^F_{a},2,3));];",
    ),
    "padding": ("A F[6]; D F[8] output", "L^{8}_{a=0}[D^F_{a}=if_then_else(1<=a<7,A^F_{a-1},0.5);];"),
    "gather": ("A F[7,3]; I i64[5] 0..6; D F[5,3] output", "L^{5}_{a=0}L^{3}_{c=0}[D^F_{a,c}=A^F_{I^{i64,g}_{a},c}*2;];"),
    "index values": ("D F[6,5] output", "L^{6}_{a=0}L^{5}_{c=0}[D^F_{a,c}=(a*700+c)*1.5+(a-3)//2+(c-4)%3;];"),
    "recurrence": ("A F[9]; D F[9] output", "[D^F_{0}=A^F_{0};];L^{8}_{a=0}[D^F_{a+1}=D^F_{a}*0.5+A^F_{a+1};];"),
    "product and extremes": (
        "A F[5,7]; D F[5] output",
        "L^{5}_{a=0}[L^{7}_{c=0}[E^F_{a}=max(E^F_{a},A^F_{a,c});F^F_{a}=min(A^F_{a,c},F^F_{a});G^F_{a}=G^F_{a}*A^F_{a,c};];D^F_{a}=E^F_{a}-F^F_{a}*G^F_{a};];",
    ),
    "scalars": ("A F; D F output", "[S^F=A^F*3;D^F=S^F-A^F;];"),
    "nested choices": (
        "A F[8]; D F[8] output",
        "L^{8}_{a=0}[D^F_{a}=if_then_else(a<6,if_then_else(A^F_{a+2}>0,(A^F_{a+2}+1)*3,A^F_{a}/3),A^F_{a}-0.1);];",
    ),
    "loop kinds": (
        "A F[4,6,8]; D F[4,6,8] output; E F[4,6] output",
        "P^{4}_{a=0}P^{6}_{c=0}V^{8}_{d=0}[D^F_{a,c,d}=A^F_{a,c,d}*2+1;];B^{4}_{bx=0}B^{6}_{tx=0}U^{8}_{a=0}[E^F_{bx,tx}=E^F_{bx,tx}+D^F_{bx,tx,a};];",
    ),
}

TRANSCENDENTAL = "L^{64}_{a=0}[D^F_{a}=CALL(A^F_{a});];"
CALLS = ("exp", "log", "erf", "tanh", "sin", "cos", "sigmoid", "sqrt")


def check_bits(p: Program, inputs: dict[str, Any]) -> None:
    expected, got = interpret(p, inputs), build(p).run(inputs)
    for name, value in expected.items():
        np.testing.assert_array_equal(bits(got[name]), bits(value), err_msg=f"{name}\n{got[name]}\n{value}")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", EXACT)
def test_exact_programs_agree_bit_by_bit(name: str, dtype: str) -> None:
    p = program(*EXACT[name], dtype)
    built = build(p)
    for kind in ("normal", "adversarial", "special"):
        inputs = draw_inputs(p.signature, 1, kind)
        expected, got = interpret(p, inputs), built.run(inputs)
        for output, value in expected.items():
            np.testing.assert_array_equal(bits(got[output]), bits(value), err_msg=f"{name} {kind} {output}")


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_a_square_rounds_once(dtype: str) -> None:
    """In f64 as well, but NumPy's power, which is the interpreter's, does not."""
    p = program("A F[64]; D F[64] output", "L^{64}_{a=0}[D^F_{a}=if_then_else(a<60,(A^F_{a}+1)**2,A^F_{a});];", dtype)
    check_bits(p, draw_inputs(p.signature, 8, "adversarial"))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("call", CALLS)
def test_library_functions_stay_within_their_bound(call: str, dtype: str) -> None:
    p = program("A F[64]; D F[64] output", TRANSCENDENTAL.replace("CALL", call), dtype)
    built = build(p)
    for kind in ("normal", "positive", "adversarial", "special"):
        inputs = draw_inputs(p.signature, 2, kind)
        bound = error_bounds(p, inputs)["D"]
        reference = interpret(p, inputs, mode="f64")["D"]
        tensor = p.signature.outputs[0]
        for got in (built.run(inputs)["D"], interpret(p, inputs)["D"]):
            assert within(tensor, got, reference, summed(dtype, bound, bound)), (call, kind)
            np.testing.assert_array_equal(np.isnan(got), np.isnan(reference))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("kind", ["L", "V"])
def test_extremes_propagate_nan_and_order_zeros(kind: str, op: str, dtype: str) -> None:
    special = np.array([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 2.0], np.float32)
    first, second = (np.asarray(x, interpret_dtype(dtype)) for x in (np.repeat(special, 8), np.tile(special, 8)))
    p = program("A F[64]; C F[64]; D F[64] output", f"{kind}^{{64}}_{{a=0}}[D^F_{{a}}={op}(A^F_{{a}},C^F_{{a}});];", dtype)
    got = build(p).run({"A": first, "C": second})["D"].astype(np.float64)
    for x, y, z in zip(np.repeat(special, 8).tolist(), np.tile(special, 8).tolist(), got.tolist(), strict=True):
        if np.isnan(x) or np.isnan(y):
            assert np.isnan(z)
        else:
            ordered = sorted((x, y), key=lambda v: (v, not np.signbit(v)))
            want = ordered[-1 if op == "max" else 0]
            assert z == want
            assert np.signbit(z) == np.signbit(want)


def interpret_dtype(dtype: str) -> str:
    return {"f16": "float16", "bf16": "float32", "f32": "float32", "f64": "float64"}[dtype]


def test_a_maximum_over_a_row_with_a_nan_is_nan() -> None:
    p = program("A F[2,8]; D F[2] output", "L^{2}_{a=0}L^{8}_{c=0}[D^F_{a}=max(D^F_{a},A^F_{a,c});];")
    a = np.arange(16, dtype=np.float32).reshape(2, 8)
    a[1, 3] = np.nan
    got = build(p).run({"A": a})["D"]
    assert got[0] == 7
    assert np.isnan(got[1])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap(dtype: str) -> None:
    text = (
        "L^{64}_{a=0}[D^F_{a}=A^F_{a}*C^F_{a}-A^F_{a}+7*(-C^F_{a});"
        "E^F_{a}=abs(A^F_{a})+max(A^F_{a},C^F_{a})-min(C^F_{a},3);G^F_{a}=A^F_{a}**3;];"
    )
    p = program("A F[64]; C F[64]; D F[64] output; E F[64] output; G F[64] output", text, dtype)
    check_bits(p, draw_inputs(p.signature, 3, "special"))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_floors(dtype: str) -> None:
    p = program(
        "A F[64]; C F[64]; D F[64] output; E F[64] output",
        "L^{64}_{a=0}[D^F_{a}=A^F_{a}//C^F_{a};E^F_{a}=A^F_{a}%C^F_{a};];",
        dtype,
    )
    inputs = draw_inputs(p.signature, 4, "special")
    inputs["C"] = np.where(inputs["C"] == 0, -1, inputs["C"]).astype(inputs["C"].dtype)
    check_bits(p, inputs)


@pytest.mark.parametrize("target", (*FLOATS, *INTEGERS, "bool"))
@pytest.mark.parametrize("source", (*FLOATS, *INTEGERS, "bool"))
def test_casts(source: str, target: str) -> None:
    p = program(
        f"A {source}[64]; D {target}[64] output",
        f"L^{{64}}_{{a=0}}[D^{{{target},g}}_{{a}}=cast_{target}(A^{{{source},g}}_{{a}});];",
    )
    for kind in ("special", "adversarial"):
        check_bits(p, draw_inputs(p.signature, 5, kind))


def test_bools_are_computed_and_stored() -> None:
    text = (
        "L^{64}_{a=0}[E^{bool,g}_{a}=A^{f32,g}_{a}>0&C^{bool,g}_{a};"
        "D^{f32,g}_{a}=if_then_else(!E^{bool,g}_{a}|E^{bool,g}_{a}==C^{bool,g}_{a},A^{f32,g}_{a},-1);];"
    )
    p = program("A f32[64]; C bool[64]; D f32[64] output; E bool[64] output", text)
    check_bits(p, draw_inputs(p.signature, 6, "special"))


def test_a_branch_that_is_not_chosen_is_not_evaluated() -> None:
    text = (
        "L^{4}_{a=0}[D^{f32,g}_{a}=if_then_else(a<1,A^{f32,g}_{a*1000000000},0)"
        "+cast_f32(if_then_else(I^{i64,g}_{a}==0,0,7//I^{i64,g}_{a}));];"
    )
    p = program("A f32[1]; I i64[4] 0..3; D f32[4] output", text)
    inputs = {"A": np.ones(1, np.float32), "I": np.array([0, 1, 2, 3])}
    np.testing.assert_array_equal(build(p).run(inputs)["D"], [1, 7, 3, 2])


def test_products_and_sums_stay_apart_even_where_llvm_computes_them() -> None:
    """TVM would write ``llvm.fmuladd``, which constant folding rounds once: 701*1.5-1 in f16 is 1051, fused it is 1050."""
    p = program("D F[6,5] output", "L^{6}_{a=0}L^{5}_{c=0}[D^F_{a,c}=(a*700+c)*1.5+(a-2);];", "f16")
    check_bits(p, {})


def test_the_exact_setting_does_not_contract() -> None:
    p = program("A F[256]; C F[256]; E F[256]; D F[256] output", "L^{256}_{a=0}[D^F_{a}=A^F_{a}*C^F_{a}+E^F_{a};];")
    inputs = draw_inputs(p.signature, 0, "normal")
    a, c, e = (inputs[k] for k in "ACE")
    np.testing.assert_array_equal(build(p).run(inputs)["D"], a * c + e)
    fast = build(p, "fast").run(inputs)["D"]
    np.testing.assert_allclose(fast, a * c + e, rtol=1e-4, atol=1e-6)


def test_an_integer_power_with_a_variable_exponent_is_refused_by_name() -> None:
    p = program("A i32[4]; D i32[4] output", "L^{4}_{a=0}[D^{i32,g}_{a}=A^{i32,g}_{a}**A^{i32,g}_{a};];")
    with pytest.raises(LoweringRefused, match="integer-power"):
        build(p)


def test_inputs_of_another_shape_or_dtype_are_refused() -> None:
    built = build(program("A F[4]; D F[4] output", "L^{4}_{a=0}[D^F_{a}=A^F_{a};];"))
    for wrong in ({}, {"A": np.zeros(5, np.float32)}, {"A": np.zeros(4, np.float64)}):
        with pytest.raises(ValueError, match=r"A: expected f32\[4\]"):
            built.run(wrong)


def test_inputs_may_be_strided_and_read_only() -> None:
    built = build(program("A F[4]; D F[4] output", "L^{4}_{a=0}[D^F_{a}=A^F_{a}*2;];"))
    strided = np.arange(8, dtype=np.float32)[::2]
    strided.flags.writeable = False
    np.testing.assert_array_equal(built.run({"A": strided})["D"], [0, 4, 8, 12])
