"""A sweep in MLflow: the parent of its trials' runs, with the table, the figure and the best configuration."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.events import Json, RunEnded
from orchestrator.recorders.mlflow import MlflowRecorder
from orchestrator.run_state import RunState
from orchestrator.stopping import Stopped
from orchestrator.sweep.book import Book, best_of
from orchestrator.sweep.plan import Plan


@contextmanager
def tracked(plan: Plan, book: Book) -> Iterator[None]:
    """RUNNING inside the block; whatever lies in the folder at its end goes along."""
    tracking = plan.config.tracking
    if tracking.uri is None:
        yield
        return
    parent = MlflowRecorder(book.folder, tracking.uri, tracking.experiment, Path(plan.config.outputs))
    state = RunState.FAILED
    try:
        yield
        state = RunState.FINISHED
    except Stopped:
        state = RunState.KILLED
        raise
    finally:
        parent.record(RunEnded(state, None, _result(book)))
        parent.close()
        if parent.notice:
            print(parent.notice)


def _result(book: Book) -> Json:
    """What sweeps are compared by."""
    best = best_of(book.trials)
    return {} if best is None else {"validation_loss": best.loss, "best_trial": best.number + 1}
