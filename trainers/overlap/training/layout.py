"""How a model's gradients are put into buckets, in which order these travel, and who waits for which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from torch import nn

from trainers.errors import OverlapError
from trainers.overlap.training.recording import trainable

Mode = Literal["overlapped", "serial", "ddp"]


@dataclass(frozen=True)
class BucketLayout:
    """Parameters of one bucket, by name, and the module whose call waits for it ("": the model; None: the step)."""

    parameters: tuple[str, ...]
    place: str | None


@dataclass(frozen=True)
class Layout:
    """How a step goes, equal on all ranks.

    mode: overlapped: each bucket travels as soon as it may, and the next step waits for it where it uses it; serial:
    everything travels after the backward pass, and everybody waits; ddp: as torch's DistributedDataParallel does it.
    buckets: in the order in which they are complete. order: that in which they travel, as numbers of buckets.
    threads: of the optimizer's steps beside the computation.
    """

    mode: Mode
    buckets: tuple[BucketLayout, ...]
    order: tuple[int, ...]
    threads: int = 1

    def check(self, model: nn.Module) -> None:
        """Raise OverlapError unless the buckets are those of this model."""
        if self.mode == "ddp":
            return
        names = sorted(name for bucket in self.buckets for name in bucket.parameters)
        modules = {name for name, _ in model.named_modules()}
        places = {bucket.place for bucket in self.buckets} - {None}
        if names != sorted(trainable(model)) or not places <= modules:
            raise OverlapError("The plan of overlapping is for another model; search one for this model.")
        if sorted(self.order) != list(range(len(self.buckets))):
            raise OverlapError("The plan of overlapping does not send each bucket once; search it again.")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Layout:
        """Read what `to_json` gave; OverlapError if it is anything else."""
        try:
            buckets = tuple(BucketLayout(tuple(each["parameters"]), each["place"]) for each in values["buckets"])
            layout = cls(values["mode"], buckets, tuple(values["order"]), values["threads"])
        except (TypeError, KeyError) as error:
            raise OverlapError(f"This is no plan of overlapping ({error}); search it again.") from None
        if layout.mode not in ("overlapped", "serial", "ddp"):
            raise OverlapError(f"This is no plan of overlapping (mode {layout.mode}); search it again.")
        return layout


def serial(buckets: Sequence[BucketLayout]) -> Layout:
    """Everything in one bucket."""
    names = tuple(name for bucket in buckets for name in bucket.parameters)
    return Layout("serial", (BucketLayout(names, None),), (0,))
