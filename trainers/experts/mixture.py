"""A feed-forward layer of experts: every token goes to the few that its router chooses, wherever they are.

Capacity is unlimited: no token is dropped, however skewed the choice.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from comm_plans.runtime.all_to_all.exchange import Alone, Exchange
from trainers.experts.dispatch import carried
from trainers.experts.experts import Experts
from trainers.experts.grouping import Grouping, expert_of_rows
from trainers.experts.load import Load
from trainers.experts.router import Router, balance_loss

Counts = NDArray[np.int64]


class MixtureOfExperts(nn.Module):
    """Maps (…, width) to (…, width). exchange: carries tokens between the ranks that hold the experts.

    After a forward pass `balance` is the loss that keeps experts evenly loaded; `load` adds up passes in training mode.
    Raises ValueError with a sentence for numbers of experts that cannot work.
    """

    def __init__(self, width: int, inner: int, experts: int, top_k: int, exchange: Exchange) -> None:
        super().__init__()
        _check_sizes(experts, top_k)
        self.router = Router(width, experts, top_k)
        self.experts = Experts(experts, width, inner)
        self.load = Load()
        self.balance = torch.zeros(())
        self._exchange = exchange

    def initialise(self, inner_deviation: float, output_deviation: float) -> None:
        """Normal weights, the same on any number of ranks."""
        nn.init.normal_(self.router.weight, std=inner_deviation)
        self.experts.initialise(inner_deviation, output_deviation)

    def forward(self, hidden: Tensor) -> Tensor:
        rows = hidden.flatten(0, -2)
        routing = self.router(rows)
        assigned = routing.chosen.flatten()
        exchange = Alone() if self.experts.whole else self._exchange
        table = exchange.table(assigned.bincount(minlength=self.experts.rows))
        self.balance = balance_loss(routing.probabilities, table.sum(0))
        questions = _as_it_travels(rows)[:, None].expand(-1, self.router.top_k, -1).flatten(0, 1)
        answers = self._answers(questions, Grouping.by(assigned), table, exchange)
        answers = answers.unflatten(0, routing.chosen.shape) * routing.gates[..., None]
        result: Tensor = answers.sum(1).to(hidden.dtype).view(hidden.shape)
        return result

    def _answers(self, rows: Tensor, by_expert: Grouping, table: Counts, exchange: Exchange) -> Tensor:
        """What its expert makes of each row (assignments, width). table: assignments (ranks, experts)."""
        traffic, row_bytes = self._traffic(table), rows.shape[1] * rows.element_size()
        load = self.load if self.training else Load()
        load.add(table, traffic, row_bytes, float(self.balance.detach()))
        with load.planning.running(torch.device("cpu")):
            route = exchange.route(traffic, row_bytes)
        arrived = carried(by_expert.made(rows), route, load.transfer)
        answers = self._of_own_experts(arrived, table[:, self.experts.held])
        return by_expert.undone(carried(answers, route.back, load.transfer))

    def _traffic(self, table: Counts) -> Counts:
        """Rows from rank to rank: assignments summed over the experts of each rank."""
        held = self.experts.held_by_rank
        return np.add.reduceat(table, np.cumsum([0, *held[:-1]]), axis=1)

    def _of_own_experts(self, rows: Tensor, counts: Counts) -> Tensor:
        """What the experts here make of rows that lie by rank and then by expert. counts: (ranks, experts here)."""
        by_expert = Grouping.by(expert_of_rows(counts).to(rows.device))
        return by_expert.undone(self.experts(by_expert.made(rows), counts.sum(0).tolist()))


def _check_sizes(experts: int, top_k: int) -> None:
    if not 1 <= top_k <= experts:
        raise ValueError(f"model.top_k is {top_k}; it must be at least 1 and at most model.experts = {experts}.")


def _as_it_travels(rows: Tensor) -> Tensor:
    """Rows in the precision that experts compute in: it halves the traffic."""
    device = rows.device.type
    return rows.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else rows
