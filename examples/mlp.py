"""A two-layer perceptron with GELU."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.up = nn.Linear(features, hidden)
        self.activation = nn.GELU()
        self.down = nn.Linear(hidden, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.activation(self.up(x)))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(16, 32)]


def get_init_inputs() -> list[int]:
    return [32, 64]
