"""One training on a gang of workers: what the driver of a run can ask of it."""

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Self

from orchestrator.cluster.crew import Crew
from orchestrator.cluster.gang import Gang, JobFailed, every
from orchestrator.cluster.job_spec import JobSpec
from orchestrator.cluster.part_writing import SHARED_FILE, rank_file
from orchestrator.cluster.patience import Patience
from orchestrator.cluster.snapshots import require_space
from orchestrator.cluster.standby import Standby
from orchestrator.errors import UserError
from orchestrator.learning_rate.dimensions import AS_CONFIGURED, Settings

__all__ = ["Job", "JobFailed", "JobInfo", "JobSpec"]

Json = dict[str, Any]


@dataclass(frozen=True)
class JobInfo:
    """A gang that is up. `device` is cpu or cuda; `parameters` counts the model's; seconds since `start`."""

    world_size: int
    device: str
    parameters: int
    seconds: float


class Job:
    """A training whose workers live as long as the block it is used in, or until `close`.

    Any method raises JobFailed when a rank fails, and then the whole gang is gone.
    """

    def __init__(self, spec: JobSpec, patience: Patience | None = None, standby: Standby | Crew | None = None) -> None:
        self._spec, self._patience, self._standby = spec, patience, standby
        self._gang: Gang | None = None
        self._parts_travel = False  # from the workers' nodes to the driver's disk

    def start(self) -> JobInfo:
        """Place the workers, let them meet and build their trainers.

        Raises UserError when the cluster cannot hold them, or when data or configuration are wrong.
        """
        self.place()
        return self.meet()

    def place(self) -> None:
        """The first half of `start`: find room for the workers, unless some that stood by take over."""
        self._begun = monotonic()
        self._gang = (self._standby and self._standby.taken(self._spec)) or Gang(self._spec, self._patience)

    def meet(self) -> JobInfo:
        """The second half of `start`: let the workers meet and build their trainers."""
        self._workers.call("import_trainer")
        address, port = self._workers.call_rank(0, "host_store") if self._spec.world_size > 1 else ("", 0)
        device, parameters = every(self._workers.call("build", address, port))
        if self._standby is not None:
            self._standby.prepare(self._spec)
        return JobInfo(self._spec.world_size, device, parameters, monotonic() - self._begun)

    def train(
        self,
        rates: Sequence[float],
        settings: Settings = AS_CONFIGURED,
        stop_above: float | None = None,
        more: bool = False,
    ) -> list[float]:
        """One optimizer step a rate; the mean loss over ranks of each. `settings` hold for these steps alone.

        With `stop_above`, ends after the first step whose mean loss is above it or not finite. more: the next call
        trains on in the same way, so that what the last step has left under way need not be waited for.
        """
        by_rank = self._workers.call("train", list(rates), dict(settings), stop_above, more, units=len(rates))
        return [sum(losses) / len(losses) for losses in zip(*by_rank, strict=True)]

    def validate(self, split: str = "validation") -> dict[str, float]:
        """Mean metrics over a split, at least `loss`."""
        metrics: dict[str, float] = self._workers.call("validate", split)[0]
        return metrics

    def training_samples(self) -> int:
        """How many samples the training split has."""
        samples: int = self._workers.call_rank(0, "training_samples")
        return samples

    def validation_samples(self) -> int:
        """How many held-out samples a validation scores."""
        samples: int = self._workers.call_rank(0, "validation_samples")
        return samples

    def evaluate(self) -> tuple[dict[str, float], list[str]]:
        """The task's own scores and samples, made by rank 0."""
        scores: tuple[dict[str, float], list[str]] = self._workers.call("evaluate")[0]
        return scores

    def measurements(self) -> dict[str, float]:
        """The task's numbers about the steps since the last call; those of steps that were taken back don't count."""
        numbers: dict[str, float] = self._workers.call("measurements")[0]
        return numbers

    def communication(self) -> Json | None:
        """The rule and counters of rank 0's planned group: {"rule", "rows"}; None where the group knows no plan."""
        found: Json | None = self._workers.call_rank(0, "communication")
        return found

    def plan_overlap(self) -> Json:
        """Find how steps overlap, and do it so; what was found, with rank 0's timelines."""
        found: Json = self._workers.call("plan_overlap")[0]
        return found

    def follow_overlap(self, layout: Json) -> None:
        """Overlap steps as it was found before."""
        self._workers.call("follow_overlap", layout)

    def gradient_bytes(self) -> int:
        """Bytes of the gradients that a step sums over ranks."""
        size: int = self._workers.call_rank(0, "gradient_bytes")
        return size

    def trial_seconds(self, steps: int, together: bool = True) -> list[float]:
        """Seconds of each of so many steps on the slowest rank; nothing is left of them.

        together: as the ranks are; else each computes alone, and no gradient travels.
        """
        return _slowest(self._workers.call("trial_seconds", steps, together))

    def trial_sums(self, sizes: Sequence[int], rounds: int) -> dict[str, list[list[float]]]:
        """Seconds, on the slowest rank, of sums over ranks "planned" and by the "backend": by size, of each round.

        For a job with plans.
        """
        by_rank = self._workers.call("trial_sums", list(sizes), rounds)
        return {way: [*map(_slowest, zip(*(rank[way] for rank in by_rank), strict=True))] for way in by_rank[0]}

    def noise_scale(self, batches: int) -> float:
        """The gradient noise scale in samples at the present weights, from so many batches of each rank."""
        scale: float = every(self._workers.call("noise_scale", batches))
        return scale

    def memory(self) -> tuple[int, int]:
        """Bytes that a rank has held at most, and bytes that are free where there are fewest."""
        held, free = zip(*self._workers.call("memory"), strict=True)
        return max(held), min(free)

    def use_batch(self, batch_size: int) -> None:
        """Take batches of so many samples from now on, as if started with them."""
        self._workers.call("use_batch", batch_size)

    def go_by_plan_from(self, size_bytes: int | None) -> None:
        """Let gradients of so many bytes on go by plan, as if started so; None: none. For a job with plans."""
        self._workers.call("go_by_plan_from", size_bytes)

    def keep(self, name: str) -> None:
        """Keep the whole present state in the workers' memory; a second one of the same name replaces the first."""
        self._workers.call("keep", name)

    def rewind(self, name: str) -> None:
        """Return to a kept state, to the bit."""
        self._workers.call("rewind", name)

    def forget(self, name: str) -> None:
        """Give the memory of a kept state back."""
        self._workers.call("forget", name)

    def kept(self, name: str) -> list[Any]:
        """A kept state on its way to another copy of this job: a reference into Ray's object store for each rank."""
        return self._workers.refer("kept", name)

    def take(self, name: str, state: list[Any]) -> None:
        """Keep under `name` what another copy's `kept` gave; it travels from node to node, not through the driver."""
        self._workers.call_each("take", [name] * len(state), state)

    def save(self, folder: Path) -> Json:
        """Write the whole state into an empty folder, for `SnapshotStore.save`; returns what to note about it.

        Raises UserError when the disk is nearly full, OSError when it turns out to be.
        """
        content = self.begin_save(folder)
        self.finish_save(folder)
        return content

    def begin_save(self, folder: Path) -> Json:
        """Copy the whole state and let it be written into an empty folder while training goes on.

        Returns what to note about it. Raises UserError when the disk is nearly full.
        """
        steps, sizes = zip(*self._workers.call("prepare_parts"), strict=True)
        require_space(folder, sum(sizes))
        self._parts_travel = not self._shares(folder)
        self._workers.call("start_writing", None if self._parts_travel else folder)
        return {"step": every(steps), "world_size": self._spec.world_size}

    def is_saving(self) -> bool:
        """Whether any rank still writes what `begin_save` began."""
        return any(self._workers.call("is_writing"))

    def finish_save(self, folder: Path) -> None:
        """Wait until every rank has written its files into the folder. Raises OSError where one could not."""
        for rank, trouble in enumerate(self._workers.call("finish_writing")):
            if trouble is not None:
                raise OSError(f"rank {rank} could not write it: {trouble}")
        if self._parts_travel:
            for files in self._workers.call("written_parts"):
                for name, content in files.items():
                    (folder / name).write_bytes(content)

    def load(self, folder: Path, content: Json) -> int:
        """Take up a state that `save` wrote and `verified` has read; returns its step.

        Saved by another number of workers, in an elastic job: each takes the random generators of its rank, or, where
        there are more workers now, of its rank modulo the earlier number.
        """
        saved_by: int = content.get("world_size", 0)
        if saved_by != self._spec.world_size and not self._spec.elastic:
            raise UserError(
                f"{folder} was saved by {saved_by} workers and this job has {self._spec.world_size}; "
                f"go on with cluster.workers={saved_by}"
            )
        if self._shares(folder):
            step: int = every(self._workers.call("read_parts", folder, saved_by))
        else:
            names = [SHARED_FILE, *(rank_file(rank) for rank in range(saved_by))]
            files = {name: (folder / name).read_bytes() for name in names}
            step = every(self._workers.call("receive_parts", files, saved_by))
        return step

    def weights_sha256(self) -> str:
        """Digest over all parameters and buffers. Raises RuntimeError if the ranks' weights differ."""
        digest: str = every(self._workers.call("weights_sha256"))
        return digest

    def save_weights(self, path: Path) -> None:
        """Write the model's weights as safetensors; the file appears whole or not at all."""
        unfinished = path.with_name(f".{path.name}.unfinished")
        with unfinished.open("wb") as file:
            file.write(self._workers.call("weights_file")[0])
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)

    def load_weights(self, path: Path) -> None:
        """Give every rank the weights that `save_weights` wrote; the optimizer stays as it is."""
        self._workers.call("load_weights", path.read_bytes())

    def close(self) -> None:
        """End the workers and give their place back."""
        gang, self._gang = self._gang, None
        if gang is not None and self._standby is not None:
            self._standby.left(gang)
        elif gang is not None:
            gang.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers in rank order, each on its own node."""
        return self._workers.pids

    @property
    def _workers(self) -> Gang:
        if self._gang is None:
            raise RuntimeError("The job has no workers; call start() first.")
        return self._gang

    def _shares(self, folder: Path) -> bool:
        """Whether all workers reach the driver's folder, so that they can read and write it themselves."""
        if self._spec.share_folder is not None:
            return self._spec.share_folder
        probe = folder.parent / f".probe-{uuid.uuid4().hex}"
        probe.write_text(probe.name)
        try:
            return all(self._workers.call("sees", probe, probe.name))
        finally:
            probe.unlink()


def _slowest(by_rank: Sequence[Sequence[float]]) -> list[float]:
    """Of each round the longest."""
    return [max(round_) for round_ in zip(*by_rank, strict=True)]
