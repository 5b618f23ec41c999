"""A trained model that answers: rebuilt from its run's configuration and weights, in any process and without Ray."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from orchestrator.config import Config, build, recorded_config
from orchestrator.errors import UserError
from orchestrator.events import Json


class Predictor:
    """The model that a run ended with, on a CPU.

    configuration: as the run recorded it. Classes that it names and that do not come with the installation are used
    only if they are among those `trusted`, and must be importable; else a UserError says so.
    """

    def __init__(self, configuration: Json, weights: Path, trusted: Iterable[str] = ()) -> None:
        from trainers.weights import load_weights  # torch takes a second to load

        config = _known(configuration, trusted)
        self._task = build(_in_one_process(config.task))
        self._model = self._task.build_model().eval()
        load_weights(self._model, weights)

    def predict(self, inputs: Any, **options: Any) -> Any:
        """What the task's `predict` makes of the inputs: arrays, tables, or texts, as the task has it."""
        import torch

        with torch.no_grad():
            return self._task.predict(self._model, inputs, **options)


def _known(configuration: Json, trusted: Iterable[str]) -> Config:
    try:
        return recorded_config(configuration, trusted)
    except UserError as error:
        reason = str(error).partition("; if you trust it")[0]
        raise UserError(
            f"{reason}; if you trust it and it can be imported here, pass "
            "model_config={'trusted': ['MODULE.CLASS']} to load_model"
        ) from error


def _in_one_process(task: Json) -> Json:
    """Experts were spread over the workers' cluster; here they are all in one place."""
    return task | {"cluster": None} if "cluster" in task else task
