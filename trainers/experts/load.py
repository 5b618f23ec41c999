"""What a mixture of experts is asked for and what that costs: skew of its load, seconds of its plans and transfers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trainers.experts.stopwatch import Stopwatch

Counts = NDArray[np.int64]


@dataclass
class Load:
    """One layer's sums over the forward passes of training since it was made."""

    passes: int = 0
    expert_skew: float = 0.0
    rank_skew: float = 0.0
    balance_loss: float = 0.0
    sent_bytes: float = 0.0
    planning: Stopwatch = field(default_factory=Stopwatch)
    transfer: Stopwatch = field(default_factory=Stopwatch)

    def add(self, table: Counts, traffic: Counts, row_bytes: int, balance: float) -> None:
        """One pass. table: assignments (ranks, experts); traffic: rows from rank to rank."""
        self.passes += 1
        self.expert_skew += skew(table.sum(0))
        self.rank_skew += skew(traffic.sum(0))
        self.balance_loss += balance
        self.sent_bytes += float(traffic.sum() - np.trace(traffic)) * row_bytes


def skew(amounts: Counts) -> float:
    """The largest amount as a multiple of the mean; 1 where all are equal."""
    return float(amounts.max() / amounts.mean()) if amounts.any() else 1.0


def summary(loads: Sequence[Load]) -> dict[str, float]:
    """Means over passes: of skews and balance loss also over layers; of seconds and bytes the sum over layers.

    Bytes are those that all ranks together dispatch to others; combining and the gradients' two ways move as many.
    """
    passes = loads[0].passes
    if not passes:
        return {}
    mean = passes * len(loads)
    return {
        "experts/expert_skew": sum(load.expert_skew for load in loads) / mean,
        "experts/rank_skew": sum(load.rank_skew for load in loads) / mean,
        "experts/balance_loss": sum(load.balance_loss for load in loads) / mean,
        "experts/dispatched_bytes": sum(load.sent_bytes for load in loads) / passes,
        "experts/plan_seconds": _seconds(load.planning for load in loads) / passes,
        "experts/transfer_seconds": _seconds(load.transfer for load in loads) / passes,
    }


def _seconds(watches: Iterable[Stopwatch]) -> float:
    return sum(watch.read() for watch in watches)
