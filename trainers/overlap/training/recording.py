"""One step of a model looked at: in whose call each parameter is first used, and in which order gradients come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn import Parameter
from torch.utils._python_dispatch import TorchDispatchMode

from trainers.errors import OverlapError
from trainers.frozen import frozen


@dataclass(frozen=True)
class Recording:
    """What a step showed, by names; "" is the model itself.

    calls: modules in the order in which they were first called. places: for each parameter, the module in whose call
    it is first used; None is outside of all. ready: parameters in the order in which their gradients were complete.
    """

    calls: tuple[str, ...]
    places: dict[str, str | None]
    ready: tuple[str, ...]

    def waits(self, names: tuple[str, ...]) -> str | None:
        """The first of the calls in which any of these parameters is used."""
        order = (None, *self.calls)
        return min((self.places[name] for name in names), key=order.index)


def record(model: nn.Module, step: Callable[[], object]) -> Recording:
    """Watch `step`, a forward and backward pass. Raises OverlapError for a parameter that gets no gradient."""
    names = {parameter: name for name, parameter in trainable(model).items()}
    called: dict[str, None] = {}
    calls: list[str] = []
    places: dict[str, str | None] = {}
    ready: list[str] = []
    with _calls(model, calls, called), _arrivals(names, ready), _Uses(names, calls, places):
        step()
    for name in names.values():
        if name not in ready:
            raise OverlapError(
                f"The parameter {name} got no gradient, so its sum over ranks would never come; freeze it or use it."
            )
    return Recording(tuple(called), places, tuple(dict.fromkeys(ready)))  # accumulated ones come several times


def trainable(model: nn.Module) -> dict[str, Parameter]:
    """The parameters that get gradients, by name."""
    kept = frozen(model)
    return {name: each for name, each in model.named_parameters() if each.requires_grad and name not in kept}


class _Uses(TorchDispatchMode):
    """Notes the call under way when a parameter is first given to any operation."""

    def __init__(self, names: dict[Parameter, str], calls: list[str], places: dict[str, str | None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._names, self._calls, self._places = names, calls, places

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for tensor in _tensors((args, kwargs or {})):
            name = self._names.get(tensor)  # type: ignore[call-overload]
            if name is not None and name not in self._places:
                self._places[name] = self._calls[-1] if self._calls else None
        return func(*args, **(kwargs or {}))


def _tensors(tree: Any) -> Iterator[Tensor]:
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, list | tuple | dict):
        for each in tree.values() if isinstance(tree, dict) else tree:
            yield from _tensors(each)


@contextmanager
def _calls(model: nn.Module, calls: list[str], called: dict[str, None]) -> Iterator[None]:
    """Keep the names of the modules that are being called in `calls`, the innermost last, and of all in `called`."""

    def begins(name: str) -> None:
        calls.append(name)
        called.setdefault(name)

    with ExitStack() as stack:
        for name, module in model.named_modules():
            begin = module.register_forward_pre_hook(lambda *_, name=name: begins(name))
            end = module.register_forward_hook(lambda *_: _forget_last(calls), always_call=True)
            stack.callback(begin.remove)
            stack.callback(end.remove)
        yield


def _forget_last(calls: list[str]) -> None:
    """A hook that returned anything would change what the module gives."""
    calls.pop()


@contextmanager
def _arrivals(names: dict[Parameter, str], ready: list[str]) -> Iterator[None]:
    """Add the names of parameters to `ready` as their gradients are complete."""
    with ExitStack() as stack:
        for parameter, name in names.items():
            handle = parameter.register_post_accumulate_grad_hook(lambda _, name=name: ready.append(name))
            stack.callback(handle.remove)
        yield
