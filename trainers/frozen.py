"""Parameters that a model was given and that never change: whoever builds it again has them again.

Snapshots and weight files hold their digest in their stead. Of a large model with small adapters, that is most of it.
"""

import hashlib
from collections.abc import Mapping
from functools import cached_property

import torch
from torch import Tensor, nn

from trainers.errors import DataError


class Frozen(nn.Parameter):
    """A parameter that is not trained."""

    def __new__(cls, data: Tensor, requires_grad: bool = False) -> "Frozen":
        return super().__new__(cls, data, requires_grad=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the bytes, in hex; taken once."""
        values = self.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        return hashlib.sha256(values.numpy().data).hexdigest()


def freeze(model: nn.Module) -> None:
    """Let every parameter be frozen, on the memory that it has."""
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            setattr(module, name, Frozen(parameter.detach()))


def frozen(model: nn.Module) -> dict[str, Frozen]:
    """The frozen parameters by name."""
    return {name: parameter for name, parameter in model.named_parameters() if isinstance(parameter, Frozen)}


def trained(model: nn.Module) -> list[nn.Parameter]:
    """All other parameters."""
    return [parameter for parameter in model.parameters() if not isinstance(parameter, Frozen)]


def changing(model: nn.Module, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those tensors, named as in `weights` or `state_dict`, that are no frozen parameters."""
    kept = frozen(model)
    return {name: tensor for name, tensor in tensors.items() if name.removeprefix("parameters.") not in kept}


def frozen_digest(model: nn.Module) -> str | None:
    """SHA-256 over names and bytes of the frozen parameters, in name order; None if there are none."""
    lines = [f"{name} {parameter.digest}\n" for name, parameter in sorted(frozen(model).items())]
    return hashlib.sha256("".join(lines).encode()).hexdigest() if lines else None


def check_frozen(model: nn.Module, digest: str | None) -> None:
    """Raise DataError unless the frozen parameters are those of this digest."""
    if frozen_digest(model) != digest:
        raise DataError(
            "The frozen weights are not those that the others were trained on; build the model from the same file."
        )
