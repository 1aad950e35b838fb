"""Matrix products of every rank, linear layers, and their accumulators."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.test_import_torch.oracle import FLOATS, agrees, randn, randomise, text


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 5), (5, 4)),
        ((5,), (5,)),
        ((5,), (5, 4)),
        ((3, 5), (5,)),
        ((2, 3, 5), (2, 5, 4)),
        ((2, 3, 5), (5, 4)),
        ((3, 5), (2, 5, 4)),
        ((2, 3, 5), (5,)),
        ((5,), (2, 5, 4)),
        ((2, 1, 3, 5), (6, 5, 4)),
        ((1, 3, 5), (2, 5, 4)),
        ((3, 1), (1, 4)),
        ((1, 5), (5, 1)),
    ],
    ids=str,
)
def test_matmul_of_every_rank(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    agrees(torch.matmul, randn(*left), randn(*right, seed=1), scale=4)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_products_in_every_dtype(dtype: torch.dtype) -> None:
    a, b = randn(3, 5, dtype=dtype), randn(5, 4, dtype=dtype)
    batch = randn(2, 4, 3, dtype=dtype)
    bias = randn(4, dtype=dtype)

    def products(a: torch.Tensor, b: torch.Tensor, batch: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            a @ b,
            torch.mm(a, b),
            torch.mv(b, bias),
            torch.dot(bias, bias),
            torch.bmm(batch, batch.mT),
            torch.addmm(bias, a, b),
            torch.addmm(bias, a, b, beta=0.5, alpha=2),
            torch.addmm(bias, a, b, beta=0, alpha=0.3),
            torch.baddbmm(batch.sum(2, keepdim=True), batch, batch.mT),
            torch.addmv(b.sum(1), b, bias),
        )

    agrees(products, a, b, batch, bias, scale=8)


def test_linear_with_and_without_bias() -> None:
    for dtype in FLOATS:
        model = randomise(nn.Sequential(nn.Linear(5, 7, dtype=dtype), nn.Linear(7, 3, bias=False, dtype=dtype)))
        agrees(model, randn(2, 4, 5, dtype=dtype), scale=16)
    agrees(randomise(nn.Linear(5, 3)), randn(5), scale=4)


def test_integer_products_stay_integers() -> None:
    n = torch.arange(12).reshape(3, 4)
    agrees(lambda n: n @ n.T, n)


def test_a_product_is_one_expression_and_a_transposed_operand_no_copy() -> None:
    a, b = randn(4, 8), randn(6, 8)
    assert text(lambda a, b: a @ b.T, a, b) == (
        "L^{4}_{a=0}L^{6}_{c=0}L^{8}_{d=0}[D^{f32,g}_{a,c}=D^{f32,g}_{a,c}+A^{f32,g}_{a,d}*C^{f32,g}_{c,d};];"
    )


def test_a_half_product_accumulates_in_f32() -> None:
    a, b = randn(4, 8, dtype=torch.float16), randn(8, 6, dtype=torch.float16)
    assert text(torch.matmul, a, b) == (
        "L^{4}_{a=0}L^{6}_{c=0}L^{8}_{d=0}"
        "[D^{f32,g}_{a,c}=D^{f32,g}_{a,c}+cast_f32(A^{f16,g}_{a,d})*cast_f32(C^{f16,g}_{d,c});];"
        "L^{4}_{a=0}L^{6}_{c=0}[E^{f16,g}_{a,c}=cast_f16(D^{f32,g}_{a,c});];"
    )
