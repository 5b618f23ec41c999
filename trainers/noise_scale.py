"""The gradient noise scale: from how many samples a step on, more of them hardly bring it further.

B = S / |G|², S being the trace of the covariance of single samples' gradients and G the true gradient. Both are
estimated without bias from squared norms of gradients of few and of many samples (McCandlish et al., arXiv 1812.06162,
section 2.2 and appendix A.1).
"""

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import Parameter
from torch.nn.utils import parameters_to_vector

from trainers.communication import sum_over_ranks


def noise_scale(few: float, many: float, small: int, big: int) -> float:
    """B in samples, `big` at most: a larger one cannot be told from so few.

    few: mean squared norm of gradients of `small` samples; many: the squared norm of one of `big` samples.
    """
    gradient = (big * many - small * few) / (big - small)
    variance = max((few - many) / (1 / small - 1 / big), 0.0)
    return variance / gradient if variance < big * gradient else big


def squared_norms(
    parameters: Sequence[Parameter], backward: Callable[[int], object], batches: int
) -> tuple[float, float]:
    """(few, many) of `noise_scale`, equal on all ranks: of single batches, and of all of them on all ranks together.

    backward: leaves in the parameters this rank's own gradients of a batch, by its number. Called on all ranks.
    """
    total = [torch.zeros_like(each) for each in parameters]
    few = 0.0
    for number in range(batches):
        backward(number)
        found = [(mean, each.grad) for mean, each in zip(total, parameters, strict=True) if each.grad is not None]
        few += _squared_norm([gradient for _, gradient in found])
        for mean, gradient in found:
            mean += gradient
    ranks = dist.get_world_size() if dist.is_initialized() else 1
    whole = parameters_to_vector(total)
    if ranks > 1:
        dist.all_reduce(whole)
    (few,) = sum_over_ranks([few], whole.device)
    return few / (batches * ranks), _squared_norm([whole]) / (batches * ranks) ** 2


def _squared_norm(tensors: Sequence[Tensor]) -> float:
    return float(torch.stack([each.double().square().sum() for each in tensors]).sum())
