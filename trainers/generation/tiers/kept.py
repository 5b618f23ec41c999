"""Keys and values that have left the cache, with all that says whom they fit."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Kept:
    """keys, values: (layers, key_value_heads, tokens, head_width) of these tokens, float32 on the CPU, contiguous.

    model: the `fingerprint` of the weights that they were computed with.
    """

    tokens: tuple[int, ...]
    keys: Tensor
    values: Tensor
    model: str

    @property
    def bytes(self) -> int:
        return self.keys.nbytes + self.values.nbytes + 8 * len(self.tokens)

    def in_common(self, tokens: Sequence[int]) -> int:
        """How many tokens both begin with."""
        pairs = zip(self.tokens, tokens, strict=False)
        return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(self.tokens), len(tokens)))
