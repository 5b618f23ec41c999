"""Settings that may change between stretches of steps, as factors of what an optimizer was made with.

weight_decay, momentum (of 1 − momentum, or of 1 − β₁) and batch_size; what isn't named is as configured.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from torch.optim import Optimizer

from trainers.errors import DataError

Settings = Mapping[str, float]
AS_CONFIGURED: Settings = MappingProxyType({})


class OptimizerSettings:
    """Remembers what an optimizer was made with."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self._made_with = [{**group, "params": None} for group in optimizer.param_groups]

    def use(self, settings: Settings) -> None:
        """Set every group to what it was made with, times the factors. DataError where it has no such setting."""
        for group, made_with in zip(self._optimizer.param_groups, self._made_with, strict=True):
            group |= {name: made_with[name] for name in ("weight_decay", "momentum", "betas") if name in made_with}
            if "weight_decay" in settings:
                group["weight_decay"] = self._found(made_with, "weight_decay") * settings["weight_decay"]
            if "momentum" in settings:
                group |= self._forgetting(made_with, settings["momentum"])

    def _forgetting(self, made_with: dict[str, Any], factor: float) -> dict[str, Any]:
        if "betas" in made_with:
            first, *others = made_with["betas"]
            return {"betas": (_forget(first, factor), *others)}
        return {"momentum": _forget(self._found(made_with, "momentum"), factor)}

    def _found(self, made_with: dict[str, Any], name: str) -> float:
        if name not in made_with:
            kind = type(self._optimizer).__name__
            raise DataError(f"lr.also has {name}, which {kind} does not have; take it out, or use another optimizer.")
        return float(made_with[name])


def samples_with(samples: int, settings: Settings) -> int:
    """Samples of a step where `samples` are configured. DataError where that is no whole number."""
    wanted = samples * settings.get("batch_size", 1.0)
    if not wanted.is_integer():
        raise DataError(f"lr.also has batch_size, but {samples} samples a step have no half; make batch_size even.")
    return int(wanted)


def _forget(momentum: float, factor: float) -> float:
    return max(0.0, 1 - (1 - momentum) * factor)
