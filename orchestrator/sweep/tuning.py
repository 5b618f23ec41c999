"""The trials carried out by Ray Tune, as many at once as the cluster holds."""

import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from orchestrator.sweep.book import Book, Trial
from orchestrator.sweep.plan import Plan

_ENVIRONMENT = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # nobody would read Tune's own files
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # we have one that knows SIGTERM as well
    "RAY_AIR_NEW_OUTPUT": "0",  # the new one is never quiet
}


def carry_out(plan: Plan, book: Book, told: Callable[[Trial], None]) -> None:
    """Make all trials that the plan asks for and the book lacks; `told` hears of each as it goes on.

    Raises Stopped at SIGINT or SIGTERM, once the trials under way have ended.
    """
    os.environ.update(_ENVIRONMENT)
    if plan.search == "pb2":  # all of a population must be there before any is compared
        os.environ["TUNE_MAX_PENDING_TRIALS_PG"] = str(plan.trials)
    from ray import tune

    from orchestrator.sweep.ending import Ending
    from orchestrator.sweep.schedulers import scheduler
    from orchestrator.sweep.searcher import BookSearcher
    from orchestrator.sweep.trainable import as_trainable

    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)  # failures are told of by us, in a sentence each
    ending = Ending()
    with tempfile.TemporaryDirectory() as storage, ending.at_signals():
        tune.Tuner(
            as_trainable([*plan.fixed, f"+parent={_quoted(book.folder)}"], book.folder, by_stages=plan.search == "pb2"),
            tune_config=tune.TuneConfig(
                search_alg=BookSearcher(plan, book, told, ending),
                scheduler=scheduler(plan, book),
                num_samples=plan.trials,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(storage_path=storage, stop=ending, verbose=0),
        ).fit()


def _quoted(path: Path) -> str:
    """For Hydra's grammar."""
    return "'" + str(path).replace("'", "\\'") + "'"
