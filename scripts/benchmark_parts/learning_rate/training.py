"""One training of a task in this process, in the form that `drive` takes: a step, states to rewind, a validation.

Steps that are rewound count like all others: `taken` counts every one. While it trains, the test loss of the first
samples is noted at even distances since the last rewind, and that of the whole test split when `taken` reaches the
task's budget; neither is seen by what trains, nor disturbs it, nor is in the times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any

import torch
from benchmark_parts.learning_rate.tasks import Task
from torch import Tensor, nn

CURVE_POINTS = 20  # within the budget
CURVE_SAMPLES = 500
CHUNK = 500  # samples evaluated at once
REFRESHING = 20  # batches from which the statistics of batch norm are taken for averaged weights
DIVERGED = 1e6  # stands for a loss that isn't finite

Parameters = list[nn.Parameter]
MakeOptimizer = Callable[[Parameters, int], torch.optim.Optimizer]  # from the parameters and the budget of steps


class Training:
    """The task's network from a seed's start, and its batches in the seed's order: the same for every arm."""

    def __init__(self, task: Task, steps: int, seed: int, make_optimizer: MakeOptimizer) -> None:
        self.task, self.steps, self._splits = task, steps, task.data()
        torch.manual_seed(seed)
        self.model = task.model()
        self.optimizer: Any = make_optimizer(list(self.model.parameters()), steps)
        self.stream = Stream(len(self._splits["train"][0]), task.batch, steps, seed, self._rewound)
        self.states = (self.model, self.stream, DropoutState())
        self.taken = 0
        self.at_budget = math.nan
        self.step_seconds = self.watch_seconds = 0.0
        self._rewound()

    def step(self) -> float:
        """One optimizer step on the next batch; returns its loss."""
        begin = process_time()
        loss = self._loss(*self._batch(next(self.stream)))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.taken += 1
        self.step_seconds += process_time() - begin
        self._watch()
        return loss.item()

    def validate(self) -> float:
        """Mean validation loss."""
        begin = process_time()
        loss = self.evaluate("validation")
        self.late_validation_seconds += process_time() - begin
        return loss

    def evaluate(self, split: str, samples: int | None = None) -> float:
        """Mean loss over the first samples of a split (all unless given), of the averaged weights if there are any."""
        inputs, targets = (part[:samples] for part in self._splits[split])
        with averaged(self.optimizer, self._refresh), evaluating(self.model), torch.inference_mode():
            chunks = zip(inputs.split(CHUNK), targets.split(CHUNK), strict=True)
            total = sum(self._loss(*chunk).item() * len(chunk[0]) for chunk in chunks)
        mean = total / len(inputs)
        return mean if math.isfinite(mean) else DIVERGED

    def _loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        return self.task.loss(self.model(inputs), targets)

    def _batch(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        inputs, targets = self._splits["train"]
        return inputs[chosen], targets[chosen]

    def _rewound(self) -> None:
        """What counts from the last rewind on, which ends a search, begins anew."""
        self.curve: list[tuple[int, float]] = []
        self.late_validation_seconds = 0.0

    def _watch(self) -> None:
        begin = process_time()
        if self.taken % max(1, self.steps // CURVE_POINTS) == 0:
            self.curve.append((self.taken, self.evaluate("test", CURVE_SAMPLES)))
        if self.taken == self.steps:
            self.at_budget = self.evaluate("test")
        self.watch_seconds += process_time() - begin

    def _refresh(self) -> None:
        """Batch norm's statistics for the weights as they are now, from a few training batches."""
        norms = [layer for layer in self.model.modules() if isinstance(layer, nn.modules.batchnorm._BatchNorm)]
        if not norms:
            return
        usual = [norm.momentum for norm in norms]
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # a plain mean over the batches
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            for chosen in self.stream.batches[:REFRESHING]:
                self.model(self._batch(chosen)[0])
        for norm, momentum in zip(norms, usual, strict=True):
            norm.momentum = momentum


class Stream:
    """Batches of sample numbers, every epoch a new permutation; where it stands can be kept and taken up again."""

    def __init__(self, samples: int, batch: int, steps: int, seed: int, on_rewind: Callable[[], None]) -> None:
        generator = torch.Generator().manual_seed(seed)
        epochs = -(-steps * batch // samples)
        order = torch.cat([torch.randperm(samples, generator=generator) for _ in range(epochs)])
        self.batches = order[: steps * batch].view(steps, batch)
        self._position = 0
        self._on_rewind = on_rewind

    def __next__(self) -> Tensor:
        self._position += 1
        return self.batches[self._position - 1]

    def state_dict(self) -> dict[str, int]:
        return {"position": self._position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self._position = state["position"]
        self._on_rewind()


class DropoutState:
    """torch's random state, so that rewound steps drop the same units again."""

    def state_dict(self) -> dict[str, Tensor]:
        return {"state": torch.get_rng_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        torch.set_rng_state(state["state"])


@contextmanager
def averaged(optimizer: Any, refresh: Callable[[], None]) -> Iterator[None]:
    """Within, parameters are the averages that some optimizers keep; afterwards, to the bit, what they were."""
    if not hasattr(optimizer, "eval"):
        yield
        return
    training = optimizer.param_groups[0]["train_mode"]
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    kept = [parameter.detach().clone() for parameter in parameters]
    optimizer.eval()
    refresh()
    yield
    if training:
        optimizer.train()
        for parameter, values in zip(parameters, kept, strict=True):
            parameter.data.copy_(values)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    model.eval()
    yield
    model.train()
