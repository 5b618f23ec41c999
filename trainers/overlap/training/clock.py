"""When the parts of training steps begin and end, seen from hooks on the model and told by a pipeline.

The forward pass is cut where modules wait for buckets, the backward pass where blocks of gradients are complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from time import perf_counter

from torch import nn
from torch.nn import Parameter

from trainers.overlap.training.layout import BucketLayout
from trainers.overlap.training.recording import trainable

Span = tuple[float, float]
Hook = Callable[..., None]


class Clock:
    """Notes what `mark` is told, and forward and backward passes block by block while `watching`.

    places: the modules at whose calls the forward pass is cut, in the order of these calls.
    """

    def __init__(self, model: nn.Module, blocks: Sequence[BucketLayout], places: Sequence[str]) -> None:
        self._model, self._blocks, self._places = model, blocks, places
        self._notes: list[tuple[str, float]] = []
        self._cut = 0  # of the forward pass: how many places it has come to
        self._missing: list[set[Parameter]] = []
        self._open = ""  # what is being computed

    def mark(self, words: str) -> None:
        """`NAME begins` or `NAME ends`: now."""
        self._notes.append((words, perf_counter()))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look at the passes inside. A pipeline's own hooks are to be there already: waiting is part of no block."""
        with ExitStack() as stack:
            for number, place in enumerate(self._places):
                module = self._model.get_submodule(place)
                arrive = module.register_forward_pre_hook(self._arriving(number), prepend=True)
                begin = module.register_forward_pre_hook(self._beginning(number))
                stack.callback(arrive.remove)
                stack.callback(begin.remove)
            stack.callback(self._model.register_forward_hook(self._turning).remove)
            parameters = trainable(self._model)
            self._whole = [{parameters[name] for name in block.parameters} for block in self._blocks]
            for number, block in enumerate(self._whole):
                for parameter in block:
                    handle = parameter.register_post_accumulate_grad_hook(self._arrived(number))
                    stack.callback(handle.remove)
            yield

    def spans(self) -> dict[str, list[Span]]:
        """When each operation began and ended, time after time, in seconds of this process's clock."""
        begun: dict[str, float] = {}
        spans: dict[str, list[Span]] = {}
        for words, at in sorted(self._notes, key=lambda note: note[1]):
            name, _, what = words.rpartition(" ")
            if what == "begins":
                begun[name] = at
            elif name in begun:
                spans.setdefault(name, []).append((begun.pop(name), at))
        return spans

    def _switch(self, name: str) -> None:
        """End what is being computed and begin something else, or nothing."""
        if self._open:
            self.mark(f"{self._open} ends")
        if name:
            self.mark(f"{name} begins")
        self._open = name

    def _arriving(self, number: int) -> Hook:
        def hook(*_: object) -> None:
            if number == self._cut:
                self._switch("")

        return hook

    def _beginning(self, number: int) -> Hook:
        def hook(*_: object) -> None:
            if number == self._cut:
                self._switch(f"forward {number}")
                self._cut += 1

        return hook

    def _turning(self, *_: object) -> None:
        self._cut = 0
        self._missing = [set(block) for block in self._whole]
        self._switch("backward 0")

    def _arrived(self, number: int) -> Hook:
        def hook(parameter: Parameter) -> None:
            self._missing[number].discard(parameter)
            if not self._missing[number] and self._open == f"backward {number}":
                last = number + 1 == len(self._missing)
                self._switch("" if last else f"backward {number + 1}")

        return hook
