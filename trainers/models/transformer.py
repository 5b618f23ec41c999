"""A decoder-only transformer as language models have it now, small enough to read at one sitting.

Rotary positions (arXiv 2104.09864), grouped-query attention (2305.13245), RMSNorm (1910.07467), SwiGLU (2002.05202),
one matrix for embedding and output (1608.05859): the Llama architecture, whose published weights fit it as well.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, scaled_dot_product_attention, silu

from trainers.models.projection import Projection, project

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""What a layer's queries (batch, heads, time, head_width) make of keys and values (batch, key_value_heads, time,
head_width), all rotated already: (batch, heads, time, head_width). The first argument is the layer's number."""


@dataclass(frozen=True)
class Sizes:
    """What one layer is made from. Raises ValueError with a sentence for sizes that don't fit."""

    width: int
    heads: int
    key_value_heads: int
    head_width: int
    inner: int
    norm_eps: float
    dropout: float

    def __post_init__(self) -> None:
        if self.heads % self.key_value_heads:
            raise ValueError(
                f"model.heads is {self.heads}; it must be a multiple of model.key_value_heads = {self.key_value_heads}."
            )


class Transformer(nn.Module):
    """Maps tokens (batch, time) of int64 to logits (batch, time, vocabulary) for the token that follows each.

    heads: query heads, each of head_width (even; width / heads if not given); key_value_heads: how many keys and values
    they share. inner: width inside the feed-forward nets. tied: whether the output is the embedding's matrix, else it
    has one of its own. Raises ValueError with a sentence for sizes that don't divide.
    """

    def __init__(
        self,
        vocabulary: int,
        width: int = 128,
        layers: int = 4,
        heads: int = 4,
        key_value_heads: int = 2,
        dropout: float = 0.0,
        head_width: int | None = None,
        inner: int | None = None,
        rope_base: float = 10_000.0,
        norm_eps: float = 1e-6,
        tied: bool = True,
    ) -> None:
        super().__init__()
        self.heads, self.key_value_heads = heads, key_value_heads
        self.head_width = head_width or _even_share(width, heads)
        self.rope_base = rope_base
        inner = inner or inner_width(width)
        sizes = Sizes(width, heads, key_value_heads, self.head_width, inner, norm_eps, dropout)
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(layer, sizes) for layer in range(layers))
        self.norm = nn.RMSNorm(width, eps=norm_eps)
        self.unembedding = None if tied else nn.Linear(width, vocabulary, bias=False)
        self._initialise(layers)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.logits(self.hidden(tokens))

    def hidden(self, tokens: Tensor, positions: Tensor | None = None, attend: Attend | None = None) -> Tensor:
        """What the last layer says of tokens (batch, time): (batch, time, width).

        positions: of the tokens, (time,) or (batch, time); 0, 1, 2 … if not given. attend: who has the keys of earlier
        tokens, for generation; if not given, each token attends to those before it in `tokens`.
        """
        if positions is None:
            positions = torch.arange(tokens.shape[1], device=tokens.device)
        rotation = rotations(positions, self.head_width, self.rope_base)
        hidden: Tensor = self.embedding(tokens)
        for block in self.blocks:
            hidden = block(hidden, rotation, attend)
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits (…, vocabulary) of what follows hidden states (…, width)."""
        matrix = self.embedding if self.unembedding is None else self.unembedding
        return project(self.norm(hidden), matrix.weight)

    def _initialise(self, layers: int) -> None:
        """Normal weights; those that write to the residual stream are smaller the more layers add to it (GPT-2)."""
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                residual = name.endswith(("output.weight", "down.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers) if residual else 0.02)


class Block(nn.Module):
    """Attention and a feed-forward net, each normalised before and added to the residual stream."""

    def __init__(self, layer: int, sizes: Sizes) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(sizes.width, eps=sizes.norm_eps)
        self.attention = Attention(layer, sizes)
        self.feed_forward_norm = nn.RMSNorm(sizes.width, eps=sizes.norm_eps)
        self.feed_forward = SwiGLU(sizes.width, sizes.inner)
        self.dropout = sizes.dropout

    def forward(self, hidden: Tensor, rotation: Tensor, attend: Attend | None = None) -> Tensor:
        hidden = hidden + self._drop(self.attention(self.attention_norm(hidden), rotation, attend))
        return hidden + self._drop(self.feed_forward(self.feed_forward_norm(hidden)))

    def _drop(self, change: Tensor) -> Tensor:
        return dropout(change, self.dropout, self.training)


class Attention(nn.Module):
    """Attention of one layer, causal unless told otherwise; groups of query heads share keys and values."""

    def __init__(self, layer: int, sizes: Sizes) -> None:
        super().__init__()
        self.layer, self.head_width, self.dropout = layer, sizes.head_width, sizes.dropout
        each, shared = sizes.heads * sizes.head_width, sizes.key_value_heads * sizes.head_width
        self.queries = Projection(sizes.width, each)
        self.keys = Projection(sizes.width, shared)
        self.values = Projection(sizes.width, shared)
        self.output = Projection(each, sizes.width)

    def forward(self, hidden: Tensor, rotation: Tensor, attend: Attend | None = None) -> Tensor:
        queries = rotate(self._by_head(self.queries(hidden)), rotation)
        keys = rotate(self._by_head(self.keys(hidden)), rotation)
        values = self._by_head(self.values(hidden))
        attended = (attend or self._causally)(self.layer, queries, keys, values)
        result: Tensor = self.output(attended.transpose(1, 2).flatten(2))
        return result

    def _causally(self, _: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        dropped = self.dropout if self.training else 0.0
        return scaled_dot_product_attention(queries, keys, values, is_causal=True, enable_gqa=True, dropout_p=dropped)

    def _by_head(self, projected: Tensor) -> Tensor:
        """(batch, time, heads × head_width) as (batch, heads, time, head_width)."""
        batch, time, width = projected.shape
        return projected.view(batch, time, width // self.head_width, self.head_width).transpose(1, 2)


class SwiGLU(nn.Module):
    """A gated feed-forward net."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate = Projection(width, inner)
        self.up = Projection(width, inner)
        self.down = Projection(inner, width)

    def forward(self, hidden: Tensor) -> Tensor:
        result: Tensor = self.down(silu(self.gate(hidden)) * self.up(hidden))
        return result


def inner_width(width: int) -> int:
    """Of a gated feed-forward net: 8/3 of the outer width, rounded up to a multiple of 32."""
    return -(-8 * width // (3 * 32)) * 32


def rotations(positions: Tensor, head_width: int, base: float = 10_000.0) -> Tensor:
    """Unit complex numbers of angle position × base^(-2i / head_width), for positions (time,) or (batch, time).

    (time, head_width / 2) or (batch, 1, time, head_width / 2): what `rotate` multiplies with, whatever the head.
    """
    frequencies = base ** (-torch.arange(0, head_width, 2, device=positions.device) / head_width)
    angles = positions[..., None] * frequencies
    turned = torch.polar(torch.ones_like(angles), angles)
    return turned if positions.dim() == 1 else turned[:, None]


def rotate(heads: Tensor, rotation: Tensor) -> Tensor:
    """Turn each pair (2i, 2i + 1) of (…, time, head_width) by its position's angle, as one complex product."""
    pairs = torch.view_as_complex(heads.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * rotation).flatten(-2).to(heads.dtype)


def _even_share(width: int, heads: int) -> int:
    """The width of one head: an even number, since positions turn pairs."""
    if width % (2 * heads):
        raise ValueError(f"model.width is {width}; it must be a multiple of 2 × model.heads = {2 * heads}.")
    return width // heads
