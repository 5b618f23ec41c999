"""A prompt that is stored once: keys and values of every layer, from which any number of methods is decoded."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from trainers.generation.attention import WINDOW
from trainers.models.transformer import Transformer


@dataclass(frozen=True)
class Prefilled:
    """keys, values: (layers, key_value_heads, tokens, head_width).

    windows: queries of the last tokens, (layers, heads, at most 64, head_width), for methods that judge by them.
    """

    keys: Tensor
    values: Tensor
    windows: Tensor

    @property
    def tokens(self) -> int:
        return self.keys.shape[2]


@torch.no_grad()
def prefill(model: Transformer, prompt: Sequence[int], part: int = 512) -> Prefilled:
    """Store a prompt, `part` tokens at a time."""
    device = model.embedding.weight.device
    tokens = torch.tensor(prompt, device=device)
    storing = _Storing(model, len(tokens), device)
    for positions in torch.arange(len(tokens), device=device).split(part):
        storing.go_on(positions)
        model.hidden(tokens[None, positions], positions, storing)
    return Prefilled(storing.keys, storing.values, storing.windows)


class _Storing:
    """The `Attend` of a prompt's parts, each of which sees those before it."""

    def __init__(self, model: Transformer, tokens: int, device: torch.device) -> None:
        shape = (len(model.blocks), model.key_value_heads, tokens, model.head_width)
        self.keys, self.values = torch.empty(shape, device=device), torch.empty(shape, device=device)
        self.windows = torch.empty(shape[0], model.heads, min(WINDOW, tokens), model.head_width, device=device)

    def go_on(self, positions: Tensor) -> None:
        """Let the next part be at these positions."""
        self._positions, self._end = positions, int(positions[-1]) + 1
        later = torch.arange(self._end, device=positions.device) > positions[:, None]
        self._mask = torch.zeros(later.shape, device=positions.device).masked_fill_(later, -torch.inf)

    def __call__(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        self.keys[layer, :, self._positions], self.values[layer, :, self._positions] = keys[0], values[0]
        self.windows[layer] = torch.cat([self.windows[layer], queries[0]], 1)[:, -self.windows.shape[2] :]
        stored = self.keys[None, layer, :, : self._end], self.values[None, layer, :, : self._end]
        return scaled_dot_product_attention(queries, *stored, self._mask, enable_gqa=True)
