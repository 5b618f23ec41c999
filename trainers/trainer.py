"""One rank of a training: steps at the rates it is told, validation, and its whole state kept and restored."""

import hashlib
import math
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from copy import deepcopy
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from trainers.averaging import averaged
from trainers.communication import share_buffers, sum_over_ranks
from trainers.errors import GenerationError
from trainers.frozen import changing, frozen_digest
from trainers.generation.evaluation.options import LongContextOptions
from trainers.generation.evaluation.text import OffersText
from trainers.memory import memory
from trainers.models.transformer import Transformer
from trainers.options import TrainerOptions
from trainers.overlap.training.decision import Decision
from trainers.overlap.training.layout import Layout
from trainers.parameter_groups import MakeOptimizer
from trainers.settings import AS_CONFIGURED, Settings
from trainers.sharding import gathered, made_whole, whole_size
from trainers.snapshot import Snapshot
from trainers.stepper import Stepper
from trainers.tasks.task import Task
from trainers.training_state import weights
from trainers.trials import Trials
from trainers.validation import evaluation_mode, evenly_spaced, mean_scores
from trainers.weights import load_weights

__all__ = ["Trainer", "TrainerOptions"]


class Trainer:
    """Trains a task. Seeds the process's random generators and sets its number of threads; expects one per process.

    optimizer: makes the optimizer from the parameters, or groups of them; its own rate is never used. With one that
    averages its iterates (Schedule-Free), whatever is scored, hashed or saved is the average.
    rank, world_size: with more than one rank, torch.distributed must be initialised already (DDP does the rest).
    trials: what can be tried out in between.
    Raises DataError when the training split is smaller than one step's batch.
    """

    def __init__(
        self,
        task: Task,
        optimizer: MakeOptimizer,
        options: TrainerOptions,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        torch.set_num_threads(options.threads)
        _choose_kernels(options.deterministic)
        self._task, self._rank, self._world_size = task, rank, world_size
        self._stepper = Stepper(task, optimizer, options, rank, world_size)
        self._device, self._splits = self._stepper.device, self._stepper.splits
        self.trials = Trials(self._stepper)
        self._goes_on = False

    @property
    def model(self) -> nn.Module:
        """What is trained."""
        return self._stepper.model

    @property
    def step(self) -> int:
        """How many steps it has taken."""
        return self._stepper.step

    @property
    def parameters_count(self) -> int:
        """Trainable and frozen parameters of the whole model, shared ones once."""
        return whole_size(self.model)

    @property
    def training_samples(self) -> int:
        """How many samples the training split has."""
        return len(self._splits.train)

    @property
    def validation_samples(self) -> int:
        """How many held-out samples a validation scores."""
        return len(evenly_spaced(len(self._splits.validation), self._options.validation_samples))

    def train(
        self,
        rates: Sequence[float],
        settings: Settings = AS_CONFIGURED,
        stop_above: float | None = None,
        more: bool = False,
    ) -> list[float]:
        """One optimizer step a rate, set right before its step; returns this rank's mean loss of each step.

        `settings` hold for these steps alone. With `stop_above`, ends after the first step whose mean over all ranks is
        above it or not finite. more: the next call trains on in the same way, and what the last step has left under way
        goes on meanwhile. Raises DataError for settings that the optimizer or the batch does not have.
        """
        if not self._goes_on:
            self._stepper.use(settings)
        self._goes_on = more
        losses = []
        for rate in rates:
            losses.append(self._stepper.take(rate))
            if stop_above is not None and self._exceeds(losses[-1], stop_above):
                break
        if not more:
            self._stepper.parallel.flush()
            if self._world_size > 1:
                share_buffers(self.model)
        return [float(loss) for loss in losses]

    def plan_overlap(self) -> Decision:
        """Find how gradients travel and parameters step fastest, and do it so.

        Called on all ranks, of which there are several. OverlapError on all of them where that can't be done.
        """
        decision = self.trials.planned()
        self.follow(decision.layout)
        return decision

    def follow(self, layout: Layout) -> None:
        """Let gradients travel and parameters step as `layout` says, from the next step on, on all ranks.

        Raises OverlapError for another model's.
        """
        layout.check(self.model)
        self._stepper.parallel.close()
        if layout.mode == "ddp":
            self._stepper.go_by_ddp()
        else:
            self._stepper.parallel = self.trials.pipeline(layout)

    @property
    def memory(self) -> tuple[int, int]:
        """Bytes that this rank has held at most, and bytes that are free where it stands."""
        return memory(self._device)

    def use_batch(self, batch_size: int) -> None:
        """Take batches of so many samples from the next step on, as if made with it. Called on all ranks, at step 0.

        Raises DataError when the training split is smaller than one step's batch.
        """
        self._stepper.use_batch(batch_size)

    def validate(self, split: str = "validation") -> dict[str, float]:
        """Means over "train", "validation" or "test" of "loss" and the task's metrics, equal on every rank."""
        stepper, data = self._stepper, getattr(self._splits, split)
        wanted = self._options.validation_samples if split == "validation" else None
        indices = evenly_spaced(len(data), wanted)

        def score(chosen: Tensor) -> dict[str, Tensor]:
            batch = stepper.to_device(data[chosen])
            with stepper.autocast():
                metrics = self._task.metrics(self.model, batch)
                return metrics if "loss" in metrics else {"loss": self._task.loss(self.model, batch), **metrics}

        with self._averaged(), evaluation_mode(self.model, self._options.seed):
            return mean_scores(score, indices, self._options.batch_size, self._rank, self._world_size, self._device)

    def evaluate(self) -> tuple[dict[str, float], list[str]]:
        """The task's own evaluation: metrics, and samples for people to read. Called on all ranks, run by rank 0."""
        with self._averaged(), evaluation_mode(self.model, self._options.seed), made_whole(self.model):
            return self._evaluated() if self._rank == 0 else ({}, [])

    def measurements(self) -> dict[str, float]:
        """The task's numbers about the steps since the last call or restore, as means over ranks."""
        own = self._task.measurements(self.model)
        totals = sum_over_ranks([*own.values()], self._device) if own else []
        return {name: total / self._world_size for name, total in zip(own, totals, strict=True)}

    def snapshot(self, reuse: Snapshot | None = None) -> Snapshot:
        """Copy the whole training state to CPU memory. `reuse`: a snapshot no longer needed, whose memory is taken."""
        return self._stepper.snapshot(reuse)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot: the next step gives the bits it would have given then. ValueError: another model's."""
        self._stepper.restore(snapshot)

    def rates(self) -> list[float]:
        """The rate of every parameter group as the last step used it."""
        return [float(group["lr"]) for group in self._stepper.optimizer.param_groups]

    def weights_sha256(self) -> str:
        """SHA-256 over all parameters and buffers in name order: names, types, shapes, bytes. Called on all ranks."""
        digest = hashlib.sha256()
        with self._averaged():
            for name, tensor in gathered(self.model, weights(self.model)):
                digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
                digest.update(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def save_weights(self, path: Path) -> None:
        """Write the model's `state_dict` as safetensors. Called on all ranks; rank 0 writes.

        Of frozen parameters only their digest is written, in the header under "frozen".
        """
        with self._averaged():
            whole = gathered(self.model, changing(self.model, self.model.state_dict()))
            state = {name: tensor.cpu().contiguous().clone() for name, tensor in whole}
        digest = frozen_digest(self.model)
        if self._rank == 0:
            save_file(state, path, metadata={"frozen": digest} if digest else None)

    def load_weights(self, path: Path) -> None:
        """Take what `save_weights` wrote, to score it. RuntimeError or DataError where it is another model's."""
        load_weights(self.model, path)

    @property
    def _options(self) -> TrainerOptions:
        return self._stepper.options

    def _evaluated(self) -> tuple[dict[str, float], list[str]]:
        metrics, samples = self._task.evaluate(self.model, self.step)
        if self._options.long_context is None:
            return metrics, samples
        more, continued = self._at_long_context(self._options.long_context)
        return metrics | more, samples + continued

    def _at_long_context(self, options: LongContextOptions) -> tuple[dict[str, float], list[str]]:
        from trainers.generation.evaluation.scores import long_context_scores  # numba loads slowly

        if not isinstance(self._task, OffersText) or not isinstance(self.model, Transformer):
            raise GenerationError(
                f"{type(self._task).__name__} with {type(self.model).__name__} can't be scored at long context; it "
                "takes a property `text` of the task and a trainers.models.transformer.Transformer."
            )
        on_cpu = self.model if self._device.type == "cpu" else deepcopy(self.model).cpu()  # where clusters are read
        return long_context_scores(on_cpu, self._task.text, options, self._options.seed)

    def _averaged(self) -> AbstractContextManager[None]:
        stepper = self._stepper
        return averaged(stepper.model, stepper.optimizer, stepper.loss_of, self._options.seed)

    def _exceeds(self, loss: Tensor, limit: float) -> bool:
        mean = sum_over_ranks([float(loss)], self._device)[0] / self._world_size
        return not (math.isfinite(mean) and mean <= limit)


def _choose_kernels(deterministic: bool) -> None:
    torch.use_deterministic_algorithms(deterministic)
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read by cuBLAS, which else refuses
