"""Adam with hypergradient descent: the learning rate follows its own gradient while training.

Baydin et al., "Online Learning Rate Adaptation with Hypergradient Descent" (arXiv 1703.04782), algorithm 5 (Adam-HD).
The last step moved the parameters by −rate · direction, so that the loss now changes with that rate by
−gradient · direction.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Optimizer


class HypergradientAdam(Optimizer):
    """Each group's rate is its "lr" plus its "gain", which begins at 0. hypergradient_lr: the rate's own step size."""

    def __init__(
        self,
        params: Iterable[Parameter],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        hypergradient_lr: float = 1e-7,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "hypergradient_lr": hypergradient_lr, "gain": 0.0}
        )

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step along the gradients that are there. Closures are not called."""
        for group in self.param_groups:
            moving = [parameter for parameter in group["params"] if parameter.grad is not None]
            group["gain"] += group["hypergradient_lr"] * sum(self._agreement(parameter) for parameter in moving)
            for parameter in moving:
                direction = self._direction(parameter, parameter.grad, group)
                parameter.add_(direction, alpha=-(group["lr"] + group["gain"]))

    def _agreement(self, parameter: Parameter) -> float:
        """The product of the gradient with the last step's direction: minus the loss's derivative by the rate."""
        direction = self.state[parameter].get("direction")
        if direction is None or parameter.grad is None:
            return 0.0
        return float((parameter.grad * direction).sum())

    def _direction(self, parameter: Parameter, gradient: Tensor, group: dict[str, Any]) -> Tensor:
        """Adam's (arXiv 1412.6980), kept for the next step."""
        state = self.state[parameter]
        if not state:
            state.update(step=0, mean=torch.zeros_like(parameter), square=torch.zeros_like(parameter))
        state["step"] += 1
        (first, second), step = group["betas"], state["step"]
        state["mean"].lerp_(gradient, 1 - first)
        state["square"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
        deviation = (state["square"] / (1 - second**step)).sqrt_().add_(group["eps"])
        state["direction"] = (state["mean"] / (1 - first**step)).div_(deviation)
        direction: Tensor = state["direction"]
        return direction
