"""Our distributed trainings as trials of Ray Tune: `as_trainable(overrides, folder)`.

tuner = tune.Tuner(
    as_trainable(["task=tabular", "lr=cosine", "cluster.workers=2"], "runs"),
    param_space={"lr.rate": tune.loguniform(1e-4, 1e-1)},
    tune_config=tune.TuneConfig(metric="validation_loss", mode="min", num_samples=8),
)
"""

import json
import math
import os
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

from ray import tune
from ray.util import get_node_ip_address

from orchestrator.cluster.crew import Crew
from orchestrator.cluster.placement import bundles
from orchestrator.composing import configured
from orchestrator.config import Config
from orchestrator.errors import UserError
from orchestrator.plan_choice import choose_plan
from orchestrator.run_folder import read_result
from orchestrator.run_state import RunState
from orchestrator.sweep.running import Report, Running
from orchestrator.sweep.space import overrides
from orchestrator.sweep.taking_over import take_over
from orchestrator.training import job_spec, probe_replicas

LOSS, STEP = "validation_loss", "step"
RUN_FOLDER = "hydra.run.dir"
EXPONENT = "log10:"  # before a key whose value is the decimal logarithm of what it means
DIVERGED = 1e6  # stands for a loss that is not finite, on which Tune's schedulers choke
_ENDED = "the search ended it early"
_PLACE = "place.json"


class TrialFailed(Exception):  # noqa: N818
    """A run of ours that ended without a result; says why."""


def as_trainable(fixed: Sequence[str], folder: str | os.PathLike[str], by_stages: bool = False) -> Any:
    """Ray Tune's trainable for `orchestrate run` with these overrides; Tune's configuration has further ones by key.

    A trial is one distributed training. It reports `validation_loss`, `step` (real optimizer steps), `rate` and
    `seconds` at each validation, with `by_stages` at each stage's end, where it waits. Its run folder is
    `folder`/TRIAL_ID, or what `hydra.run.dir` in its configuration says, on the machine that this is called on; a trial
    that Tune restores or starts again goes on from there. It takes room for its workers, in its own placement group,
    and none for itself. Ray must be connected.

    Raises UserError for a configuration that is wrong. A trial that fails ends alone, as an error that says why; one
    that a scheduler stops is KILLED in its folder and in MLflow.
    """
    place, where, waits = Path(folder).absolute(), Path.cwd(), by_stages

    class Training(_Training):
        """Bound to its overrides; a class of its own, for Tune makes the instances."""

        fixed_overrides = tuple(fixed)
        runs = place
        cwd = where
        by_stages = waits

    return tune.with_resources(Training, _room(configured(fixed)))


class _Training(tune.Trainable):  # type: ignore[misc]
    """A trial as Tune wants it: an iteration goes to the next report."""

    fixed_overrides: tuple[str, ...]
    runs: Path
    cwd: Path
    by_stages: bool

    def setup(self, config: dict[str, Any]) -> None:
        self._crew = Crew()
        self._running: Running | None = None
        self._source: dict[str, Any] | None = None

    def step(self) -> dict[str, Any]:
        self._running = self._running or self._begun()
        report = self._running.next()
        if report is not None:
            return {**_told(report), "done": False}
        result = read_result(self._folder)
        if result.get("state") != RunState.FINISHED:
            raise TrialFailed(result.get("reason") or "it ended without a reason")
        return {**_told(self._running.last), "done": True}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Where the training stands; its state is in its run folder."""
        place = self._source
        if self._running is not None and self._running.last is not None:
            place = {"folder": str(self._folder), "step": self._running.last.step}
        (Path(checkpoint_dir) / _PLACE).write_text(json.dumps(place))

    def load_checkpoint(self, checkpoint_dir: str) -> None:
        """Go on from what this or another trial had saved, once it steps."""
        self._end()
        self._source = json.loads((Path(checkpoint_dir) / _PLACE).read_text())

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Another trial takes this process and the workers over."""
        self._end()
        return True

    def cleanup(self) -> None:
        self._end()
        self._crew.end()

    @property
    def _folder(self) -> Path:
        return Path(self.config.get(RUN_FOLDER, self.runs / self.trial_id))

    def _begun(self) -> Running:
        with chdir(self.cwd):
            config = configured([*self.fixed_overrides, *overrides(_values(self.config))])
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._source is not None:
            take_over(Path(self._source["folder"]), self._source["step"], self._folder)
        return Running(config, self._folder, self._crew, self.by_stages)

    def _end(self) -> None:
        if self._running is not None:
            self._running.end(_ENDED)
        self._running = self._source = None


def _values(config: dict[str, Any]) -> dict[str, Any]:
    """Tune's configuration as keys of ours."""
    plain = {key: value for key, value in config.items() if key != RUN_FOLDER and not key.startswith(EXPONENT)}
    return plain | {key.removeprefix(EXPONENT): 10**value for key, value in config.items() if key.startswith(EXPONENT)}


def _told(report: Report | None) -> dict[str, Any]:
    if report is None:
        return {LOSS: DIVERGED, STEP: 0, "rate": None, "seconds": 0.0}
    loss = report.loss if math.isfinite(report.loss) else DIVERGED
    return {LOSS: loss, STEP: report.step, "rate": report.rate, "seconds": report.seconds}


def _room(config: Config) -> tune.PlacementGroupFactory:
    """A bundle on this machine for the trial itself, which needs no core, and one for each of its workers."""
    import ray

    spec = job_spec(config, "trial", choose_plan(config))
    here = f"node:{get_node_ip_address()}"
    if here not in ray.cluster_resources():
        raise UserError("this machine is no node of the Ray cluster: start the sweep on one of them")
    gangs = 1 + probe_replicas(config)
    return tune.PlacementGroupFactory([{here: 0.001}, *bundles(spec) * gangs], strategy="PACK")
