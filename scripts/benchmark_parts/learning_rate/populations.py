"""Searches that train many at once, through Ray Tune, beside the method: ASHA, PBT and PB2, all their steps counted.

ASHA looks for the peak of a cosine; PBT and PB2 change the rate as they go. They may spend about what a tuned grid of
five spends; what they really took is in the rows. PBT and PB2 warm up and hold the rate that they are told.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from time import process_time
from typing import Any

import torch
from benchmark_parts.learning_rate.arm import Row
from benchmark_parts.learning_rate.arms import ADAMW_PEAKS, WARM_UP, adamw
from benchmark_parts.learning_rate.summary import Results
from benchmark_parts.learning_rate.tasks import Task
from benchmark_parts.learning_rate.training import Training

from orchestrator.cluster.connection import ClusterOptions, connect
from orchestrator.learning_rate.schedules import Cosine, Linear, Schedule
from orchestrator.sweep.populations import Sweep, sweep

ROUNDS = 16
SCRIPTS = str(Path(__file__).parents[2])  # where Ray's workers find this


@dataclass(frozen=True)
class PopulationArm:
    """`trainings` is how many ASHA begins with, or the size of a population."""

    name: str
    search: str
    trainings: int
    role = "population"

    def train(self, task: Task, steps: int, seed: int) -> Row:
        """Train from the seed's start, each to at most `steps` rounded down to whole rounds; validation picks one."""
        whole = steps // ROUNDS * ROUNDS
        space = {"rate": (min(ADAMW_PEAKS), max(ADAMW_PEAKS))}
        options = Sweep(self.search, space, self.trainings, whole, ROUNDS, seed, (SCRIPTS,))
        make = partial(InRounds, task, whole, seed, self._shape(whole))
        begin = process_time()
        with connect(ClusterOptions(workers=1)):
            swept = sweep(make, options)
        best = make()
        best.load_state(swept.state)
        return {
            "task": task.label,
            "seed": seed,
            "arm": self.name,
            "family": self.name,
            "role": self.role,
            "steps": steps,
            "total_steps": swept.steps,
            "rate": swept.settings["rate"],
            "validation_loss": swept.loss,
            "test_loss": best.training.evaluate("test"),
            "test_loss_at_budget": None,
            "cpu_seconds": None,
            "controller_cpu_seconds": process_time() - begin,
            "curve_steps": [],
            "test_curve": [],
        }

    def _shape(self, steps: int) -> Schedule:
        warmup = int(WARM_UP * steps)
        return Cosine(1.0, steps, warmup) if self.search == "asha" else Linear(1.0, steps, warmup, 0)


class InRounds:
    """A training of a task as `sweep` takes it up. `shape`: the rate's course, which the setting is multiplied by."""

    def __init__(self, task: Task, steps: int, seed: int, shape: Schedule) -> None:
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)
        self.training = Training(task, steps, seed, adamw)
        self._shape, self._step = shape, 0

    def train(self, settings: Mapping[str, float], steps: int) -> float:
        for _ in range(steps):
            for group in self.training.optimizer.param_groups:
                group["lr"] = settings["rate"] * self._shape.rate(self._step)
            self.training.step()
            self._step += 1
        return self.training.validate()

    def state(self) -> bytes:
        parts = (self.training.optimizer, *self.training.states)
        content = io.BytesIO()
        torch.save([self._step, *(part.state_dict() for part in parts)], content)
        return content.getvalue()

    def load_state(self, state: bytes) -> None:
        self._step, *kept = torch.load(io.BytesIO(state), weights_only=True)
        for part, values in zip((self.training.optimizer, *self.training.states), kept, strict=True):
            part.load_state_dict(values)


def populations() -> list[PopulationArm]:
    """A training of ASHA takes about half of its steps, so that ten cost what a population of five does."""
    return [PopulationArm("ASHA", "asha", 10), PopulationArm("PBT", "pbt", 5), PopulationArm("PB2", "pb2", 5)]


def population_figures(rows: list[Row], usual: Results) -> dict[str, Any]:
    """Beside the method on the same tasks and seeds: how far above it they end, and their steps in runs."""
    families = list(dict.fromkeys(row["family"] for row in rows))
    return {
        "population_excess_by_task": {family: _excess(_of(family, rows), usual) for family in families},
        "population_total_steps_ratio": {
            family: fmean(row["total_steps"] / row["steps"] for row in _of(family, rows)) for family in families
        },
    }


def _of(family: str, rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["family"] == family]


def _excess(rows: list[Row], usual: Results) -> dict[str, float]:
    tasks = dict.fromkeys(row["task"] for row in rows)
    ours = {(row["task"], row["seed"]): row["test_loss"] for row in usual.rows if row["role"] == "method"}
    shared = {task: [row for row in rows if row["task"] == task] for task in tasks}
    return {
        task: fmean(row["test_loss"] for row in own) / fmean(ours[task, row["seed"]] for row in own) - 1
        for task, own in shared.items()
    }
