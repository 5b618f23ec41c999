"""Low-rank adaptation (LoRA, arXiv 2106.09685): small matrices are trained beside weights that stay as they are."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from trainers.frozen import freeze
from trainers.models.lora_options import LoraOptions


class LoraLinear(nn.Module):
    """x ↦ W x + (alpha / rank) · B A x, equation 3 of the paper: W is given, A and B are trained, B begins at zero."""

    def __init__(self, given: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        outputs, inputs = given.weight.shape
        self.weight, self.bias = given.weight, given.bias
        self.down = nn.Parameter(torch.randn(rank, inputs) / math.sqrt(inputs))
        self.up = nn.Parameter(torch.zeros(outputs, rank))
        self.scale = alpha / rank

    def forward(self, inputs: Tensor) -> Tensor:
        return linear(inputs, self.weight, self.bias) + self.scale * linear(linear(inputs, self.down), self.up)

    def merged(self) -> Tensor:
        """The one matrix that does the same."""
        return self.weight + self.scale * self.up @ self.down


def add_lora(model: nn.Module, options: LoraOptions) -> None:
    """Freeze the model, and put adapters on its linear layers of the names in `options`."""
    freeze(model)
    for module in list(model.modules()):
        for name, child in module.named_children():
            if name in options.layers and isinstance(child, nn.Linear):
                setattr(module, name, LoraLinear(child, options.rank, options.alpha))


def merged(model: nn.Module) -> dict[str, Tensor]:
    """The `state_dict` of the model without adapters that computes what this one computes."""
    adapters = {name: module for name, module in model.named_modules() if isinstance(module, LoraLinear)}
    parts = {f"{name}.{part}" for name in adapters for part in ("down", "up")}
    state = {name: tensor for name, tensor in model.state_dict().items() if name not in parts}
    return state | {f"{name}.weight": adapter.merged().detach() for name, adapter in adapters.items()}
