"""A decoder-only transformer whose feed-forward nets are mixtures of experts, in every layer or every few."""

import math

from comm_plans.runtime.all_to_all.exchange import Exchange
from trainers.experts.mixture import MixtureOfExperts
from trainers.models.transformer import Transformer, inner_width


class MoeTransformer(Transformer):
    """Maps tokens (batch, time) of int64 to logits (batch, time, vocabulary), as `Transformer` does.

    exchange: carries tokens between the ranks that hold the experts. experts: of one layer, over all ranks; each token
    goes to `top_k` of them. every: layers from one mixture to the next; the others keep their dense net.
    Raises ValueError with a sentence for sizes that don't fit.
    """

    def __init__(
        self,
        vocabulary: int,
        exchange: Exchange,
        width: int = 128,
        layers: int = 4,
        heads: int = 4,
        key_value_heads: int = 2,
        dropout: float = 0.0,
        experts: int = 8,
        top_k: int = 2,
        every: int = 1,
    ) -> None:
        super().__init__(vocabulary, width, layers, heads, key_value_heads, dropout)
        _check_sizes(layers, every)
        for block in list(self.blocks)[every - 1 :: every]:
            mixture = MixtureOfExperts(width, inner_width(width), experts, top_k, exchange)
            mixture.initialise(0.02, 0.02 / math.sqrt(2 * layers))  # as the dense nets have it
            block.feed_forward = mixture


def _check_sizes(layers: int, every: int) -> None:
    if not 1 <= every <= layers:
        raise ValueError(f"model.every is {every}; it must be at least 1 and at most model.layers = {layers}.")
