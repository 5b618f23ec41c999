"""Runs that ended while MLflow was away: their spools are delivered by the next run that reaches the same store."""

from contextlib import closing
from pathlib import Path

from orchestrator.recorders.mlflow.spool import SPOOL, Spool, SpoolBusyError
from orchestrator.recorders.mlflow.store import Store
from orchestrator.recorders.secrets import mask


def replay(outputs: Path, store: Store) -> list[Path]:
    """Deliver what is left over in the run folders under `outputs` to the store it was meant for.

    Runs that are alive are left alone; one whose process died without a word ends as KILLED. Returns the folders done.
    """
    done = []
    for path in sorted(outputs.rglob(SPOOL)):
        try:
            spool = Spool(path.parent)
        except SpoolBusyError:
            continue
        with closing(spool):
            experiment = spool.noted("experiment")
            if experiment is not None and spool.noted("uri") == mask(store.uri):
                _finish(spool, store, experiment)
                done.append(path.parent)
    return done


def _finish(spool: Spool, store: Store, experiment: str) -> None:
    operations, _ = spool.pending(limit=None)
    if not operations or operations[-1]["op"] != "status":
        spool.append({"op": "status", "state": "KILLED"})
    store.attach(spool, experiment)
    store.deliver(spool)
