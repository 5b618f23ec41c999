"""What people report of trackers elsewhere: they refuse values, crash on a fresh database, or end a training."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import UserError
from orchestrator.events import RunEnded, RunStarted, StepsTrained
from orchestrator.recorders.mlflow import MlflowRecorder
from orchestrator.recorders.mlflow.operations import Operations
from orchestrator.recorders.mlflow.spool import SPOOL
from orchestrator.recorders.mlflow.store import Store, checked_uri
from orchestrator.run_state import RunState, classified
from orchestrator.stopping import Stopped

STARTED = RunStarted("r", "outputs/r", {"lr": {"name": "autolrs"}, "seed": 0}, {}, 0.0)
ENDED = RunEnded("FINISHED", None, {"state": "FINISHED"})

ONE_RUN = """
import sys, time
from pathlib import Path
from orchestrator.events import JobReady, RunEnded, RunStarted, StepsTrained
from orchestrator.recorders.mlflow import MlflowRecorder

folder, uri, way = sys.argv[1:]
recorder = MlflowRecorder(Path(folder), uri, "t", Path(folder).parent, close_seconds=180)
recorder.record(RunStarted("r", folder, {"seed": 0}, {}, 0.0))
recorder.record(StepsTrained(1, 0, [0.1], [2.0], 0.1))
while way == "stay":
    print(recorder.run_id() or "", flush=True)
    time.sleep(0.1)
recorder.record(RunEnded("FINISHED", None, {"state": "FINISHED"}))
recorder.close()
assert recorder.notice is None, recorder.notice
"""


def test_a_rate_that_changes_is_no_param_that_changes_ray_27783() -> None:
    operations = Operations()
    sent = operations.of(STARTED)
    sent += operations.of(StepsTrained(1, 0, [0.1, 0.2], [3.0, 2.0], 0.1))
    sent += operations.of(StepsTrained(2, 2, [0.4], [1.0], 0.1))
    assert [each["op"] for each in sent].count("params") == 1
    points: list[Any] = [point for each in sent if each["op"] == "metrics" for point in each["values"]]
    assert [point[1] for point in points if point[0] == "lr"] == [0.1, 0.2, 0.4]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_told_to_end_is_not_left_running_skyrl_1516(number: int) -> None:
    outcome = classified(Stopped(number))
    assert (outcome.state, outcome.status) == (RunState.KILLED, 128 + number)


@pytest.mark.slow
def test_a_run_whose_process_was_killed_is_not_left_running_mlflow_1832(tmp_path: Path) -> None:
    import mlflow

    uri = f"sqlite:///{tmp_path}/mlflow.db"
    command = [sys.executable, "-c", ONE_RUN, str(tmp_path / "run"), uri, "stay"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        run_id = next(line.strip() for line in process.stdout if line.strip())
        process.kill()
    client = mlflow.MlflowClient(tracking_uri=uri)
    assert client.get_run(run_id).info.status == "RUNNING"
    assert list(Store(uri).reap()) == [run_id]
    assert client.get_run(run_id).info.status == "KILLED"


@pytest.mark.slow
def test_six_processes_on_a_fresh_database_do_not_crash_hydraflow_245(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    commands = [[sys.executable, "-c", ONE_RUN, str(tmp_path / str(run)), uri, "go"] for run in range(6)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for command in commands]
    assert [process.communicate()[1] for process in processes] == [b""] * 6


def test_a_tracker_that_is_not_there_does_not_end_training_miles_2571(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        uri = f"http://127.0.0.1:{taken.getsockname()[1]}"
        recorder = MlflowRecorder(tmp_path / "run", uri, "t", tmp_path, close_seconds=0.5)
        begin = time.monotonic()
        for event in (STARTED, StepsTrained(1, 0, [0.1], [2.0], 0.1), ENDED):
            recorder.record(event)
        assert time.monotonic() - begin < 5
        recorder.close()
    assert recorder.notice is not None
    assert SPOOL in recorder.notice
    assert len((tmp_path / "run" / SPOOL).read_text().splitlines()) >= 3


def test_a_folder_store_is_refused_with_the_way_out_mlflow_18534() -> None:
    with pytest.raises(UserError, match="mlflow migrate-filestore"):
        checked_uri("./mlruns")


def test_no_process_but_the_drivers_opens_the_tracking_store_mlflow_4123() -> None:
    """Workers import nothing that could."""
    script = "import sys, orchestrator.cluster.worker; sys.exit('mlflow' in sys.modules or 'sqlite3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, env={**os.environ}).returncode == 0
