"""Ways to attend side by side on one text: each decodes the same tokens after the same prompt, as if it had said them.

A prompt is stored once. Then every method gets a copy of the cache and decodes the tokens that follow; what it reads is
judged by the exact softmax of its own queries, and what it predicts by full attention's predictions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import thread_time

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import kl_div

from trainers.generation.evaluation.attained import Attained
from trainers.generation.evaluation.decoder import Decoder, predictions
from trainers.generation.evaluation.prefilled import Prefilled
from trainers.generation.sparse_attention.dense_first import DenseFirst
from trainers.generation.sparse_attention.full import Full
from trainers.generation.sparse_attention.h2o import H2O
from trainers.generation.sparse_attention.method import Method
from trainers.generation.sparse_attention.oracle import OracleTopK
from trainers.generation.sparse_attention.quest import Quest
from trainers.generation.sparse_attention.snapkv import AdaKV, PyramidKV, SnapKV
from trainers.generation.sparse_attention.streaming import StreamingLLM
from trainers.models.transformer import Transformer


@dataclass(frozen=True)
class Row:
    """One line of a comparison: what layers that aren't always dense read, and what the model predicted.

    read: mean tokens that a key-value head reads; needed: that a head would read by itself, where a method knows.
    mass_p5: 5th percentile over heads and steps. kl: mean divergence from full attention's predictions, nats;
    perplexity: of the text; top1_agreement: how often the likeliest token is full attention's. seconds: a step's
    choosing and attending, in the time of this thread.
    """

    name: str
    read: float
    needed: float | None
    mass_mean: float
    mass_p5: float
    kl: float
    perplexity: float
    top1_agreement: float
    seconds: float


class Comparison:
    """Of methods on one text. following: at least two tokens; each but the last is put in, what follows it predicted.

    full: the row of full attention, which is taken first. dense_layers: of every method the layers that read all.
    """

    def __init__(self, model: Transformer, prompt: Prefilled, following: Sequence[int], dense_layers: int = 2) -> None:
        self.layers = len(model.blocks)
        self._model, self._prompt, self._following, self._dense_layers = model, prompt, following, dense_layers
        self._expected: Tensor | None = None
        self.full = self.row("full", Full())

    def row(self, name: str, method: Method) -> Row:
        """Decode by a method, whose layers before `dense_layers` read all."""
        found = Attained(self._dense_layers)
        method = DenseFirst(method, self._dense_layers)
        decoder = Decoder(self._model, self._prompt, len(self._following), method, found, clock=thread_time)
        predicted = predictions(decoder, self._following)
        self._expected = predicted if self._expected is None else self._expected
        return _row(name, found, decoder.attending / len(predicted), predicted, self._expected, self._following)


def rivals(budget: int, layers: int) -> dict[str, Method]:
    """Methods of a fixed budget, tokens a key-value head."""
    return {
        "oracle top-k": OracleTopK(budget),
        "Quest": Quest(budget),
        "Quest + sinks and recent": Quest(budget, sinks=16, recent=64),
        "SnapKV": SnapKV(budget),
        "PyramidKV": PyramidKV(budget, layers),
        "Ada-KV": AdaKV(budget),
        "StreamingLLM": StreamingLLM(budget),
        "H2O": H2O(budget),
    }


def _row(
    name: str, found: Attained, seconds: float, predicted: Tensor, expected: Tensor, following: Sequence[int]
) -> Row:
    told = predicted.gather(1, torch.tensor(following[1:], device=predicted.device)[:, None])
    return Row(
        name=name,
        read=float(np.mean(found.read)),
        needed=float(np.mean(found.needed)) if found.needed else None,
        mass_mean=found.mass_mean,
        mass_p5=found.mass_p5,
        kl=float(kl_div(predicted, expected, reduction="batchmean", log_target=True)),
        perplexity=float((-told.mean()).exp()),
        top1_agreement=float((predicted.argmax(-1) == expected.argmax(-1)).float().mean()),
        seconds=seconds,
    )
