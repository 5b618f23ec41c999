"""What a training step takes on this machine and this group: its passes by block, sums by size, steps by size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from trainers.overlap.training.layout import BucketLayout


@dataclass(frozen=True)
class StepProfile:
    """Seconds of a step, equal on all ranks once they have agreed: of the slowest one.

    machine: the fingerprint. places: where the forward pass is cut, in the order of these calls ("" is the model).
    forward: from each place to the next. blocks, backward: parameters, and until all their gradients are there.
    bytes: of each parameter's gradient. network, memory: (seconds, seconds a byte) of a sum over ranks and of an
    optimizer's step. update: of the whole optimizer. passes: of all but the last of an accumulated step. speeds: how
    fast others are beside computation, as (R, P). rejected: samples that were too slow to be true.
    """

    machine: str
    places: tuple[str, ...]
    forward: tuple[float, ...]
    blocks: tuple[BucketLayout, ...]
    backward: tuple[float, ...]
    bytes: Mapping[str, int]
    network: tuple[float, float]
    memory: tuple[float, float]
    update: float
    passes: float
    speeds: Mapping[str, tuple[float, float]]
    rejected: int

    def places_of(self, buckets: Sequence[BucketLayout]) -> list[str]:
        """Where these buckets are waited for, in the order of the calls, the beginning always among them."""
        wanted = {bucket.place for bucket in buckets}
        return [place for number, place in enumerate(self.places) if not number or place in wanted]

    def forward_of(self, places: Sequence[str]) -> list[float]:
        """Seconds of the forward pass from each of these places to the next."""
        sums: list[float] = []
        for place, seconds in zip(self.places, self.forward, strict=True):
            if place in places:
                sums.append(0.0)
            sums[-1] += seconds
        return sums

    def backward_of(self, buckets: Sequence[BucketLayout]) -> list[float]:
        """Seconds of the backward pass until each of these buckets is complete, from the one before on."""
        of = dict(zip((block.parameters[-1] for block in self.blocks), self.backward, strict=True))
        return [sum(of.get(name, 0.0) for name in bucket.parameters) for bucket in buckets]

    def reduce(self, bucket: BucketLayout) -> float:
        """Seconds of its sum over ranks."""
        return _line(self.network, self._size(bucket))

    def optimizer(self, bucket: BucketLayout) -> float:
        """Seconds of its parameters' step."""
        return _line(self.memory, self._size(bucket))

    def _size(self, bucket: BucketLayout) -> int:
        return sum(self.bytes[name] for name in bucket.parameters)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> StepProfile:
        """Read what `to_json` gave."""
        lists = ("places", "forward", "backward", "network", "memory")
        made = {name: tuple(values[name]) for name in lists}
        blocks = tuple(BucketLayout(tuple(each["parameters"]), each["place"]) for each in values["blocks"])
        speeds = {name: (share, speed) for name, (share, speed) in values["speeds"].items()}
        return cls(**{**values, **made, "blocks": blocks, "speeds": speeds})


def _line(line: tuple[float, float], size: int) -> float:
    return line[0] + line[1] * size


def slowest(profiles: Sequence[StepProfile]) -> StepProfile:
    """What each operation takes on the rank that takes longest for it; of the same blocks on all ranks."""
    first = profiles[0]
    return replace(
        first,
        machine=" + ".join(dict.fromkeys(each.machine for each in profiles)),
        forward=_most([each.forward for each in profiles]),
        backward=_most([each.backward for each in profiles]),
        network=_most([each.network for each in profiles]),
        memory=_most([each.memory for each in profiles]),
        update=max(each.update for each in profiles),
        passes=max(each.passes for each in profiles),
        speeds={name: min((each.speeds[name] for each in profiles), key=lambda pair: pair[1]) for name in first.speeds},
        rejected=sum(each.rejected for each in profiles),
    )


def _most(rows: Sequence[tuple[float, ...]]) -> Any:
    return tuple(max(column) for column in zip(*rows, strict=True))
