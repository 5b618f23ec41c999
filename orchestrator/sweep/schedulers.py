"""Which trials Ray Tune ends early, or lets go on from the state of better ones."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from ray.tune.schedulers import ASHAScheduler, FIFOScheduler, TrialScheduler
from ray.tune.schedulers.pb2 import PB2

from orchestrator.events import Validated
from orchestrator.journal_file import JOURNAL, read_journal
from orchestrator.run_state import RunState
from orchestrator.sweep.book import Book
from orchestrator.sweep.plan import Plan
from orchestrator.sweep.searcher import tune_key, tune_value
from orchestrator.sweep.trainable import LOSS, RUN_FOLDER, STEP

EARLIEST = 8  # asha ends no trial before its steps over this
REDUCTION = 2  # asha lets one in so many go on at each of its rungs
QUANTILE = 0.25  # of a population: the share that is replaced, and that it is replaced by


def scheduler(plan: Plan, book: Book) -> TrialScheduler:
    """The scheduler of a search, as it stood when the last trial of the book had ended."""
    if plan.search == "asha":
        return _rungs(plan, book)
    return _population(plan) if plan.search == "pb2" else FIFOScheduler()


class Population(PB2):  # type: ignore[misc]
    """PB2 whose trials stay in their own run folders, and get their first values from a searcher."""

    def __init__(self, seed: int, **options: Any) -> None:
        super().__init__(**options)
        self._draws = np.random.default_rng(seed)

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        """One more trial. Tune refuses searchers here, for most would go on searching."""
        super().on_trial_add(SimpleNamespace(search_alg=None), trial)

    def _get_new_config(self, trial: Any, trial_to_clone: Any) -> Any:
        """What it takes from a better trial, with another rate; drawn at random where PB2 knows too little yet."""
        new, operations = super()._get_new_config(trial, trial_to_clone)
        ((key, ends),) = self._hyperparam_bounds.items()
        if new[key] == trial_to_clone.config[key]:
            new = new | {key: float(self._draws.uniform(*ends))}
        return new | {RUN_FOLDER: trial.config[RUN_FOLDER]}, operations


def _population(plan: Plan) -> Population:
    (each,) = plan.space
    return Population(
        plan.seed,
        time_attr=STEP,
        metric=LOSS,
        mode="min",
        perturbation_interval=plan.config.steps // plan.rounds,
        hyperparam_bounds={tune_key(plan, each): [tune_value(plan, each, end) for end in each.ends]},
        quantile_fraction=QUANTILE,
        synch=True,
        log_config=False,
    )


def _rungs(plan: Plan, book: Book) -> ASHAScheduler:
    steps = max(config.steps for config in (plan.config, *plan.corners))
    rungs = ASHAScheduler(STEP, LOSS, "min", steps, max(1, steps // EARLIEST), REDUCTION, stop_last_trials=False)
    for trial in book.trials:
        if trial.state != RunState.RUNNING:
            _replay(book.folder_of(trial), rungs, trial.name)
    return rungs


def _replay(folder: Path, rungs: ASHAScheduler, name: str) -> None:
    """Tell of a trial that an earlier process has seen."""
    stand_in = SimpleNamespace(trial_id=name)
    rungs.on_trial_add(None, stand_in)
    events = read_journal(folder / JOURNAL) if (folder / JOURNAL).is_file() else []
    for event in events:
        if isinstance(event, Validated) and event.split == "validation":
            rungs.on_trial_result(None, stand_in, {STEP: event.step, LOSS: event.metrics["loss"]})
    rungs.on_trial_remove(None, stand_in)
