"""A training step as a periodic graph: passes by block, sums and optimizer steps by bucket."""

from __future__ import annotations

from collections.abc import Sequence

from trainers.overlap.operations import Operation, OperationGraph, Resource
from trainers.overlap.training.layout import BucketLayout
from trainers.overlap.training.profile import StepProfile

COMPUTE, NETWORK, MEMORY = Resource.COMPUTE, Resource.NETWORK, Resource.MEMORY


def step_graph(
    buckets: Sequence[BucketLayout], profile: StepProfile, by_part: bool, order: Sequence[int] | None = None
) -> tuple[OperationGraph, dict[str, float]]:
    """The graph of a step with these buckets, and the seconds of its operations.

    order: in which buckets travel, and their parameters step; None: in any, and a bucket's step is part of its sum.

    forward I: from one place where buckets are waited for to the next. backward B: until bucket B is complete. reduce
    B: its sum over ranks. optimizer B: the step of its parameters, if the optimizer allows it by part; else update: of
    all of them, once all are there. passes: those that come before the last of an accumulated step.
    """
    return _Step(buckets, profile, by_part, order).made()


class _Step:
    def __init__(
        self, buckets: Sequence[BucketLayout], profile: StepProfile, by_part: bool, order: Sequence[int] | None
    ) -> None:
        self._buckets, self._profile, self._by_part, self._order = buckets, profile, by_part, order
        self._operations: list[Operation] = []
        self._times: dict[str, float] = {}

    def made(self) -> tuple[OperationGraph, dict[str, float]]:
        last = self._forward()
        if self._profile.passes:
            self._add("passes", COMPUTE, self._profile.passes, (last,))
            last = "passes"
        for number, seconds in enumerate(self._profile.backward_of(self._buckets)):
            self._add(f"backward {number}", COMPUTE, seconds, (last,))
            last = f"backward {number}"
        if self._order is None:
            self._in_any_order()
        else:
            self._one_after_another(self._order)
        if not self._by_part:
            sums = tuple(f"reduce {number}" for number in range(len(self._buckets)))
            self._add("update", COMPUTE, self._profile.update, sums)
        return OperationGraph(self._operations, 1), self._times

    def _in_any_order(self) -> None:
        for number, bucket in enumerate(self._buckets):
            seconds = self._profile.reduce(bucket) + (self._profile.optimizer(bucket) if self._by_part else 0.0)
            self._add(f"reduce {number}", NETWORK, seconds, (f"backward {number}",))

    def _one_after_another(self, order: Sequence[int]) -> None:
        sent: tuple[str, ...] = ()
        stepped: tuple[str, ...] = ()
        for number in order:
            bucket, name = self._buckets[number], f"reduce {number}"
            self._add(name, NETWORK, self._profile.reduce(bucket), (f"backward {number}", *sent))
            sent = (name,)
            if self._by_part:
                self._add(f"optimizer {number}", MEMORY, self._profile.optimizer(bucket), (name, *stepped))
                stepped = (f"optimizer {number}",)

    def _forward(self) -> str:
        places = self._profile.places_of(self._buckets)
        for number, seconds in enumerate(self._profile.forward_of(places)):
            inputs = (f"forward {number - 1}",) if number else ()
            self._add(f"forward {number}", COMPUTE, seconds, inputs, self._awaited(number, places))
        return f"forward {len(places) - 1}"

    def _awaited(self, number: int, places: Sequence[str]) -> tuple[str, ...]:
        """What of the step before a piece of the forward pass waits for."""
        first = () if number else (f"backward {len(self._buckets) - 1}",)
        if not self._by_part:
            return first if number else (*first, "update")
        here = {places[number]} if number else {places[0], None}
        numbers = [index for index, bucket in enumerate(self._buckets) if bucket.place in here]
        last = "reduce" if self._order is None else "optimizer"
        return (*first, *(f"{last} {index}" for index in numbers))

    def _add(
        self, name: str, resource: Resource, seconds: float, inputs: tuple[str, ...], after: tuple[str, ...] = ()
    ) -> None:
        self._operations.append(Operation(name, resource, inputs, after=after))
        self._times[name] = seconds
