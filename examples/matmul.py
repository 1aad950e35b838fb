"""A matrix product."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 128), torch.randn(128, 96)]


def get_init_inputs() -> list[object]:
    return []
