"""What an optimizer is made from: a model's trained parameters, in groups where the optimizer asks for these."""

from collections.abc import Callable, Iterable
from typing import Any

from torch import nn
from torch.optim import Optimizer

from trainers.frozen import trained

MakeOptimizer = Callable[[Iterable[Any]], Optimizer]


def parameters_for(optimizer: MakeOptimizer, model: nn.Module) -> Iterable[Any]:
    """The trained parameters, or what `groups_of` of the optimizer's class makes of the model, if it has that."""
    made = getattr(optimizer, "func", optimizer)  # the class within a partial
    groups_of: Callable[[nn.Module], Iterable[Any]] = getattr(made, "groups_of", trained)
    return groups_of(model)
