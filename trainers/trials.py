"""What a rank tries out to see how training goes fastest: timed steps, gradient noise, layouts. It leaves no trace."""

from time import perf_counter

import torch
from torch.nn import Parameter

from trainers.communication import InTurn, Parallel
from trainers.errors import OverlapError
from trainers.noise_scale import noise_scale, squared_norms
from trainers.overlap.training.decision import Decision
from trainers.overlap.training.layout import Layout
from trainers.overlap.training.measuring import Subject
from trainers.overlap.training.partial_steps import steps_by_part
from trainers.overlap.training.pipeline import Pipeline
from trainers.overlap.training.recording import Recording, record, trainable
from trainers.sharding import shards
from trainers.stepper import Stepper


class Trials:
    """Of one rank's stepper. Each is called on all ranks."""

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper

    def seconds(self, steps: int, together: bool) -> list[float]:
        """Seconds of each of so many steps, after one for nothing.

        together: as they are; else this rank computes alone, and no gradient travels.
        """
        stepper = self._stepper
        way = stepper.parallel if together else InTurn(stepper.model)
        with stepper.undone():
            self._take(way, 1)
            return [self._seconds_of(way) for _ in range(steps)]

    def noise_scale(self, batches: int) -> float:
        """The gradient noise scale, in samples, at the present weights, from so many batches of each rank.

        Equal on all ranks.
        """
        stepper = self._stepper
        before, small = stepper.step, stepper.order.batch_size

        def backward(number: int) -> None:
            stepper.optimizer.zero_grad()
            stepper.step = before + number
            stepper.backward()

        with stepper.undone():
            alone = InTurn(stepper.model)
            norms = stepper.by(alone, lambda: squared_norms(self._summed(), backward, batches))
        return noise_scale(*norms, small, small * batches * stepper.world_size)

    @property
    def gradient_bytes(self) -> int:
        """Bytes of the gradients that a step sums over ranks."""
        return sum(each.nbytes for each in self._summed())

    def recorded(self) -> Recording:
        """What a step of the model looks like, for a layout of its gradients."""
        stepper = self._stepper
        with stepper.undone():
            return stepper.by(InTurn(stepper.model), lambda: record(stepper.model, stepper.backward))

    def planned(self) -> Decision:
        """Find, by steps, how gradients travel and parameters step fastest. OverlapError where that can't be done."""
        from trainers.overlap.training.planning import planned  # its search takes a second to load

        if self._stepper.world_size == 1 or self._stepper.device.type != "cpu":
            raise OverlapError("Steps are overlapped between several ranks on CPUs; take overlap=off.")
        with self._stepper.undone():
            return planned(self._subject(), self.recorded)

    def pipeline(self, layout: Layout) -> Pipeline:
        """The way of a layout, to be taken from now on."""
        return self._subject().pipeline(layout)

    def _subject(self) -> Subject:
        stepper = self._stepper
        options, optimizer = stepper.options, stepper.optimizer
        by_part = options.clip is None and not stepper.scaler.is_enabled() and steps_by_part(optimizer)
        return Subject(stepper.model, optimizer, by_part, options.accumulate, options.threads, self._take)

    def _take(self, way: Parallel, count: int) -> None:
        """Steps at a rate of 0 in a given way."""

        def take() -> None:
            for _ in range(count):
                self._stepper.take(0.0)
            way.flush()

        self._stepper.by(way, take)

    def _seconds_of(self, way: Parallel) -> float:
        """Of a step."""
        begin = perf_counter()
        self._take(way, 1)
        if self._stepper.device.type == "cuda":
            torch.cuda.synchronize()
        return perf_counter() - begin

    def _summed(self) -> list[Parameter]:
        """The parameters whose gradients are summed over ranks."""
        own = shards(self._stepper.model)
        return [parameter for name, parameter in trainable(self._stepper.model).items() if name not in own]
