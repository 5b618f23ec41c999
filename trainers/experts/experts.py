"""The experts of one rank: gated feed-forward nets whose weights lie one above the other."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, silu

from trainers.sharding import Sharded


class Experts(Sharded):
    """`experts` SwiGLU nets (arXiv 2002.05202) over all ranks, from `width` to `inner` and back."""

    def __init__(self, experts: int, width: int, inner: int) -> None:
        super().__init__(experts)
        held = self.held.stop - self.held.start
        self.gate = nn.Parameter(torch.empty(held, inner, width))
        self.up = nn.Parameter(torch.empty(held, inner, width))
        self.down = nn.Parameter(torch.empty(held, width, inner))

    def forward(self, rows: Tensor, counts: Sequence[int]) -> Tensor:
        """Rows (tokens, width) by expert. An expert without any takes part: its gradient is zero, not absent."""
        nets = zip(rows.split(counts), self.gate.unbind(), self.up.unbind(), self.down.unbind(), strict=True)
        return torch.cat(
            [linear(silu(linear(group, gate)) * linear(group, up), down) for group, gate, up, down in nets]
        )

    def initialise(self, inner_deviation: float, output_deviation: float) -> None:
        """Normal weights; an expert's are the same on whichever rank it is."""
        for parameter in (self.gate, self.up, self.down):
            whole = torch.empty(self.rows, *parameter.shape[1:])
            whole.normal_(std=output_deviation if parameter is self.down else inner_deviation)
            parameter.data.copy_(whole[self.held])
