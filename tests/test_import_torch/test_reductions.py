"""Sums, means, maxima, softmax and layer norm: values, shapes, dtypes, and the text that they become."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.test_import_torch.oracle import FLOATS, agrees, randn, randomise, refusals, text


def _reductions(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (
        x.sum(),
        x.sum(1),
        x.sum(-1, keepdim=True),
        x.sum((0, -1)),
        x.sum((0, 2), keepdim=True),
        x.sum([]),
        x.mean(),
        x.mean(0),
        x.mean((1, 2)),
        x.mean(-2, keepdim=True),
        x.amax(1),
        x.amax((0, -1), keepdim=True),
        x.amax(),
        x.amin(-1),
        x.max(),
        x.min(),
        x.max(1)[0],
        x.max(-1, keepdim=True).values,
        x.min(0).values,
    )


def _softmaxes(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (
        x.softmax(-1),
        x.softmax(0),
        x.log_softmax(1),
        functional.softmin(x, 2),
        x.softmax(1, dtype=torch.float64),
        x.log_softmax(-1, dtype=torch.float32),
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_reductions_agree(dtype: torch.dtype) -> None:
    agrees(lambda x: (*_reductions(x), *_softmaxes(x)), randn(3, 4, 5, dtype=dtype), scale=8)


def test_reductions_of_integers_and_bools() -> None:
    n = torch.tensor([[1, -2, 100], [7, 0, 3]], dtype=torch.int8)
    agrees(lambda n: (n.sum(), n.sum(0), n.amax(1), n.min(), n.sum(1, dtype=torch.int32), (n > 0).sum(1)), n)
    agrees(lambda n: n.mean(1, dtype=torch.float32), n)
    reasons = refusals(lambda b: (b.amax(0), b.amax(1)), n > 0)
    assert [r.reason for r in reasons] == ["a maximum or minimum in bool"] * 2


def test_reductions_of_a_scalar_and_of_extent_one() -> None:
    agrees(lambda s: (s.sum(), s.mean(), s.amax(), s.softmax(0) + s, s.sum(0)), torch.tensor(1.5))
    agrees(lambda x: (x.sum(1) + 1, x.mean(0), x.amax(1, keepdim=True)), randn(4, 1))


def test_a_nan_and_an_infinity_propagate() -> None:
    x = torch.tensor([[1.0, float("nan"), 2.0], [float("inf"), 1.0, -1.0]])
    agrees(lambda x: torch.where(x.amax(1) == x.amax(1), x.amax(1).clamp(max=9), -5.0), x)


def test_softmax_is_three_expressions() -> None:
    assert text(lambda x: x.softmax(-1), randn(4, 8)) == (
        "L^{4}_{a=0}L^{8}_{c=0}[C^{f32,g}_{a}=max(C^{f32,g}_{a},A^{f32,g}_{a,c});];"
        "L^{4}_{a=0}L^{8}_{c=0}[D^{f32,g}_{a}=D^{f32,g}_{a}+exp(A^{f32,g}_{a,c}-C^{f32,g}_{a});];"
        "L^{4}_{a=0}L^{8}_{c=0}[E^{f32,g}_{a,c}=exp(A^{f32,g}_{a,c}-C^{f32,g}_{a})/D^{f32,g}_{a};];"
    )


def test_half_sums_accumulate_in_f32_and_maxima_do_not() -> None:
    x = randn(4, 8, dtype=torch.float16)
    assert text(lambda x: x.mean(0), x) == (
        "L^{8}_{a=0}L^{4}_{c=0}[C^{f32,g}_{a}=C^{f32,g}_{a}+cast_f32(A^{f16,g}_{c,a});];"
        "L^{8}_{a=0}[D^{f16,g}_{a}=cast_f16(C^{f32,g}_{a}/4);];"
    )
    assert text(lambda x: x.amax(1), x) == "L^{4}_{a=0}L^{8}_{c=0}[C^{f16,g}_{a}=max(C^{f16,g}_{a},A^{f16,g}_{a,c});];"
    agrees(lambda x: x.mean(1) / 4000, randn(4, 64, dtype=torch.float16) * 1000 + 4000)  # the sum overflows f16


def test_layer_norm_agrees() -> None:
    for dtype in FLOATS:
        layer = randomise(nn.LayerNorm([3, 5], dtype=dtype))
        agrees(layer, randn(4, 3, 5, dtype=dtype) * 3 + 1, scale=4)
    agrees(nn.LayerNorm(7, elementwise_affine=False), randn(4, 7))
    agrees(randomise(nn.LayerNorm(7, bias=False, eps=0.1)), randn(2, 3, 7))


def test_half_layer_norm_does_not_overflow() -> None:
    layer = randomise(nn.LayerNorm(64, dtype=torch.float16))
    agrees(layer, randn(2, 64, dtype=torch.float16) * 2000, scale=4)  # squares beyond 65504


def test_layer_norm_is_four_expressions() -> None:
    assert text(randomise(nn.LayerNorm(8)), randn(4, 8)) == (
        "L^{4}_{a=0}L^{8}_{c=0}[E^{f32,g}_{a}=E^{f32,g}_{a}+A^{f32,g}_{a,c};];"
        "L^{4}_{a=0}[F^{f32,g}_{a}=E^{f32,g}_{a}/8;];"
        "L^{4}_{a=0}L^{8}_{c=0}[G^{f32,g}_{a}=G^{f32,g}_{a}+(A^{f32,g}_{a,c}-F^{f32,g}_{a})**2;];"
        "L^{4}_{a=0}L^{8}_{c=0}[H^{f32,g}_{a,c}=(A^{f32,g}_{a,c}-F^{f32,g}_{a})/sqrt(G^{f32,g}_{a}/8+1e-05)"
        "*C^{f32,g}_{c}+D^{f32,g}_{c};];"
    )


def test_the_index_of_a_maximum_is_refused() -> None:
    (reason,) = refusals(lambda x: x.max(1).indices + x.max(1).indices, randn(3, 4))[:1]
    assert reason.op == "aten.max.dim"
    assert reason.reason == "result 1 is used, and only the first has a translation"
    assert refusals(torch.argmax, randn(3, 4))[0].op == "aten.argmax.default"
