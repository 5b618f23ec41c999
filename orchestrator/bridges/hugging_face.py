"""AutoLRS as a callback of Hugging Face's Trainer:    Trainer(…, callbacks=[AutoLRSCallback(steps=1000)])"""

from collections.abc import Callable
from typing import Any

from torch import nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from orchestrator.bridges.steps import StepLoss, scorer
from orchestrator.errors import UserError
from orchestrator.learning_rate.autolrs import AutoLRS
from orchestrator.learning_rate.drive import Driver, History
from orchestrator.learning_rate.rungs import AutoLRSOptions


class AutoLRSCallback(TrainerCallback):
    """Finds the rate, sets it before every step, and ends the training once `steps` real ones are done.

    The rate of TrainingArguments and its scheduler are overruled. `max_steps` must leave room for the search: at most
    12.5 % on top of `steps`, 20 % below 800. The model must return its loss, as Hugging Face's do when given labels.
    `validate`: the loss on held-out data, with the model in `eval` mode; None: training losses decide. After the
    training, `history` has the rate and loss of every real step.
    """

    def __init__(
        self, steps: int, options: AutoLRSOptions | None = None, validate: Callable[[nn.Module], float] | None = None
    ) -> None:
        self._policy = AutoLRS(steps, options=options)
        self._validate = validate
        self._loss = StepLoss()
        self.history = History()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **parts: Any
    ) -> None:
        """Set the first rate."""
        cost = self._policy.cost()
        if state.max_steps < cost.train_steps + cost.probe_steps:
            raise UserError(
                f"max_steps is {state.max_steps}, and AutoLRSCallback may need {cost.train_steps + cost.probe_steps} "
                f"for {cost.train_steps} real ones and its search; raise it"
            )
        model: nn.Module = parts["model"]
        self._hook = model.register_forward_hook(self._note)
        validate = scorer(model, self._validate)
        self._driver = Driver(self._policy, _inner(parts["optimizer"]), model, validate=validate)
        self.history = self._driver.history
        self._rate = self._rates(parts)

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **parts: Any
    ) -> None:
        """The scheduler has set a rate of its own after the last step."""
        for group, rate in zip(parts["optimizer"].param_groups, self._rate, strict=True):
            group["lr"] = rate

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **parts: Any) -> None:
        """Tell the policy."""
        self._driver.took_step(self._loss.take())
        self._rate = self._rates(parts)
        control.should_training_stop = control.should_training_stop or not self._driver.going

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **parts: Any) -> None:
        """Leave the model as it was."""
        self._hook.remove()

    def _rates(self, parts: dict[str, Any]) -> list[float]:
        return [group["lr"] for group in parts["optimizer"].param_groups]

    def _note(self, model: nn.Module, inputs: Any, outputs: Any) -> None:
        if model.training:
            self._loss.add(outputs["loss"] if "loss" in outputs else outputs[0])


def _inner(optimizer: Any) -> Any:
    """Accelerate wraps the optimizer, and hides whether it has modes."""
    return getattr(optimizer, "optimizer", optimizer)
