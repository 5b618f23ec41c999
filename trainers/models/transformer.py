"""A decoder-only transformer as language models have it now, small enough to read at one sitting.

Rotary positions (arXiv 2104.09864), grouped-query attention (2305.13245), RMSNorm (1910.07467), SwiGLU (2002.05202),
one matrix for embedding and output (1608.05859).
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, linear, scaled_dot_product_attention, silu


class Transformer(nn.Module):
    """Maps tokens (batch, time) of int64 to logits (batch, time, vocabulary) for the token that follows each.

    heads: query heads, each of width / heads (an even number); key_value_heads: how many keys and values they share.
    Raises ValueError with a sentence for sizes that don't divide.
    """

    def __init__(
        self,
        vocabulary: int,
        width: int = 128,
        layers: int = 4,
        heads: int = 4,
        key_value_heads: int = 2,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        _check_sizes(width, heads, key_value_heads)
        self.head_width = width // heads
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, key_value_heads, dropout) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-6)
        self._initialise(layers)

    def forward(self, tokens: Tensor) -> Tensor:
        rotation = rotations(tokens.shape[1], self.head_width, tokens.device)
        hidden = self.embedding(tokens)
        for block in self.blocks:
            hidden = block(hidden, rotation)
        return linear(self.norm(hidden), self.embedding.weight)

    def _initialise(self, layers: int) -> None:
        """Normal weights; those that write to the residual stream are smaller the more layers add to it (GPT-2)."""
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                residual = name.endswith(("output.weight", "down.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers) if residual else 0.02)


class Block(nn.Module):
    """Attention and a feed-forward net, each normalised before and added to the residual stream."""

    def __init__(self, width: int, heads: int, key_value_heads: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(width, eps=1e-6)
        self.attention = Attention(width, heads, key_value_heads, dropout)
        self.feed_forward_norm = nn.RMSNorm(width, eps=1e-6)
        self.feed_forward = SwiGLU(width)
        self.dropout = dropout

    def forward(self, hidden: Tensor, rotation: Tensor) -> Tensor:
        hidden = hidden + self._drop(self.attention(self.attention_norm(hidden), rotation))
        return hidden + self._drop(self.feed_forward(self.feed_forward_norm(hidden)))

    def _drop(self, change: Tensor) -> Tensor:
        return dropout(change, self.dropout, self.training)


class Attention(nn.Module):
    """Causal attention in which groups of query heads share keys and values."""

    def __init__(self, width: int, heads: int, key_value_heads: int, dropout: float) -> None:
        super().__init__()
        self.head_width = width // heads
        shared = key_value_heads * self.head_width
        self.queries = nn.Linear(width, width, bias=False)
        self.keys = nn.Linear(width, shared, bias=False)
        self.values = nn.Linear(width, shared, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.dropout = dropout

    def forward(self, hidden: Tensor, rotation: Tensor) -> Tensor:
        queries = rotate(self._by_head(self.queries(hidden)), rotation)
        keys = rotate(self._by_head(self.keys(hidden)), rotation)
        values = self._by_head(self.values(hidden))
        dropped = self.dropout if self.training else 0.0
        attended = scaled_dot_product_attention(
            queries, keys, values, is_causal=True, enable_gqa=True, dropout_p=dropped
        )
        result: Tensor = self.output(attended.transpose(1, 2).flatten(2))
        return result

    def _by_head(self, projected: Tensor) -> Tensor:
        """(batch, time, heads × head_width) as (batch, heads, time, head_width)."""
        batch, time, width = projected.shape
        return projected.view(batch, time, width // self.head_width, self.head_width).transpose(1, 2)


class SwiGLU(nn.Module):
    """A gated feed-forward net."""

    def __init__(self, width: int) -> None:
        super().__init__()
        inner = inner_width(width)
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        result: Tensor = self.down(silu(self.gate(hidden)) * self.up(hidden))
        return result


def inner_width(width: int) -> int:
    """Of a gated feed-forward net: 8/3 of the outer width, rounded up to a multiple of 32."""
    return -(-8 * width // (3 * 32)) * 32


def rotations(time: int, head_width: int, device: torch.device, base: float = 10_000.0) -> Tensor:
    """Unit complex numbers (time, head_width / 2) of angle position × base^(-2i / head_width)."""
    frequencies = base ** (-torch.arange(0, head_width, 2, device=device) / head_width)
    angles = torch.arange(time, device=device)[:, None] * frequencies
    return torch.polar(torch.ones_like(angles), angles)


def rotate(heads: Tensor, rotation: Tensor) -> Tensor:
    """Turn each pair (2i, 2i + 1) of (…, time, head_width) by its position's angle, as one complex product."""
    pairs = torch.view_as_complex(heads.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * rotation).flatten(-2).to(heads.dtype)


def _check_sizes(width: int, heads: int, key_value_heads: int) -> None:
    if width % (2 * heads):
        raise ValueError(f"model.width is {width}; it must be a multiple of 2 × model.heads = {2 * heads}.")
    if heads % key_value_heads:
        raise ValueError(f"model.heads is {heads}; it must be a multiple of model.key_value_heads = {key_value_heads}.")
