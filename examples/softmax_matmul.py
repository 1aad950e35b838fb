"""Softmax over rows, then a matrix product: the core of attention."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        return torch.softmax(scores, dim=-1) @ values


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 96), torch.randn(96, 32)]


def get_init_inputs() -> list[object]:
    return []
