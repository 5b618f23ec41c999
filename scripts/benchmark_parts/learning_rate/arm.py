"""An arm: an optimizer and a learning-rate policy that train a task, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time
from typing import Any

import torch
from benchmark_parts.learning_rate.tasks import Task
from benchmark_parts.learning_rate.training import MakeOptimizer, Training

from orchestrator.learning_rate import drive, make_policy

Row = dict[str, Any]


@dataclass(frozen=True)
class Arm:
    """`policy` is what `make_policy` takes; arms of one family are one peer's grid."""

    name: str
    family: str
    role: str  # "method", "fixed rate" (the method without its search) or "peer"
    optimizer: MakeOptimizer
    policy: dict[str, Any]

    def train(self, task: Task, steps: int, seed: int) -> Row:
        """Train the task from the seed's start for a budget of `steps`; losses are means, times CPU seconds.

        `test_loss_at_budget` is what it had when all its steps, those of the search too, were as many as the budget.
        `test_curve` goes with `curve_steps`, steps in all; a search's own steps aren't on it.
        """
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)
        training = Training(task, steps, seed, self.optimizer)
        policy = make_policy(self.policy, steps, seed)
        begin = process_time()
        history = drive(
            policy,
            training.step,
            training.optimizer,
            *training.states,
            validate=training.validate if self.role == "method" else None,
        )
        seconds = process_time() - begin - training.watch_seconds
        controller = seconds - training.step_seconds - training.late_validation_seconds
        return {
            "task": task.label,
            "seed": seed,
            "arm": self.name,
            "family": self.family,
            "role": self.role,
            "steps": steps,
            "total_steps": training.taken,
            "rate": max(history.rates),
            "validation_loss": training.validate(),
            "test_loss": training.at_budget if training.taken == steps else training.evaluate("test"),
            "test_loss_at_budget": training.at_budget,
            "cpu_seconds": seconds,
            "controller_cpu_seconds": controller,
            "curve_steps": [steps for steps, _ in training.curve],
            "test_curve": [loss for _, loss in training.curve],
        }
