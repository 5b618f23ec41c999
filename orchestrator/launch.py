"""The story of one launch: configuration → workers → what the learning-rate policy asks for → result.

Everything that happens is one event; the recorders make the journal, MLflow, the terminal and the report of it.
"""

import uuid
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from time import time

from orchestrator.cluster import connection
from orchestrator.cluster.crew import Crew
from orchestrator.config import Config, granted_targets, recorded_config
from orchestrator.errors import UserError
from orchestrator.events import Recorder, RunEnded, RunStarted
from orchestrator.journal_file import JOURNAL, read_journal
from orchestrator.learning_rate import make_policy
from orchestrator.long_context import check_long_context
from orchestrator.names import LONGEST_RUN, short_name
from orchestrator.outcome import carried_through
from orchestrator.past import taught
from orchestrator.recorders.mlflow.store import checked_uri
from orchestrator.recording import Recording
from orchestrator.run_folder import require_new, require_no_links
from orchestrator.task_data import check_task_data
from orchestrator.training import cluster_options
from orchestrator.words import policy_name, task_name


def launch(config: Config, folder: Path, listeners: Sequence[Recorder] = (), crew: Crew | None = None) -> int:
    """Train from the beginning in a new run folder; returns the exit status.

    listeners: hear of its events besides its own recorders. crew: see `train`.
    """
    require_new(folder)
    check_beforehand(config)
    config, past = taught(config)
    with Recording(config, folder, listeners) as recording:
        values = config.to_json()
        run_id = short_name(f"{task_name(values)}-{policy_name(values)}-{uuid.uuid4().hex[:8]}", LONGEST_RUN)
        cost = make_policy(config.lr, config.steps, config.seed).cost()
        recording.emit(RunStarted(run_id, str(folder), values, asdict(cost), time(), past))
        return carried_through(config, folder, recording, run_id, crew)


def resume(folder: Path, grants: Sequence[str]) -> int:
    """Go on with an interrupted run; its outcome equals the undisturbed run's. `grants`: KEY._target_=CLASS each."""
    return go_on(recorded_config(_start_of(folder).config, granted_targets(grants)), folder)


def go_on(config: Config, folder: Path, listeners: Sequence[Recorder] = (), crew: Crew | None = None) -> int:
    """`resume` with a configuration that whoever launches has at hand."""
    started = _start_of(folder)
    with Recording(config, folder, listeners) as recording:
        return carried_through(config, folder, recording, started.run_id, crew)


def _start_of(folder: Path) -> RunStarted:
    """How an interrupted run began. UserError where there is none."""
    require_no_links(folder)
    events = read_journal(folder / JOURNAL)
    if not events or not isinstance(started := events[0], RunStarted):
        raise UserError(f"{folder} holds nothing to resume: its journal ends before the run began; start it anew")
    if isinstance(events[-1], RunEnded) and events[-1].state == "FINISHED":
        raise UserError(f"{folder} holds a finished run; its outcome is in {folder}/result.json")
    return started


def check_beforehand(config: Config) -> None:
    """Whatever can be known to be wrong before anything is started or written."""
    connection.check_beforehand(cluster_options(config))
    if config.tracking.uri is not None:
        checked_uri(config.tracking.uri)
    check_task_data(config)
    check_long_context(config)
