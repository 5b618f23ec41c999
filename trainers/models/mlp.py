"""A multi-layer perceptron for tables."""

from itertools import pairwise

from torch import Tensor, nn


class Mlp(nn.Module):
    """Maps (batch, features) to (batch, outputs) through `layers` hidden layers of `width` units each."""

    def __init__(self, features: int, outputs: int, width: int = 64, layers: int = 2, dropout: float = 0.0) -> None:
        super().__init__()
        sizes = [features] + [width] * layers
        hidden = [nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Dropout(dropout)) for a, b in pairwise(sizes)]
        self.layers = nn.Sequential(*hidden, nn.Linear(sizes[-1], outputs))

    def forward(self, table: Tensor) -> Tensor:
        result: Tensor = self.layers(table)
        return result
