"""Another view of a buffer's memory, for the threads that carry it."""

import torch
from torch import Tensor


def writable(buffer: Tensor) -> Tensor:
    """The same elements of a CPU tensor, to be written even if it comes from inference mode or wants a gradient."""
    if not buffer.numel():
        return buffer
    return torch.from_numpy(buffer.detach().view(torch.uint8).numpy()).view(buffer.dtype)
