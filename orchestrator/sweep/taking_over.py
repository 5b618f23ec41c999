"""A training goes on from the state of another one, or from an earlier one of its own."""

import shutil
from pathlib import Path

from orchestrator.cluster.snapshots import SnapshotStore
from orchestrator.run_folder import SNAPSHOTS


def take_over(source: Path, step: int, own: Path) -> None:
    """Let run folder `own` stand at the snapshot of `step`, the end of a stage, of run folder `source`.

    A kill on the way leaves `own` with an earlier snapshot of its own.
    """
    store = SnapshotStore(own / SNAPSHOTS)
    if source == own:
        store.discard_after(step)
        return
    name = f"step-{step:06d}"
    unfinished = store.begin()
    shutil.copytree(source / SNAPSHOTS / name, unfinished, dirs_exist_ok=True)
    store.discard_after(step - 1)
    unfinished.rename(own / SNAPSHOTS / name)
