"""The sweep as Ray Tune sees it: a searcher that hands out trials, interrupted ones first, and notes their ends."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ray.tune.search import Searcher

from orchestrator.run_folder import read_result
from orchestrator.run_state import RunState
from orchestrator.sweep.book import Book, Trial
from orchestrator.sweep.ending import Ending
from orchestrator.sweep.plan import WHILE_TRAINING, Plan
from orchestrator.sweep.proposals import proposal
from orchestrator.sweep.space import Dimension, Value
from orchestrator.sweep.trainable import EXPONENT, LOSS, RUN_FOLDER, STEP

Told = Callable[[Trial], None]


class BookSearcher(Searcher):  # type: ignore[misc]
    """Any of our searches over a book's trials. `told` hears of each trial as it goes on.

    A trial that ends because the whole sweep does counts as interrupted.
    """

    def __init__(self, plan: Plan, book: Book, told: Told, ending: Ending) -> None:
        super().__init__(metric=LOSS, mode="min")
        self._plan, self._book, self._told, self._ending = plan, book, told, ending
        self._interrupted = [trial for trial in book.trials if trial.state == RunState.RUNNING]
        self._under_way: dict[str, Trial] = {}

    def suggest(self, trial_id: str) -> dict[str, Any] | str:
        """The configuration of Tune's next trial."""
        trial = None if self._ending.stop_all() else self._next()
        if trial is None:
            return str(Searcher.FINISHED)
        self._under_way[trial_id] = trial
        self._told(trial)
        plan, values = self._plan, trial.values
        config = {tune_key(plan, each): tune_value(plan, each, values[each.key]) for each in plan.space}
        return {RUN_FOLDER: str(self._book.folder_of(trial)), **config}

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """A validation, maybe with another rate than before."""
        trial = replace(self._under_way[trial_id], loss=result[LOSS], steps=result[STEP])
        if self._plan.search == "pb2" and not math.isclose(result["rate"], float(trial.values[WHILE_TRAINING])):
            trial = replace(trial, values={WHILE_TRAINING: result["rate"]})
            self._book.change(trial)
        self._under_way[trial_id] = trial
        self._told(trial)

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """The end, whatever it is."""
        trial = self._under_way.pop(trial_id)
        if self._ending.stop_all():
            return
        if result is not None and not error:
            trial = replace(trial, loss=result[LOSS], steps=result[STEP], seconds=result["seconds"])
        ended = self._ended(trial, error)
        self._book.end(ended)
        self._told(ended)

    def __getstate__(self) -> dict[str, Any]:
        """Nothing of it goes into Tune's own files: all state is the book's."""
        return {}

    def save(self, checkpoint_path: str) -> None:
        """As `__getstate__`."""

    def restore(self, checkpoint_path: str) -> None:
        """As `__getstate__`."""

    def _next(self) -> Trial | None:
        if self._interrupted:
            return self._interrupted.pop(0)
        if len(self._book.trials) == self._plan.trials:
            return None
        earlier = [trial.tried for trial in self._book.trials]
        return self._book.begin(proposal(self._plan.search, self._plan.space, self._plan.seed, earlier))

    def _ended(self, trial: Trial, error: bool) -> Trial:
        found = read_result(self._book.folder_of(trial))
        if found.get("state") == RunState.FINISHED:
            return trial.finished(found)
        if not error:
            return replace(trial, state=RunState.KILLED, reason="the search ended it early")
        reason = str(found.get("reason") or "its process died").splitlines()[0]
        return replace(trial, state=RunState.FAILED, seconds=float(found.get("wall_seconds", 0.0)), reason=reason)


def tune_key(plan: Plan, each: Dimension) -> str:
    """A key as Tune has it: pb2 knows no logarithmic scale."""
    return EXPONENT + each.key if plan.search == "pb2" and each.logarithmic else each.key


def tune_value(plan: Plan, each: Dimension, value: Value) -> Value:
    """A value as Tune has it."""
    return math.log10(float(value)) if tune_key(plan, each) != each.key else value
