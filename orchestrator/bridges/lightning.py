"""AutoLRS as a callback of PyTorch Lightning:    Trainer(max_steps=-1, callbacks=[AutoLRSCallback(steps=1000)])"""

from collections.abc import Callable
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from orchestrator.bridges.steps import StepLoss, scorer
from orchestrator.errors import UserError
from orchestrator.learning_rate.autolrs import AutoLRS
from orchestrator.learning_rate.drive import Driver, History
from orchestrator.learning_rate.rungs import AutoLRSOptions


class AutoLRSCallback(Callback):
    """Finds the rate, sets it before every step, and ends the training once `steps` real ones are done.

    For modules with one optimizer, optimized automatically, and no learning-rate scheduler. Lightning counts the steps
    of the search as well (at most 12.5 % on top, 20 % below 800), so that its `max_steps` and `max_epochs` must not end
    it earlier. `validate`: the loss on held-out data, with the module in `eval` mode; None: training losses decide.
    After the training, `history` has the rate and loss of every real step.
    """

    def __init__(
        self,
        steps: int,
        options: AutoLRSOptions | None = None,
        validate: Callable[[LightningModule], float] | None = None,
    ) -> None:
        self._policy = AutoLRS(steps, options=options)
        self._validate = validate
        self._loss = StepLoss()
        self._seen = 0
        self.history = History()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Set the first rate."""
        if len(trainer.optimizers) != 1 or not pl_module.automatic_optimization or trainer.lr_scheduler_configs:
            raise UserError(
                "AutoLRSCallback needs a module with one optimizer, automatic optimization and no learning-rate "
                f"scheduler; {type(pl_module).__name__} has {len(trainer.optimizers)} optimizers and "
                f"{len(trainer.lr_scheduler_configs)} schedulers"
            )
        validate = scorer(pl_module, self._validate)
        self._driver = Driver(self._policy, trainer.optimizers[0], pl_module, validate=validate)
        self.history, self._seen = self._driver.history, trainer.global_step

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Tell the policy, where this batch completed a step."""
        self._loss.add(outputs["loss"] if isinstance(outputs, dict) else _required(outputs))
        if trainer.global_step > self._seen:
            self._seen = trainer.global_step
            self._driver.took_step(self._loss.take())
        trainer.should_stop = trainer.should_stop or not self._driver.going


def _required(outputs: Any) -> Tensor:
    if not isinstance(outputs, Tensor):
        raise UserError("AutoLRSCallback needs the loss: let training_step return it, or a dictionary with 'loss'")
    return outputs
