"""Products with weights: of one row without gradients, as decoding makes them, compiled, near the speed of memory."""

import torch
from torch import Tensor, nn
from torch.nn.functional import linear


class Projection(nn.Linear):
    """A linear layer without a bias, whose product is `project`."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        return project(inputs, self.weight)


def project(inputs: Tensor, weight: Tensor) -> Tensor:
    """Inputs (…, width) times the transpose of weight (outputs, width): (…, outputs).

    For one row torch's product reads weights at half the speed of this one.
    """
    if inputs.numel() != weight.shape[1] or not _plain(inputs) or not _plain(weight):
        return linear(inputs, weight)
    from trainers.models.row_product import row_product  # numba loads slowly

    row, matrix = inputs.detach().reshape(-1).numpy(), weight.detach().numpy()
    return torch.from_numpy(row_product(row, matrix)).view(*inputs.shape[:-1], -1)


def _plain(tensor: Tensor) -> bool:
    """Whether compiled code can read it and nobody wants a gradient through it."""
    wanted = tensor.requires_grad and torch.is_grad_enabled()
    readable = tensor.device.type == "cpu" and tensor.dtype == torch.float32 and tensor.is_contiguous()
    return readable and not wanted and not torch.is_autocast_enabled("cpu") and not torch.compiler.is_compiling()
