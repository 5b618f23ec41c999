"""From live objects to a `Snapshot` and back: parameters, buffers, optimizer, loss scaler, random generators."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.optim import Optimizer

from trainers.frozen import changing, check_frozen, frozen_digest
from trainers.random_state import random_state, set_random_state
from trainers.sharding import shards
from trainers.snapshot import RANDOM, Snapshot

Json = dict[str, Any]
_TENSOR = "tensor:"  # how the JSON side names a tensor of the other side


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter and buffer once, in name order, buffers that `state_dict` leaves out included."""
    named = {f"parameters.{name}": parameter.detach() for name, parameter in model.named_parameters()}
    named |= {f"buffers.{name}": buffer for name, buffer in model.named_buffers()}
    return dict(sorted(named.items()))


def capture(
    model: nn.Module, optimizer: Optimizer, scaler: GradScaler, step: int, reuse: Snapshot | None = None
) -> Snapshot:
    """Copy the state to CPU memory; `reuse` gives up its tensors to the copy where they fit."""
    tensors = changing(model, weights(model))
    optimizer_values = _take_tensors(optimizer.state_dict(), "optimizer", tensors)
    own = _shard_names(model, optimizer, tensors)
    random_tensors, random_values = random_state()
    tensors |= {f"{RANDOM}.{name}": tensor for name, tensor in random_tensors.items()}
    values = {"step": step, "optimizer": optimizer_values, "scaler": scaler.state_dict(), RANDOM: random_values}
    values |= {"shards": own, "frozen": frozen_digest(model)}
    return Snapshot(_copies(tensors, reuse.tensors if reuse else {}), values)


def reinstate(snapshot: Snapshot, model: nn.Module, optimizer: Optimizer, scaler: GradScaler) -> int:
    """Put everything back to what `capture` saw, in place where memory is already there; returns the step.

    Raises ValueError when the snapshot is of another model, DataError when only its frozen parameters are others.
    """
    live = changing(model, weights(model))
    _check_same_model(snapshot, live)
    check_frozen(model, snapshot.values.get("frozen"))
    _take_tensors(optimizer.state_dict(), "optimizer", live)
    _copy_all([(live[name], tensor) for name, tensor in snapshot.tensors.items() if name in live])
    optimizer.load_state_dict(_put_tensors(snapshot.values["optimizer"], _live_or_copy(live, snapshot.tensors)))
    if scaler.is_enabled():
        scaler.load_state_dict(snapshot.values["scaler"])
    own = {name.split(".", 1)[1]: tensor for name, tensor in snapshot.tensors.items() if name.startswith(f"{RANDOM}.")}
    set_random_state(own, snapshot.values[RANDOM])
    return int(snapshot.values["step"])


def _shard_names(model: nn.Module, optimizer: Optimizer, names: Iterable[str]) -> list[str]:
    """Names of sharded parameters, and of what the optimizer has for them, among `names`."""
    sharded = {model.get_parameter(name): f"parameters.{name}" for name in shards(model)}
    held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    places = tuple(f"optimizer.state.{place}." for place, parameter in enumerate(held) if parameter in sharded)
    return [name for name in names if name in sharded.values() or name.startswith(places)]


def _check_same_model(snapshot: Snapshot, live: dict[str, Tensor]) -> None:
    kept = {name: tensor for name, tensor in snapshot.tensors.items() if name.startswith(("parameters.", "buffers."))}
    for name in sorted(live.keys() | kept.keys()):
        here, there = (tensors[name].shape if name in tensors else None for tensors in (live, kept))
        if here != there:
            raise ValueError(
                f"The snapshot has {name} of shape {_shape(there)}, the model of shape {_shape(here)}; "
                "restore it with the configuration it was taken with."
            )


def _shape(shape: torch.Size | None) -> str:
    return "absent" if shape is None else str(tuple(shape))


def _take_tensors(tree: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """A copy of `tree` in JSON values; its tensors go to `tensors` under dotted names that the copy mentions.

    Dictionaries become lists of pairs, because an optimizer's keys are integers and JSON's are not.
    """
    if isinstance(tree, Tensor):
        tensors[name] = tree.detach()
        return _TENSOR + name
    if isinstance(tree, dict):
        return {"pairs": [[key, _take_tensors(value, f"{name}.{key}", tensors)] for key, value in tree.items()]}
    if isinstance(tree, list | tuple):
        return [_take_tensors(value, f"{name}.{place}", tensors) for place, value in enumerate(tree)]
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    raise TypeError(f"{name} holds a {type(tree).__name__}; a snapshot keeps tensors, numbers, text, lists and dicts.")


def _put_tensors(values: Any, find: Callable[[str], Tensor]) -> Any:
    """The inverse of `_take_tensors`, up to tuples that became lists."""
    if isinstance(values, str) and values.startswith(_TENSOR):
        return find(values.removeprefix(_TENSOR))
    if isinstance(values, dict):
        return {key: _put_tensors(value, find) for key, value in values["pairs"]}
    if isinstance(values, list):
        return [_put_tensors(value, find) for value in values]
    return values


def _live_or_copy(live: dict[str, Tensor], kept: dict[str, Tensor]) -> Callable[[str], Tensor]:
    """Where an optimizer finds its tensors again: the ones it holds already, else a copy that it may write to."""

    def find(name: str) -> Tensor:
        return live[name] if name in live else kept[name].clone()

    return find


def _copies(tensors: dict[str, Tensor], old: dict[str, Tensor]) -> dict[str, Tensor]:
    copies = {name: _room_for(tensor, old.get(name)) for name, tensor in tensors.items()}
    _copy_all([(copies[name], tensor) for name, tensor in tensors.items()])
    return copies


def _room_for(tensor: Tensor, old: Tensor | None) -> Tensor:
    if old is not None and old.shape == tensor.shape and old.dtype == tensor.dtype:
        return old
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)


def _copy_all(pairs: list[tuple[Tensor, Tensor]]) -> None:
    with torch.no_grad():
        for into, tensor in pairs:
            into.copy_(tensor, non_blocking=True)
    if any(tensor.is_cuda for pair in pairs for tensor in pair):
        torch.cuda.synchronize()
