"""One rank of a training: steps at the rates it is told, validation, and its whole state kept and restored."""

import hashlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import Parameter

from trainers.averaging import averaged, ready_to_step
from trainers.communication import InTurn, Parallel, average_shards, data_parallel, share_buffers, sum_over_ranks
from trainers.data.order import DataOrder
from trainers.errors import GenerationError, OverlapError
from trainers.frozen import changing, frozen_digest
from trainers.generation.evaluation.options import LongContextOptions
from trainers.generation.evaluation.text import OffersText
from trainers.memory import memory
from trainers.models.transformer import Transformer
from trainers.noise_scale import noise_scale, squared_norms
from trainers.options import TrainerOptions
from trainers.overlap.training.decision import Decision
from trainers.overlap.training.layout import Layout
from trainers.overlap.training.measuring import Subject
from trainers.overlap.training.partial_steps import steps_by_part
from trainers.overlap.training.recording import Recording, record, trainable
from trainers.parameter_groups import MakeOptimizer, parameters_for
from trainers.random_state import seed_all
from trainers.settings import AS_CONFIGURED, OptimizerSettings, Settings, samples_with
from trainers.sharding import clip_gradients, gathered, loss_scaler, made_whole, shards, whole_size
from trainers.snapshot import Snapshot
from trainers.tasks.task import Batch, DataSet, Task
from trainers.training_state import capture, reinstate, weights
from trainers.validation import evaluation_mode, evenly_spaced, mean_scores
from trainers.weights import load_weights

__all__ = ["Trainer", "TrainerOptions"]

Result = TypeVar("Result")
_LOW_PRECISION = {"bfloat16": torch.bfloat16, "float16": torch.float16}


