"""What is left to do when the runs of one launch have ended: compare them, and let MLflow have that as their parent."""

from collections.abc import Sequence
from pathlib import Path

from orchestrator.compare import compare
from orchestrator.events import RunEnded, RunStarted
from orchestrator.journal_file import JOURNAL, read_journal
from orchestrator.recorders.mlflow import MlflowRecorder
from orchestrator.words import part_of


def conclude(folder: Path, runs: Sequence[Path], state: str) -> None:
    """Table and figure of the runs, also into `folder`, to which they belong. `state`: how the whole launch ended."""
    compare(runs, folder)
    started = next(iter(read_journal(runs[0] / JOURNAL)), None)
    if not isinstance(started, RunStarted):
        return
    tracking = part_of(started.config, "tracking")
    if tracking.get("uri") is None:
        return
    outputs = Path(started.config["outputs"])
    parent = MlflowRecorder(folder, tracking["uri"], tracking["experiment"], outputs, earlier=[started])
    parent.record(RunEnded(state, None, {}))
    parent.close()
    if parent.notice:
        print(parent.notice)
