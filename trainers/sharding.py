"""Parameters of which each rank holds some rows: told apart, gathered to the whole, cut again, clipped together."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.nn.utils import clip_grad_norm_, clip_grads_with_norm_, get_total_norm


class Sharded(nn.Module):
    """Base of a module whose own parameters are rows (dimension 0) of larger tensors, dealt to ranks in their order.

    `held_by_rank`: rows of each rank; `whole`: whether this rank holds all of them for the moment. Where the number
    does not divide, the first ranks hold one more. Raises ValueError for fewer rows than ranks.
    """

    def __init__(self, rows: int) -> None:
        super().__init__()
        ranks = dist.get_world_size() if dist.is_initialized() else 1
        self.rows, self._rank = rows, dist.get_rank() if dist.is_initialized() else 0
        self.whole = False
        if rows < ranks:
            raise ValueError(f"{rows} rows cannot be dealt to {ranks} ranks: each must get one; use fewer ranks.")
        self._dealt = [rows // ranks + (rank < rows % ranks) for rank in range(ranks)]

    @property
    def held_by_rank(self) -> list[int]:
        """How many rows each rank holds; this one alone counts while it holds them all."""
        return [self.rows] if self.whole else self._dealt

    @property
    def held(self) -> slice:
        """The rows that this rank holds."""
        if self.whole:
            return slice(0, self.rows)
        first = sum(self._dealt[: self._rank])
        return slice(first, first + self._dealt[self._rank])

    def whole_size(self, shard: Tensor) -> int:
        """Elements of the whole tensor."""
        return self.rows * shard[0].numel()

    def gathered(self, shard: Tensor) -> Tensor:
        """All rows, of which every rank gives its own. Collective."""
        parts = [shard.new_empty((count, *shard.shape[1:])) for count in self._dealt]
        parts[self._rank] = shard.detach().contiguous()
        for rank, part in enumerate(parts):
            if len(parts) > 1:
                dist.broadcast(part, src=rank)
        return torch.cat(parts)

    @contextmanager
    def made_whole(self) -> Iterator[None]:
        """Hold all rows inside the block, to be used and not to be trained. Entered on all ranks at once."""
        kept = [(parameter, parameter.data) for parameter in self.parameters(recurse=False)]
        for parameter, shard in kept:
            parameter.data = self.gathered(shard)
        self.whole = True
        try:
            yield
        finally:
            self.whole = False
            for parameter, shard in kept:
                parameter.data = shard


def shards(model: nn.Module) -> dict[str, Sharded]:
    """The module that each sharded parameter belongs to, by the parameter's name."""
    return {
        f"{prefix}.{name}".lstrip("."): module
        for prefix, module in model.named_modules()
        if isinstance(module, Sharded)
        for name, _ in module.named_parameters(recurse=False)
    }


@contextmanager
def made_whole(model: nn.Module) -> Iterator[None]:
    """Inside the block the model works on one rank alone. Entered on all ranks at once."""
    with ExitStack() as stack:
        for module in dict.fromkeys(shards(model).values()):  # in one order on all ranks
            stack.enter_context(module.made_whole())
        yield


def whole_size(model: nn.Module) -> int:
    """Number of parameters of the whole model, shared ones once."""
    sharded = shards(model)
    return sum(
        sharded[name].whole_size(parameter) if name in sharded else parameter.numel()
        for name, parameter in model.named_parameters()
    )


def gathered(model: nn.Module, tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Tensors named as in `weights` or `state_dict`, one after another, each whole. Collective."""
    sharded = shards(model)
    for name, tensor in tensors.items():
        module = sharded.get(name.removeprefix("parameters."))
        yield name, module.gathered(tensor) if module else tensor


def cut(model: nn.Module, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What this rank holds of a whole `state_dict`; a tensor that does not fit the model stays as it is."""
    sharded = shards(model)
    return {
        name: tensor[sharded[name].held] if name in sharded and len(tensor) == sharded[name].rows else tensor
        for name, tensor in state.items()
    }


def clip_gradients(model: nn.Module, limit: float) -> None:
    """Scale all gradients so that their norm over the whole model is at most `limit`. Collective if it is sharded."""
    sharded = shards(model)
    if not sharded or not dist.is_initialized():
        clip_grad_norm_(model.parameters(), limit)
        return
    own, common = _gradients(model, sharded)
    squares = get_total_norm(own).square()
    dist.all_reduce(squares)
    clip_grads_with_norm_(model.parameters(), limit, (get_total_norm(common).square() + squares).sqrt())


def loss_scaler(model: nn.Module, device: torch.device, enabled: bool) -> GradScaler:
    """A scaler of the loss for float16; where a rank skips a step for an overflow in its shards, all skip it."""
    if not (enabled and shards(model) and dist.is_initialized()):
        return GradScaler(device.type, enabled=enabled)
    from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler  # takes seconds to load

    return ShardedGradScaler(device.type, enabled=enabled)


def _gradients(model: nn.Module, sharded: Mapping[str, Sharded]) -> tuple[list[Tensor], list[Tensor]]:
    """Gradients of this rank's rows, and those that all ranks have alike."""
    found: tuple[list[Tensor], list[Tensor]] = [], []
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            found[name not in sharded].append(parameter.grad)
    return found
