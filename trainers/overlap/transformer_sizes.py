"""Sizes of transformers that NanoFlow was measured with, for the cost model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TransformerSizes:
    """What a decoder-only transformer with gated feed-forward layers consists of.

    hidden, inner: widths of the layer and of its feed-forward part; devices: over which it is cut (tensor parallel);
    nominal: parameters that a token uses, by the model's name; experts, active_experts: of each feed-forward part.
    """

    hidden: int
    inner: int
    layers: int
    heads: int
    key_value_heads: int
    vocabulary: int
    nominal: float
    devices: int
    experts: int = 1
    active_experts: int = 1
    element_bytes: int = 2

    @property
    def key_value_width(self) -> int:
        """Width of keys and values together."""
        return 2 * self.hidden * self.key_value_heads // self.heads

    @property
    def token_bytes(self) -> int:
        """Bytes of one token's keys and values in all layers."""
        return self.key_value_width * self.layers * self.element_bytes

    @property
    def parameters(self) -> int:
        """All of them but norms and routers; input and output embedding counted apart."""
        return self.layers * self._layer(self.experts) + 2 * self.vocabulary * self.hidden

    @property
    def active_parameters(self) -> int:
        """Those that a token is multiplied with."""
        return self.layers * self._layer(self.active_experts) + self.vocabulary * self.hidden

    def _layer(self, experts: int) -> int:
        attention = self.hidden * (2 * self.hidden + self.key_value_width)
        return attention + experts * 3 * self.hidden * self.inner


MODELS = {
    "LLaMA-2-70B": TransformerSizes(8192, 28672, 80, 64, 8, 32000, 70e9, 8),
    "LLaMA-3-70B": TransformerSizes(8192, 28672, 80, 64, 8, 128256, 70e9, 8),
    "Qwen2-72B": TransformerSizes(8192, 29568, 80, 64, 8, 152064, 72e9, 8),
    "DeepSeek-67B": TransformerSizes(8192, 22016, 95, 64, 8, 102400, 67e9, 8),
    "Mixtral-8x7B": TransformerSizes(4096, 14336, 32, 32, 8, 32000, 12.9e9, 8, experts=8, active_experts=2),
    "LLaMA-3-8B": TransformerSizes(4096, 14336, 32, 32, 8, 128256, 8e9, 1),
    "LLaMA-3-405B": TransformerSizes(16384, 53248, 126, 128, 8, 128256, 405e9, 16),
}
