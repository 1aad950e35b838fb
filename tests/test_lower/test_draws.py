"""The draws of a verification."""

from __future__ import annotations

import numpy as np

from leir.scalars import rounded
from lower.draws import KINDS, draw_inputs
from tests.test_lower.programs import program

P = program(
    "A f32[8,8]; C bf16[64]; E f64[64]; F f16[64]; I i64[64] 2..5; J i8[64]; K bool[64]; S f32; D f32[8,8] output",
    "L^{8}_{a=0}L^{8}_{c=0}[D^{f32,g}_{a,c}=A^{f32,g}_{a,c}+S^{f32,g};];",
)


def test_the_same_seed_gives_the_same_bytes() -> None:
    for kind in KINDS:
        first, again = draw_inputs(P.signature, 7, kind), draw_inputs(P.signature, 7, kind)
        assert {k: v.tobytes() for k, v in first.items()} == {k: v.tobytes() for k, v in again.items()}
        assert first["A"].tobytes() != draw_inputs(P.signature, 8, kind)["A"].tobytes()


def test_the_bytes_are_pinned() -> None:
    """A change here changes every stored verdict."""
    got = draw_inputs(P.signature, 0, "normal")
    assert [round(float(v), 6) for v in got["A"][0, :3]] == [-0.760431, -2.583633, 1.066053]


def test_a_tensor_does_not_depend_on_the_others() -> None:
    alone = program("A f32[8,8]; D f32[8,8] output", "L^{8}_{a=0}L^{8}_{c=0}[D^{f32,g}_{a,c}=A^{f32,g}_{a,c};];")
    np.testing.assert_array_equal(draw_inputs(alone.signature, 3, "normal")["A"], draw_inputs(P.signature, 3, "normal")["A"])


def test_dtypes_shapes_and_ranges() -> None:
    for kind in (*KINDS, "special"):
        got = draw_inputs(P.signature, 1, kind)  # type: ignore[arg-type]
        assert {k: (v.dtype.name, v.shape) for k, v in got.items()} == {
            "A": ("float32", (8, 8)),
            "C": ("float32", (64,)),
            "E": ("float64", (64,)),
            "F": ("float16", (64,)),
            "I": ("int64", (64,)),
            "J": ("int8", (64,)),
            "K": ("bool", (64,)),
            "S": ("float32", ()),
        }
        assert got["I"].min() >= 2
        assert got["I"].max() <= 5
        np.testing.assert_array_equal(got["C"], rounded(got["C"], "bf16"))


def test_the_kinds_hold_what_they_say() -> None:
    assert (draw_inputs(P.signature, 1, "positive")["E"] > 0).all()
    adversarial = draw_inputs(P.signature, 1, "adversarial")["E"]
    assert np.isfinite(adversarial).all()
    assert (adversarial == 0).any()
    assert np.signbit(adversarial[adversarial == 0]).any()
    assert np.abs(adversarial).max() > 1e7
    assert np.abs(adversarial[adversarial != 0]).min() < 1e-90
    special = draw_inputs(P.signature, 1, "special")["E"]
    assert np.isnan(special).any()
    assert np.isinf(special).any()
