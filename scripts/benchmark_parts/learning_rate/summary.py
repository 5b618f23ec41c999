"""What the runs say about the method: against the best peer of each task, over long runs, and against fixed rates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from benchmark_parts.learning_rate.arm import Row

SOFT = "test_loss"  # search on top of the budget
HARD = "test_loss_at_budget"  # search within it
METHOD = "AutoLRS"


@dataclass(frozen=True)
class Results:
    """The rows of one part of the benchmark, a run each."""

    rows: Sequence[Row]

    @property
    def tasks(self) -> list[str]:
        return _unique(row["task"] for row in self.rows)

    @property
    def families(self) -> list[str]:
        return _unique(row["family"] for row in self.rows)

    @property
    def peers(self) -> list[str]:
        return _unique(row["family"] for row in self.rows if row["role"] == "peer")

    @property
    def fixed_rates(self) -> list[str]:
        return _unique(row["family"] for row in self.rows if row["role"] == "fixed rate")

    def steps(self, task: str) -> int:
        """The task's budget."""
        return next(int(row["steps"]) for row in self.rows if row["task"] == task)

    def chosen(self, task: str, family: str) -> list[Row]:
        """A family's row of each seed: that of its member with the lowest validation loss."""
        members = [row for row in self.rows if row["task"] == task and row["family"] == family]
        by_seed = [[row for row in members if row["seed"] == seed] for seed in _unique(row["seed"] for row in members)]
        return [min(tried, key=lambda row: row["validation_loss"]) for tried in by_seed]

    def losses(self, task: str, family: str, which: str = SOFT) -> list[float]:
        """Test losses, one a seed."""
        return [float(row[which]) for row in self.chosen(task, family)]

    def best(self, task: str, families: Iterable[str]) -> str:
        """The family of lowest mean test loss, in hindsight."""
        return min(families, key=lambda family: fmean(self.losses(task, family)))

    def comparison(self, task: str, which: str = SOFT) -> Comparison:
        """The method beside the best peer of a task."""
        peer = self.best(task, self.peers)
        return Comparison(peer, self.losses(task, METHOD, which), self.losses(task, peer))

    def excess_over_fixed(self, task: str, family: str) -> float:
        """Share by which a family's mean loss lies above that of the best fixed rate, in hindsight."""
        best = self.losses(task, self.best(task, self.fixed_rates))
        return fmean(self.losses(task, family)) / fmean(best) - 1

    def mean_rank(self, family: str) -> float:
        """Mean over tasks of the place (from 1) among the method and all peers, by mean test loss."""
        return fmean(self._rank(task, family) for task in self.tasks)

    def _rank(self, task: str, family: str) -> int:
        losses = {each: fmean(self.losses(task, each)) for each in (METHOD, *self.peers)}
        return 1 + sum(loss < losses[family] for loss in losses.values())


@dataclass(frozen=True)
class Comparison:
    """Test losses of the method and of a peer, seed by seed."""

    peer: str
    ours: Sequence[float]
    theirs: Sequence[float]

    @property
    def excess(self) -> float:
        """Share by which the method's mean loss lies above the peer's."""
        return fmean(self.ours) / fmean(self.theirs) - 1

    @property
    def at_or_below(self) -> bool:
        """Whether the mean difference between seeds is no larger than its standard error."""
        differences = [ours - theirs for ours, theirs in zip(self.ours, self.theirs, strict=True)]
        error = stdev(differences) / math.sqrt(len(differences)) if len(differences) > 1 else 0.0
        return fmean(differences) <= error


def summarise(usual: Results, long: Results, timed: Sequence[Row]) -> dict[str, Any]:
    """The summary's keys, over the tasks that count. `timed`: rows of the method that are long enough to time."""
    soft = [usual.comparison(task) for task in usual.tasks]
    hard = [usual.comparison(task, HARD) for task in usual.tasks]
    ours = [row for row in usual.rows if row["family"] == METHOD]
    return {
        "tasks": len(usual.tasks),
        "tasks_at_or_below_best_peer": sum(each.at_or_below for each in soft),
        "worst_excess": max(each.excess for each in soft),
        "tasks_at_or_below_best_peer_hard_budget": sum(each.at_or_below for each in hard),
        "worst_excess_hard_budget": max(each.excess for each in hard),
        "mean_rank": usual.mean_rank(METHOD),
        "mean_rank_of_next": min(map(usual.mean_rank, usual.peers)),
        "long_horizon_excess_by_task": {task: long.comparison(task).excess for task in long.tasks},
        "worst_regret_to_fixed_rate": max(usual.excess_over_fixed(task, METHOD) for task in usual.tasks),
        "worst_regret_of_fixed_rates": {
            family: max(usual.excess_over_fixed(task, family) for task in usual.tasks) for family in usual.fixed_rates
        },
        "controller_cpu_share": max(row["controller_cpu_seconds"] / row["cpu_seconds"] for row in timed),
        "total_steps_ratio": fmean(row["total_steps"] / row["steps"] for row in ours),
        "worst_total_steps_ratio": max(row["total_steps"] / row["steps"] for row in ours),
    }


def _unique(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))