class Trainer:
    """Trains a task. Seeds the process's random generators and sets its number of threads; expects one per process.

    optimizer: makes the optimizer from the parameters, or groups of them; its own rate is never used. With one that
    averages its iterates (Schedule-Free), whatever is scored, hashed or saved is the average.
    rank, world_size: with more than one rank, torch.distributed must be initialised already (DDP does the rest).
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
        self._task, self._options, self._rank, self._world_size = task, options, rank, world_size
        self._device = torch.device(options.device)
        self._splits = task.build_data()
        self._order = self._order_with(AS_CONFIGURED)
        seed_all(options.seed)
        self.model = task.build_model().to(self._device)
        self._optimizer = optimizer(parameters_for(optimizer, self.model))
        self._settings = OptimizerSettings(self._optimizer)
        ready_to_step(self._optimizer)
        self._scaler = loss_scaler(self.model, self._device, enabled=options.precision == "float16")
        self.step = 0
        self._goes_on = False
        self._parallel: Parallel = InTurn(self.model)
        if world_size > 1:
            average_shards(self.model)
            self._parallel = InTurn(data_parallel(self.model))
            self._settle()
        seed_all(options.seed, rank + 1)  # dropout differs between ranks, the initial weights don't

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
            self._settings.use(settings)
            self._order = self._order_with(settings)
            self.model.train()
        self._goes_on = more
        losses = []
        for rate in rates:
            losses.append(self._train_step(rate))
            if stop_above is not None and self._exceeds(losses[-1], stop_above):
                break
        if not more:
            self._parallel.flush()
            if self._world_size > 1:
                share_buffers(self.model)
        return [float(loss) for loss in losses]

    def plan_overlap(self) -> Decision:
        """Find, by trial steps that leave no trace, how gradients travel and parameters step fastest, and do it so.

        Called on all ranks, of which there are several. OverlapError on all of them where that can't be done.
        """
        from trainers.overlap.training.planning import planned  # its search takes a second to load

        if self._world_size == 1 or self._device.type != "cpu":
            raise OverlapError("Steps are overlapped between several ranks on CPUs; take overlap=off.")
        with self._undone():
            decision = planned(self._subject(), self.recorded)
        self.follow(decision.layout)
        return decision

    def follow(self, layout: Layout) -> None:
        """Let gradients travel and parameters step as `layout` says, from the next step on, on all ranks.

        Raises OverlapError for another model's.
        """
        layout.check(self.model)
        self._parallel.close()
        if layout.mode == "ddp":
            self._parallel = InTurn(data_parallel(self.model))
            self._settle()
        else:
            self._parallel = self._subject().pipeline(layout)

    @property
    def gradient_bytes(self) -> int:
        """Bytes of the gradients that a step sums over ranks."""
        return sum(each.nbytes for each in self._summed())

    @property
    def memory(self) -> tuple[int, int]:
        """Bytes that this rank has held at most, and bytes that are free where it stands."""
        return memory(self._device)

    def use_batch(self, batch_size: int) -> None:
        """Take batches of so many samples from the next step on, as if made with it. Called on all ranks, at step 0.

        Raises DataError when the training split is smaller than one step's batch.
        """
        self._options = replace(self._options, batch_size=batch_size)
        self._order = self._order_with(AS_CONFIGURED)

    def trial_seconds(self, steps: int, together: bool) -> list[float]:
        """Seconds of each of so many steps, after one for nothing, which all leave no trace. Called on all ranks.

        together: as they are; else this rank computes alone, and no gradient travels.
        """
        way = self._parallel if together else InTurn(self.model)
        with self._undone():
            self._trial_steps(way, 1)
            return [self._seconds_of(way) for _ in range(steps)]

    def noise_scale(self, batches: int) -> float:
        """The gradient noise scale, in samples, at the present weights, from so many batches of each rank.

        Equal on all ranks, on all of which it is called. Leaves no trace.
        """

        def backward(number: int) -> None:
            self._optimizer.zero_grad()
            self.step = before + number
            self._backward()

        before, small = self.step, self._order.batch_size
        with self._undone():
            norms = self._by(InTurn(self.model), lambda: squared_norms(self._summed(), backward, batches))
        return noise_scale(*norms, small, small * batches * self._world_size)

    def recorded(self) -> Recording:
        """What a step of the model looks like, for a layout of its gradients. Called on all ranks."""
        with self._undone():
            return self._by(InTurn(self.model), lambda: record(self.model, self._backward))

    def validate(self, split: str = "validation") -> dict[str, float]:
        """Means over "train", "validation" or "test" of "loss" and the task's metrics, equal on every rank."""
        data: DataSet = getattr(self._splits, split)
        wanted = self._options.validation_samples if split == "validation" else None
        indices = evenly_spaced(len(data), wanted)

        def score(chosen: Tensor) -> dict[str, Tensor]:
            batch = self._to_device(data[chosen])
            with self._autocast():
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
        return capture(self.model, self._optimizer, self._scaler, self.step, reuse)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot: the next step gives the bits it would have given then. ValueError: another model's."""
        self.step = reinstate(snapshot, self.model, self._optimizer, self._scaler)
        self._task.measurements(self.model)  # of steps that are undone

    def rates(self) -> list[float]:
        """The rate of every parameter group as the last step used it."""
        return [float(group["lr"]) for group in self._optimizer.param_groups]

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

    def _order_with(self, settings: Settings) -> DataOrder:
        samples = samples_with(self._options.batch_size * self._options.accumulate, settings)
        return DataOrder(len(self._splits.train), samples, self._world_size, self._options.seed)

    def _train_step(self, rate: float) -> Tensor:
        self._parallel.begin(rate)
        loss = self._backward()
        self._parallel.end(lambda: self._update(rate))
        self.step += 1
        return loss

    def _update(self, rate: float) -> None:
        """The optimizer's step, once all gradients are there."""
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        if self._options.clip is not None:
            self._scaler.unscale_(self._optimizer)
            clip_gradients(self.model, self._options.clip)
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self._optimizer.zero_grad()

    def _backward(self) -> Tensor:
        """Gradients of the present step's batch, averaged over ranks; returns this rank's mean loss."""
        indices = torch.from_numpy(self._order.indices(self.step, self._rank))
        parts = indices.split(self._options.batch_size)
        total = torch.zeros((), device=self._device)
        for number, part in enumerate(parts):
            batch = self._to_device(self._splits.train[part])
            with self._parallel.summing(number == len(parts) - 1):
                with self._autocast():
                    loss = self._task.loss(self._parallel.model, batch) / (len(indices) / len(part))
                self._scaler.scale(loss).backward()
            total += loss.detach()
        return total

    def _settle(self) -> None:
        """Run one backward pass for nothing: after its first, DDP regroups the gradients it sums.

        Sums of three and more ranks depend on the grouping, and a resumed run must not differ from an undisturbed one.
        """
        with self._undone():
            self._backward()

    def _subject(self) -> Subject:
        """What is measured of this trainer."""
        by_part = self._options.clip is None and not self._scaler.is_enabled() and steps_by_part(self._optimizer)
        return Subject(
            self.model, self._optimizer, by_part, self._options.accumulate, self._options.threads, self._trial_steps
        )

    def _trial_steps(self, parallel: Parallel, count: int) -> None:
        """Steps at a rate of 0 in a given way."""

        def take() -> None:
            for _ in range(count):
                self._train_step(0.0)
            parallel.flush()

        self._by(parallel, take)

    def _seconds_of(self, way: Parallel) -> float:
        """Of a step."""
        begin = perf_counter()
        self._trial_steps(way, 1)
        if self._device.type == "cuda":
            torch.cuda.synchronize()
        return perf_counter() - begin

    def _summed(self) -> list[Parameter]:
        """The parameters whose gradients are summed over ranks."""
        own = shards(self.model)
        return [parameter for name, parameter in trainable(self.model).items() if name not in own]

    def _by(self, parallel: Parallel, act: Callable[[], Result]) -> Result:
        """Do something with the ranks together in another way."""
        usual, self._parallel = self._parallel, parallel
        try:
            return act()
        finally:
            self._parallel = usual

    @contextmanager
    def _undone(self) -> Iterator[None]:
        """Whatever is tried inside leaves no trace."""
        before = self.snapshot()
        try:
            yield
        finally:
            self._optimizer.zero_grad()
            self.restore(before)

    def _averaged(self) -> AbstractContextManager[None]:
        return averaged(self.model, self._optimizer, self._forward, self._options.seed)

    def _forward(self, number: int) -> Tensor:
        """The loss of a training batch, equal on every rank and in every run: what the average's statistics rest on."""
        order = DataOrder(len(self._splits.train), self._options.batch_size, 1, self._options.seed)
        batch = self._splits.train[torch.from_numpy(order.indices(number, 0))]
        with self._autocast():
            return self._task.loss(self.model, self._to_device(batch))

    def _exceeds(self, loss: Tensor, limit: float) -> bool:
        mean = sum_over_ranks([float(loss)], self._device)[0] / self._world_size
        return not (math.isfinite(mean) and mean <= limit)

    def _autocast(self) -> AbstractContextManager[None]:
        if self._options.precision == "float32":
            return nullcontext()
        return torch.autocast(self._device.type, _LOW_PRECISION[self._options.precision])

    def _to_device(self, batch: Batch) -> Batch:
        if isinstance(batch, Tensor):
            return batch.to(self._device, non_blocking=True)
        return tuple(tensor.to(self._device, non_blocking=True) for tensor in batch)


def _choose_kernels(deterministic: bool) -> None:
    torch.use_deterministic_algorithms(deterministic)
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read by cuBLAS, which else refuses
