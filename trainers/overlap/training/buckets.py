"""A bucket of gradients: views of one buffer that is summed over ranks at once, and its way through a step."""

from __future__ import annotations

from collections.abc import Collection
from itertools import accumulate
from threading import Event

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import Parameter

from trainers.errors import OverlapError


class Bucket:
    """Parameters, by name, whose gradients are averaged and applied together.

    shared: those that all ranks have alike. own: those of this rank alone, which are not averaged here.
    """

    def __init__(self, shared: dict[str, Parameter], own: dict[str, Parameter]) -> None:
        self._names = {parameter: name for name, parameter in (shared | own).items()}
        self.parameters = list(self._names)
        self.settled = Event()  # its gradients are averaged and, where it steps alone, applied
        self.settled.set()
        self.awaited = True  # whether whoever computes has waited for that
        self._views = _views(list(shared.values()))
        self._flats = list({id(view._base): view._base for view in self._views.values()}.values())
        self._missing = set(self.parameters)

    @property
    def complete(self) -> bool:
        """Whether all gradients of this step are there."""
        return not self._missing

    @property
    def missing(self) -> list[str]:
        """Names of parameters whose gradients are not there."""
        return [name for parameter, name in self._names.items() if parameter in self._missing]

    def begin(self) -> None:
        """Expect the gradients of a step."""
        self._missing = set(self.parameters)

    def take(self, parameter: Parameter) -> None:
        """Put a gradient into the buffer, divided by the number of ranks as DDP does it before it sums."""
        if not self.awaited:
            raise OverlapError(
                f"The model used {self._names[parameter]} before its last step was done, elsewhere "
                "than in the step that was looked at; train it with overlap=off."
            )
        view = self._views.get(parameter)
        if view is not None and parameter.grad is not None:
            torch.mul(parameter.grad, 1 / dist.get_world_size(), out=view)
            parameter.grad = view
        self._missing.discard(parameter)

    def reduce(self) -> list[dist.Work]:
        """Start the sums."""
        self.settled.clear()
        self.awaited = False
        return [dist.all_reduce(flat, async_op=True) for flat in self._flats]

    def release(self) -> None:
        """Give the gradients up, as `zero_grad` does."""
        for parameter in self.parameters:
            parameter.grad = None


def _views(parameters: Collection[Parameter]) -> dict[Parameter, Tensor]:
    """A place for each gradient, laid out as its parameter is, in one buffer for each type of numbers."""
    views: dict[Parameter, Tensor] = {}
    for kind in dict.fromkeys((each.dtype, each.device) for each in parameters):
        alike = [each for each in parameters if (each.dtype, each.device) == kind]
        *begins, size = accumulate((each.numel() for each in alike), initial=0)
        flat = torch.empty(size, dtype=kind[0], device=kind[1])
        for begin, each in zip(begins, alike, strict=True):
            views[each] = flat.as_strided(each.size(), each.stride(), begin)
    return views
