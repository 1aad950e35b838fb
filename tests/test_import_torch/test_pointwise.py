"""Every element-by-element operator computes what PyTorch computes, in every float dtype."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from leir.import_torch.pointwise import POINTWISE
from leir.import_torch.translations import TRANSLATIONS
from tests.test_import_torch.oracle import FLOATS, agrees, randn, refusals, text

aten = torch.ops.aten


def _unary(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    positive = x.abs() + 0.1
    return (
        -x,
        x.exp(),
        positive.log(),
        positive.sqrt(),
        positive.rsqrt(),
        positive.reciprocal(),
        x.square(),
        x.sin(),
        x.cos(),
        (x * 3).floor(),
        (x * 3).ceil(),
        x.erf(),
        x.tanh(),
        x.sigmoid(),
    )


def _activations(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (
        functional.relu(x),
        functional.relu6(x * 4),
        functional.hardtanh(x, -0.3, 0.7),
        functional.hardsigmoid(x * 3),
        functional.hardswish(x * 3),
        functional.leaky_relu(x, 0.1),
        functional.elu(x, 0.7),
        functional.selu(x),
        functional.celu(x, 0.6),
        functional.gelu(x),
        functional.gelu(x, approximate="tanh"),
        functional.silu(x),
        functional.mish(x),
        functional.softplus(x),
        functional.softplus(x, beta=3, threshold=2),
        functional.logsigmoid(x),
        functional.threshold(x, 0.2, -0.4),
        functional.softsign(x),
        functional.tanhshrink(x),
    )


def _binary(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    positive = y.abs() + 0.1
    return (
        x + y,
        torch.add(x, y, alpha=0.3),
        x - y,
        torch.sub(x, y, alpha=2),
        torch.rsub(x, y, alpha=0.3),
        x * y,
        x / positive,
        torch.maximum(x, y),
        torch.minimum(x, y),
        torch.max(x, y),
        torch.min(x, y),
        torch.clamp(x, -positive, positive),
        torch.clamp_min(x, y),
        torch.clamp_max(x, y),
        positive**x,
        torch.addcmul(x, x, y, value=0.3),
        torch.addcdiv(x, x, positive, value=0.3),
        torch.where(x > y, x, y),
        x.masked_fill(x < y, 0.3),
        x.masked_fill(x < y, torch.tensor(2.0)),
    )


def _scalars(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    positive = x.abs() + 0.1
    return (
        x + 0.3,
        x + -2,
        x - 0.3,
        1 - x,
        0.3 - x,
        x * 0.3,
        2 * x,
        x / 3,
        x / 0.3,
        1 / positive,
        x**2,
        x**3,
        x**1,
        positive**0.5,
        positive**-1,
        positive**1.7,
        2**x,
        x.clamp(-0.5, 0.25),
        x.clamp(min=-0.5),
        x.clamp(max=0.3),
        x.clamp_min(0.1),
        x.clamp_max(0.1),
        torch.where(x > 0, x, 0.3),
        torch.where(x > 0.1, 0.3, x),
        torch.where(x > 0.1, 0.3, -0.3).to(x.dtype),
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_elementwise_operators_agree(dtype: torch.dtype) -> None:
    x, y = randn(5, 7, dtype=dtype), randn(5, 7, dtype=dtype, seed=1)
    agrees(lambda x, y: (*_unary(x), *_activations(x), *_binary(x, y), *_scalars(x)), x, y)


def test_comparisons_and_logic() -> None:
    x = torch.tensor([1.0, 2.0, float("nan"), -3.0, 0.1])
    y = torch.tensor([1.0, 3.0, 0.0, -4.0, 0.1])

    def compare(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        both = (x == y, x != y, x < y, x <= y, x > y, x >= y, x == 1, x != 1, x < 2, x <= 2, x > 0.1, x >= 0.1)
        a, b = x < y, x < 2
        return (*both, ~a, a & b, a | b, torch.logical_not(a), torch.logical_and(a, b), torch.logical_or(a, b))

    agrees(compare, x, y)
    agrees(compare, x.half(), y.double())  # promoted to f64
    agrees(compare, x.nan_to_num().int(), y.nan_to_num())
    agrees(compare, x.half(), y.half())  # 0.1 is rounded to f16 before it is compared


def test_casts() -> None:
    def convert(x: torch.Tensor, n: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        targets = (torch.float16, torch.float64, torch.int8, torch.int32, torch.int64, torch.bool)
        return tuple(t.to(target) for t in (x, n, b) for target in targets if t.dtype != target)

    x = torch.tensor([0.0, 1.5, -2.75, 100.25])
    agrees(convert, x, torch.tensor([-3, 0, 7], dtype=torch.int32), torch.tensor([True, False]))


def test_integer_arithmetic_and_promotion() -> None:
    n, m = torch.tensor([-3, 0, 7, 100], dtype=torch.int32), torch.tensor([2, -1, 7, 3], dtype=torch.int64)
    x = randn(4, dtype=torch.float16)
    agrees(lambda n, m: (n + m, n - 2, n * m, n / m, n + 0.5, n.abs(), -n, torch.maximum(n, m), n.clamp(-1, 5), n.sigmoid()), n, m)
    agrees(lambda n, x: (n + x, n * x, torch.where(n > 0, n, x)), n, x)


def test_a_tensor_without_dimensions_does_not_promote() -> None:
    agrees(lambda x, s: (x * s, s - x, x / s), randn(3, 4, dtype=torch.float16), torch.tensor(0.7))


def test_broadcasting_aligns_the_last_dimension() -> None:
    # The paper's translator matches extents as strings, and reads y with the wrong rank here.
    assert text(lambda x, y: x + y, randn(2, 4, 4), randn(4)) == (
        "L^{2}_{a=0}L^{4}_{c=0}L^{4}_{d=0}[D^{f32,g}_{a,c,d}=A^{f32,g}_{a,c,d}+C^{f32,g}_{d};];"
    )
    agrees(lambda x, y: (x + y, y - x), randn(2, 4, 4), randn(4))
    agrees(lambda x, y: x * y, randn(3, 1, 5), randn(2, 1))
    agrees(lambda x, y: x * y, randn(1, 1), randn(4))


def test_special_values() -> None:
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1.0])

    def compute(x: torch.Tensor) -> tuple[Any, ...]:
        return functional.relu(x), x.clamp(-1, 1), functional.leaky_relu(x), torch.maximum(x, -x), functional.softplus(x), x**0.5

    found = agrees(lambda x: tuple(torch.where(y == y, y.clamp(-9, 9), 7.0) for y in compute(x)), x)
    assert len(found.outputs) == 6


def test_prelu_has_a_slope_per_channel() -> None:
    agrees(functional.prelu, randn(2, 3, 4), torch.tensor([0.1, -0.2, 0.3]))
    agrees(functional.prelu, randn(2, 3, 4), torch.tensor([0.25]))


def test_one_expression_per_operator_and_scalars_in_place() -> None:
    assert text(lambda x: functional.relu(x * 2 - 0.5), randn(3)) == (
        "L^{3}_{a=0}[C^{f32,g}_{a}=A^{f32,g}_{a}*2;];"
        "L^{3}_{a=0}[D^{f32,g}_{a}=C^{f32,g}_{a}-0.5;];"
        "L^{3}_{a=0}[E^{f32,g}_{a}=max(D^{f32,g}_{a},0);];"
    )


def test_half_formulas_of_several_roundings_compute_in_f32() -> None:
    x = randn(3, dtype=torch.float16)
    assert (
        text(functional.silu, x)
        == "L^{3}_{a=0}[C^{f16,g}_{a}=cast_f16(cast_f32(A^{f16,g}_{a})*sigmoid(cast_f32(A^{f16,g}_{a})));];"
    )
    assert text(lambda x: x * 0.1, x) == "L^{3}_{a=0}[C^{f16,g}_{a}=cast_f16(cast_f32(A^{f16,g}_{a})*0.1);];"
    assert text(lambda x: x * 0.5, x) == "L^{3}_{a=0}[C^{f16,g}_{a}=A^{f16,g}_{a}*0.5;];"
    assert text(lambda x: x.clamp(0.1, 0.3), x) == "L^{3}_{a=0}[C^{f16,g}_{a}=min(max(A^{f16,g}_{a},0.1),0.3);];"


def test_what_loses_precision_or_has_no_literal_is_refused() -> None:
    for fn in (torch.log1p, torch.expm1, torch.log2, torch.exp2, lambda x: torch.div(x, 2, rounding_mode="floor"), torch.sign):
        (reason,) = refusals(fn, randn(3))
        assert reason.reason == "no translation for this operator"
    (nan,) = refusals(lambda x: x + float("nan"), randn(3))
    assert "nan has no literal" in nan.reason
    n = torch.tensor([1, 2])
    assert [r.reason for r in refusals(lambda n: (n**2, n & n), n)] == [
        "a power of integers",
        "bits of integers; only bool is translated",
    ]
    (boolean,) = refusals(lambda b: b * b, torch.tensor([True, False]))
    assert "of bool" in boolean.reason


def test_the_table_names_operators_that_exist() -> None:
    for name in TRANSLATIONS:
        packet, overload = name.split(".")
        assert overload in getattr(aten, packet).overloads(), name
    assert set(POINTWISE) < set(TRANSLATIONS)
