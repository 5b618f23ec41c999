"""An optimizer's step taken in parts, bucket by bucket, to the same bits as at once.

That is so where what the optimizer does to a parameter depends on that parameter, its gradient, its state and the
scalars of its group, and where these scalars depend on scalars alone.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from torch.nn import Parameter
from torch.optim import Optimizer

_BY_PARAMETER = {
    f"torch.optim.{name}"
    for name in ("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD")
} | {f"schedulefree.{name}" for name in ("AdamWScheduleFree", "RAdamScheduleFree", "SGDScheduleFree")}


def steps_by_part(optimizer: Optimizer) -> bool:
    """Whether this optimizer is one of those that are known to allow it; a subclass may do anything."""
    kind = type(optimizer)
    place = kind.__module__.split(".")
    package = "torch.optim" if place[:2] == ["torch", "optim"] else place[0]
    return f"{package}.{kind.__name__}" in _BY_PARAMETER


class PartialSteps:
    """Takes the steps of an optimizer in parts. One thread at a time."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self._before: list[dict[str, Any]] = []

    def begin(self, rate: float) -> None:
        """Start a step of all groups at this rate."""
        self._before = [{**group, "lr": rate} for group in self._optimizer.param_groups]

    def step(self, parameters: Collection[Parameter]) -> None:
        """Step these parameters, from the scalars that all parts of this step begin with."""
        chosen = set(parameters)
        groups = self._optimizer.param_groups
        part = [{**group, "params": [each for each in group["params"] if each in chosen]} for group in self._before]
        self._optimizer.param_groups = part
        try:
            self._optimizer.step()
        finally:
            self._optimizer.param_groups = groups
        self._after = part

    def end(self) -> None:
        """All parts are done: the scalars that each of them came to are the optimizer's."""
        for group, after in zip(self._optimizer.param_groups, self._after, strict=True):
            group.update({name: value for name, value in after.items() if name != "params"})
