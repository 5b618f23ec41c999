"""Which experts a token goes to, with what weight, and the loss that keeps experts evenly loaded.

Gates of two and more experts are normalised to sum to one (GShard, arXiv 2006.16668, §2.2); the gate of a single one is
its probability (Switch Transformer, arXiv 2101.03961, §2.1), for a constant would leave the router without gradient.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import linear


class Routing(NamedTuple):
    """chosen: experts (tokens, top_k), int64; gates: their weights; probabilities: of all experts (tokens, experts)."""

    chosen: Tensor
    gates: Tensor
    probabilities: Tensor


class Router(nn.Module):
    """Chooses `top_k` of `experts` for rows (tokens, width), in float32 whatever the rest computes in."""

    def __init__(self, width: int, experts: int, top_k: int) -> None:
        super().__init__()
        self.top_k = top_k
        self.weight = nn.Parameter(torch.empty(experts, width))

    def forward(self, rows: Tensor) -> Routing:
        with torch.autocast(rows.device.type, enabled=False):
            probabilities = linear(rows.float(), self.weight.float()).softmax(-1)
        gates, chosen = probabilities.topk(self.top_k, dim=-1)
        if self.top_k > 1:
            gates = gates / gates.sum(-1, keepdim=True)
        return Routing(chosen, gates, probabilities)


def balance_loss(probabilities: Tensor, counts: NDArray[np.int64]) -> Tensor:
    """experts · Σ f·P, f an expert's share of all assignments and P its mean probability; 1 where both are uniform.

    Source: Switch Transformer, §2.2, with all top_k assignments counted. counts: assignments of each expert over all
    ranks, so that the mean of this loss over ranks is that of one rank with all tokens.
    """
    shares = torch.from_numpy(counts / max(1, counts.sum())).to(probabilities)
    return len(counts) * (shares * probabilities.mean(0)).sum()
