"""How a rank takes a step: its samples, gradients summed over ranks, the optimizer's move; and the way back."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor

from trainers.averaging import ready_to_step
from trainers.communication import InTurn, Parallel, average_shards, data_parallel
from trainers.data.order import DataOrder
from trainers.options import TrainerOptions
from trainers.parameter_groups import MakeOptimizer, parameters_for
from trainers.random_state import seed_all
from trainers.settings import AS_CONFIGURED, OptimizerSettings, Settings, samples_with
from trainers.sharding import clip_gradients, loss_scaler
from trainers.snapshot import Snapshot
from trainers.tasks.task import Batch, Task
from trainers.training_state import capture, reinstate

Result = TypeVar("Result")
_LOW_PRECISION = {"bfloat16": torch.bfloat16, "float16": torch.float16}


class Stepper:
    """What steps of a task need on one rank. Seeds the process's random generators.

    parallel: the way in which gradients travel. step: how many steps the model has taken.
    Raises DataError when the training split is smaller than one step's batch.
    """

    def __init__(
        self, task: Task, optimizer: MakeOptimizer, options: TrainerOptions, rank: int, world_size: int
    ) -> None:
        self.task, self.options, self.rank, self.world_size = task, options, rank, world_size
        self.device = torch.device(options.device)
        self.splits = task.build_data()
        self.order = self._order_with(AS_CONFIGURED)
        seed_all(options.seed)
        self.model = task.build_model().to(self.device)
        self.optimizer = optimizer(parameters_for(optimizer, self.model))
        self._settings = OptimizerSettings(self.optimizer)
        ready_to_step(self.optimizer)
        self.scaler = loss_scaler(self.model, self.device, enabled=options.precision == "float16")
        self.step = 0
        self.parallel: Parallel = InTurn(self.model)
        if world_size > 1:
            average_shards(self.model)
            self.go_by_ddp()
        seed_all(options.seed, rank + 1)  # dropout differs between ranks, the initial weights don't

    def use(self, settings: Settings) -> None:
        """Take steps with these settings. Raises DataError for some that the optimizer or the batch does not have."""
        self._settings.use(settings)
        self.order = self._order_with(settings)
        self.model.train()

    def use_batch(self, batch_size: int) -> None:
        """Take batches of so many samples from the next step on, as if made with it. Called on all ranks, at step 0.

        Raises DataError when the training split is smaller than one step's batch.
        """
        self.options = replace(self.options, batch_size=batch_size)
        self.order = self._order_with(AS_CONFIGURED)

    def go_by_ddp(self) -> None:
        """Let gradients travel as DistributedDataParallel sends them.

        One backward pass is run for nothing: after its first, DDP regroups the gradients it sums. Sums of three and
        more ranks depend on the grouping, and a resumed run must not differ from an undisturbed one.
        """
        self.parallel = InTurn(data_parallel(self.model))
        with self.undone():
            self.backward()

    def take(self, rate: float) -> Tensor:
        """A step at this rate; this rank's mean loss."""
        self.parallel.begin(rate)
        loss = self.backward()
        self.parallel.end(lambda: self._update(rate))
        self.step += 1
        return loss

    def backward(self) -> Tensor:
        """Gradients of the present step's batch, averaged over ranks; returns this rank's mean loss."""
        indices = torch.from_numpy(self.order.indices(self.step, self.rank))
        parts = indices.split(self.options.batch_size)
        total = torch.zeros((), device=self.device)
        for number, part in enumerate(parts):
            batch = self.to_device(self.splits.train[part])
            with self.parallel.summing(number == len(parts) - 1):
                with self.autocast():
                    loss = self.task.loss(self.parallel.model, batch) / (len(indices) / len(part))
                self.scaler.scale(loss).backward()
            total += loss.detach()
        return total

    def loss_of(self, number: int) -> Tensor:
        """The loss of a training batch, equal on every rank and in every run: what the average's statistics rest on."""
        order = DataOrder(len(self.splits.train), self.options.batch_size, 1, self.options.seed)
        batch = self.splits.train[torch.from_numpy(order.indices(number, 0))]
        with self.autocast():
            return self.task.loss(self.model, self.to_device(batch))

    def by(self, parallel: Parallel, act: Callable[[], Result]) -> Result:
        """Do something with gradients travelling in another way."""
        usual, self.parallel = self.parallel, parallel
        try:
            return act()
        finally:
            self.parallel = usual

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Whatever is tried inside leaves no trace."""
        before = self.snapshot()
        try:
            yield
        finally:
            self.optimizer.zero_grad()
            self.restore(before)

    def snapshot(self, reuse: Snapshot | None = None) -> Snapshot:
        """Copy the whole state to CPU memory. `reuse`: a snapshot no longer needed, whose memory is taken."""
        return capture(self.model, self.optimizer, self.scaler, self.step, reuse)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot: the next step gives the bits it would have given then. ValueError: another model's."""
        self.step = reinstate(snapshot, self.model, self.optimizer, self.scaler)
        self.task.measurements(self.model)  # of steps that are undone

    def autocast(self) -> AbstractContextManager[None]:
        """Compute with the precision that is configured."""
        if self.options.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, _LOW_PRECISION[self.options.precision])

    def to_device(self, batch: Batch) -> Batch:
        """The batch where the model is."""
        if isinstance(batch, Tensor):
            return batch.to(self.device, non_blocking=True)
        return tuple(tensor.to(self.device, non_blocking=True) for tensor in batch)

    def _order_with(self, settings: Settings) -> DataOrder:
        samples = samples_with(self.options.batch_size * self.options.accumulate, settings)
        return DataOrder(len(self.splits.train), samples, self.world_size, self.options.seed)

    def _update(self, rate: float) -> None:
        """The optimizer's step, once all gradients are there."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        if self.options.clip is not None:
            self.scaler.unscale_(self.optimizer)
            clip_gradients(self.model, self.options.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
