"""Which token follows: the likeliest, or one drawn by the request's own random numbers."""

from collections.abc import Sequence as Listed

import torch
from torch import Tensor

from trainers.generation.sequence import Sequence

FEW = 256  # likeliest tokens that are looked at first; they nearly always hold top_p


def choose(logits: Tensor, sequences: Listed[Sequence]) -> Tensor:
    """A token for each sequence (sequences,) from its row of logits (sequences, vocabulary), on their device."""
    chosen = logits.argmax(-1)
    for row, sequence in enumerate(sequences):
        if temperature := sequence.request.temperature:
            chosen[row] = draw(logits[row], temperature, sequence.request.top_p, sequence.random.random())
    return chosen


def draw(logits: Tensor, temperature: float, top_p: float, uniform: float) -> int:
    """The token at which the cumulative probability of those kept passes `uniform` (in [0, 1)) of their sum."""
    probabilities = (logits.double() / temperature).softmax(-1)
    kept, tokens = nucleus(probabilities, top_p) if top_p < 1 else (probabilities, torch.arange(len(logits)))
    cumulative = kept.cumsum(0)
    place = int(torch.searchsorted(cumulative, uniform * float(cumulative[-1]), right=True))
    return int(tokens[min(place, len(tokens) - 1)])


def nucleus(probabilities: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    """The fewest likeliest tokens that hold `top_p`: their probabilities, falling, and which they are."""
    looked_at = min(FEW, len(probabilities))
    while True:
        kept, tokens = probabilities.topk(looked_at)
        before = kept.cumsum(0) - kept
        if looked_at == len(probabilities) or before[-1] + kept[-1] >= top_p:
            count = int((before < top_p).sum())
            return kept[:count], tokens[:count]
        looked_at = min(8 * looked_at, len(probabilities))
