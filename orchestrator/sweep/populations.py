"""The outer search: many trainings side by side whose settings Ray Tune chooses, with every step of each one counted.

asha ends the worse ones early (arXiv 1810.05934); pbt lets the worst go on from the state of the best with settings
changed at random (arXiv 1711.09846), pb2 with settings that a Gaussian process proposes (arXiv 2002.02518). On one
machine trainings take turns, so that equal seeds give equal outcomes however fast it is.
"""

import math
import os
import random
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import ray
import ray.cloudpickle
from ray import tune
from ray.tune.schedulers import ASHAScheduler, PopulationBasedTraining, TrialScheduler
from ray.tune.schedulers.pb2 import PB2
from ray.tune.search import BasicVariantGenerator
from sklearn.exceptions import ConvergenceWarning

from orchestrator.errors import UserError

Settings = Mapping[str, float]
Space = Mapping[str, tuple[float, float]]

SEARCHES = ("asha", "pbt", "pb2")
DIVERGED = 1e6  # stands for a loss that is not finite
QUANTILE = 0.25  # of a population: the share that is replaced, and that it is replaced by
EARLIEST = 8  # asha ends no training before its steps over this
LOSS, STATE = "loss", "state"


class Tunable(Protocol):
    """One training that can be taken up, told its settings and let go on."""

    def train(self, settings: Settings, steps: int) -> float:
        """Go on for so many steps; returns the validation loss that it has then."""

    def state(self) -> bytes:
        """All that it needs to go on from here."""

    def load_state(self, state: bytes) -> None:
        """Go on from what `state` gave, of this training or another one."""


@dataclass(frozen=True)
class Sweep:
    """What to search, and how.

    space: setting → its lowest and highest value, both above 0; values are drawn evenly on a logarithmic scale.
    trainings: how many. steps: of each that goes to the end, in `rounds` equal pieces after which they are compared.
    search_paths: folders from which the workers import a person's own modules.
    """

    search: str
    space: Space
    trainings: int
    steps: int
    rounds: int = 16
    seed: int = 0
    search_paths: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.search not in SEARCHES:
            raise UserError(f"search is {self.search}: set it to {', '.join(SEARCHES)}.")
        if self.trainings < 2:
            raise UserError(f"trainings is {self.trainings}, and nothing can be compared: set it to 2 or more.")
        if self.rounds < 1 or self.steps % self.rounds:
            raise UserError(f"steps is {self.steps}, not a multiple of rounds = {self.rounds}: change one of them.")
        for name, (low, high) in self.space.items():
            if not 0 < low < high < math.inf:
                raise UserError(f"space has {name} from {low} to {high}: set it to two rising numbers above 0.")

    @property
    def round_steps(self) -> int:
        """Steps between two comparisons."""
        return self.steps // self.rounds

    def config(self, settings: Settings) -> dict[str, float]:
        """Settings as Tune sees them: pb2 knows no logarithmic scale."""
        return {name: math.log10(value) if self.search == "pb2" else value for name, value in settings.items()}

    def settings(self, config: Mapping[str, float]) -> dict[str, float]:
        """The inverse."""
        return {name: 10**value if self.search == "pb2" else value for name, value in config.items()}


@dataclass(frozen=True)
class Swept:
    """The training with the lowest loss among those that went to the end, and what all of them took together.

    settings: its last ones. steps: optimizer steps of all trainings, those that came to nothing too.
    """

    settings: Settings
    loss: float
    state: bytes
    steps: int


