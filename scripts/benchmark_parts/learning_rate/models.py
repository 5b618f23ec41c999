"""Small networks of every usual kind: what each task trains."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn


def mlp(sizes: list[int], activation: type[nn.Module] = nn.ReLU, norm: bool = False) -> nn.Sequential:
    """Linear layers of these sizes; between them the activation, after batch norm if wanted."""
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes[:-1]):
        layers += [nn.Linear(before, after), *([nn.BatchNorm1d(after)] if norm else []), activation()]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


def convnet(side: int, channels: list[int], norm: bool, dropout: float = 0.0) -> nn.Sequential:
    """Convolutions of 3×3, each followed by halving; images of side×side come as vectors, ten classes go out."""
    layers: list[nn.Module] = [nn.Unflatten(1, (1, side, side))]
    for before, after in pairwise([1, *channels]):
        layers += [nn.Conv2d(before, after, 3, padding=1, bias=not norm), *([nn.BatchNorm2d(after)] if norm else [])]
        layers += [nn.ReLU(), nn.MaxPool2d(2)]
        side //= 2
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(dropout), nn.Linear(channels[-1] * side**2, 10))


class NextSymbol(nn.Module):
    """The symbol after a window, from embeddings side by side and one residual layer."""

    def __init__(self, symbols: int, context: int, embedding: int = 12, width: int = 96) -> None:
        super().__init__()
        self.embedding = nn.Embedding(symbols, embedding)
        self.first = nn.Linear(context * embedding, width)
        self.second = nn.Linear(width, width)
        self.last = nn.Linear(width, symbols)

    def forward(self, windows: Tensor) -> Tensor:
        hidden = torch.relu(self.first(self.embedding(windows.long()).flatten(1)))
        return self.last(hidden + torch.relu(self.second(hidden)))


class Recurrent(nn.Module):
    """A GRU over symbols: at every place the one that follows."""

    def __init__(self, symbols: int, embedding: int = 24, width: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(symbols, embedding)
        self.gru = nn.GRU(embedding, width, batch_first=True)
        self.last = nn.Linear(width, symbols)

    def forward(self, windows: Tensor) -> Tensor:
        return self.last(self.gru(self.embedding(windows.long()))[0])


class Transformer(nn.Module):
    """A pre-norm decoder over symbols with learned places: at every place the symbol that follows."""

    def __init__(self, symbols: int, context: int, width: int = 48, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        self.places = nn.Parameter(0.02 * torch.randn(context, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.last = nn.Linear(width, symbols)

    def forward(self, windows: Tensor) -> Tensor:
        hidden = self.embedding(windows.long()) + self.places
        for block in self.blocks:
            hidden = block(hidden)
        return self.last(self.norm(hidden))


class Block(nn.Module):
    """Causal self-attention and a layer of four times the width, each added to what came in."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attend = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.widen = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, hidden: Tensor) -> Tensor:
        parts = self.attend(self.norms[0](hidden)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        hidden = hidden + self.project(seen.transpose(1, 2).flatten(2))
        return hidden + self.widen(self.norms[1](hidden))


class Flight(nn.Module):
    """Carrier, origin and destination embedded, beside the numbers of a flight; one number goes out."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.names = nn.ModuleList([nn.Embedding(16, 4), nn.Embedding(3, 2), nn.Embedding(105, 8)])
        self.layers = mlp([4 + 2 + 8 + 4, width, width, 1])

    def forward(self, rows: Tensor) -> Tensor:
        known = [names(rows[:, place].long()) for place, names in enumerate(self.names)]
        return self.layers(torch.cat([*known, rows[:, 3:]], dim=1))