def sweep(make: Callable[[], Tunable], options: Sweep) -> Swept:
    """Search. Ray must be connected; each training is made by `make` in a Ray worker."""
    os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")  # nobody would read Tune's own files
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")  # the new one is never quiet
    counter = _Counter()
    with tempfile.TemporaryDirectory() as folder, _seeded(options.seed):
        training = tune.with_parameters(_InPieces, make=ray.cloudpickle.dumps(make), options=options)
        results = tune.Tuner(
            tune.with_resources(training, {"cpu": _whole_machine()}),
            param_space={name: tune.uniform(*ends) for name, ends in options.space.items()},
            tune_config=tune.TuneConfig(
                metric=LOSS,
                mode="min",
                scheduler=_scheduler(options),
                search_alg=BasicVariantGenerator(points_to_evaluate=_beginnings(options)),
                num_samples=options.trainings,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(
                storage_path=folder,
                stop={"training_iteration": options.rounds},
                failure_config=tune.FailureConfig(fail_fast=True),
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=True),
                callbacks=[counter],
                verbose=0,
            ),
        ).fit()
        best = _best(results, options.rounds)
        with best.checkpoint.as_directory() as place:
            state = (Path(place) / STATE).read_bytes()
    return Swept(options.settings(best.config), best.metrics[LOSS], state, counter.rounds * options.round_steps)


class _InPieces(tune.Trainable):  # type: ignore[misc]
    """A training as Tune wants it: an iteration is a round."""

    def setup(self, config: dict[str, Any], make: bytes, options: Sweep) -> None:
        sys.path[:0] = [path for path in options.search_paths if path not in sys.path]
        self._make: Callable[[], Tunable] = ray.cloudpickle.loads(make)
        self._options = options
        self._training = self._make()

    def step(self) -> dict[str, float]:
        loss = self._training.train(self._options.settings(self.config), self._options.round_steps)
        return {LOSS: loss if math.isfinite(loss) else DIVERGED}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        (Path(checkpoint_dir) / STATE).write_bytes(self._training.state())

    def load_checkpoint(self, checkpoint_dir: str) -> None:
        self._training.load_state((Path(checkpoint_dir) / STATE).read_bytes())

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Another training takes this process over; one that was begun brings its state along."""
        self._training = self._make()
        return True


class _Counter(tune.Callback):  # type: ignore[misc]
    """Counts rounds as they end, whatever becomes of their training."""

    def __init__(self) -> None:
        self.rounds = 0

    def on_trial_result(self, iteration: int, trials: list[Any], trial: Any, result: Any, **_: Any) -> None:
        self.rounds += 1


def _scheduler(options: Sweep) -> TrialScheduler:
    at_once = {"time_attr": "training_iteration", "perturbation_interval": 1, "synch": True, "log_config": False}
    if options.search == "asha":
        earliest = max(1, options.rounds // EARLIEST)
        return ASHAScheduler(max_t=options.rounds, grace_period=earliest, reduction_factor=2)
    if options.search == "pb2":
        bounds = {name: [math.log10(low), math.log10(high)] for name, (low, high) in options.space.items()}
        return PB2(hyperparam_bounds=bounds, quantile_fraction=QUANTILE, **at_once)
    return PopulationBasedTraining(
        hyperparam_mutations={name: tune.loguniform(*ends) for name, ends in options.space.items()},
        quantile_fraction=QUANTILE,
        **at_once,
    )


def _beginnings(options: Sweep) -> list[dict[str, float]]:
    """Settings of each training at first: evenly spread, every setting in an order of its own."""
    generator = np.random.default_rng(options.seed)
    parts = (np.arange(options.trainings) + 0.5) / options.trainings
    spread = {name: low * (high / low) ** generator.permutation(parts) for name, (low, high) in options.space.items()}
    first = ({name: float(values[number]) for name, values in spread.items()} for number in range(options.trainings))
    return [options.config(settings) for settings in first]


def _whole_machine() -> float:
    """CPUs of the largest node: what asks for that many has it for itself."""
    return max(float(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"])


def _best(results: Any, rounds: int) -> Any:
    failed = next(iter(results.errors), None)
    if failed is not None:
        raise failed
    whole = [result for result in results if result.metrics["training_iteration"] == rounds]
    return min(whole, key=lambda result: result.metrics[LOSS])


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Tune draws from Python's and numpy's own generators, which are put back afterwards.

    What its Gaussian process finds hard to fit is nobody's to mend.
    """
    before = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed % 2**32)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
