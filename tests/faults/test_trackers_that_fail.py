"""What MLflow suffers while a whole run tells it of itself: training does not wait, and nothing is missing after it."""

import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from benchmarks.orchestration import recording_seconds
from chaos_parts.faults import Tracking
from harness import CONSTANT, STEPS, Run, StartRun, same_outcome, trained
from mlflow import MlflowClient
from mlflow.entities import Run as Recorded

from orchestrator.events import Validated
from orchestrator.journal_file import JOURNAL, read_entries

pytestmark = pytest.mark.slow
TWO_STAGES = [*CONSTANT, "lr.stages=2", "+task.pause=0.1"]
LONGEST = 180.0  # seconds until a server answers


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Tracking]:
    """An MLflow server that answers."""
    tracking = Tracking(tmp_path)
    tracking.start()
    _answers(tracking)
    yield tracking
    tracking.kill()


def test_a_server_that_dies_and_comes_back_misses_nothing(run: StartRun, constant: Run, server: Tracking) -> None:
    disturbed = run(*TWO_STAGES, f"tracking.uri={server.uri}").start()
    disturbed.wait_for(trained(20))
    server.kill()
    disturbed.wait_for(trained(40))
    server.start()
    assert disturbed.ended() == 0, disturbed.output()
    same_outcome(disturbed, constant)
    _has_all(server.database, disturbed)


def test_a_slow_server_is_not_waited_for(run: StartRun, constant: Run, server: Tracking) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_delay, args=(listener, server.uri, 2.0), daemon=True).start()
        disturbed = run(*TWO_STAGES, f"tracking.uri=http://127.0.0.1:{listener.getsockname()[1]}").start()
        assert disturbed.ended() == 0, disturbed.output()
    same_outcome(disturbed, constant)
    assert recording_seconds(read_entries(disturbed.folder / JOURNAL)) < 2.0  # of some 24 s


def test_a_locked_database_is_not_waited_for(run: StartRun, constant: Run, tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    MlflowClient(tracking_uri=f"sqlite:///{path}").search_experiments()
    disturbed = run(*TWO_STAGES, f"tracking.uri=sqlite:///{path}").start()
    disturbed.wait_for(trained(20))
    with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as other:
        other.execute("BEGIN EXCLUSIVE")
        disturbed.wait_for(trained(140))
        other.execute("ROLLBACK")
    assert disturbed.ended() == 0, disturbed.output()
    same_outcome(disturbed, constant)
    assert recording_seconds(read_entries(disturbed.folder / JOURNAL)) < 2.0
    _has_all(f"sqlite:///{path}", disturbed)


def _has_all(database: str, run: Run) -> None:
    client = MlflowClient(tracking_uri=database)
    recorded: Recorded = client.get_run(run.result()["mlflow_run_id"])
    assert recorded.info.status == "FINISHED"
    assert len(client.get_metric_history(recorded.info.run_id, "train/loss")) == STEPS
    validated = [each.metrics["loss"] for each in run.told(Validated) if each.split == "validation"]
    history = client.get_metric_history(recorded.info.run_id, "validation/loss")
    assert [point.value for point in history] == validated


def _answers(tracking: Tracking) -> None:
    address, until = _address(tracking.uri), time.monotonic() + LONGEST
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(address, timeout=1):
            return
        time.sleep(0.1)
    pytest.fail("the MLflow server does not come up")


def _address(uri: str) -> tuple[str, int]:
    parts = urlsplit(uri)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def _delay(listener: socket.socket, uri: str, seconds: float) -> None:
    """Take connections to a server, and hand on whatever it answers so many seconds late."""
    with suppress(OSError):
        while True:
            near, _ = listener.accept()
            far = socket.create_connection(_address(uri))
            for source, sink, late in ((near, far, 0.0), (far, near, seconds)):
                threading.Thread(target=_hand_on, args=(source, sink, late), daemon=True).start()


def _hand_on(source: socket.socket, sink: socket.socket, late: float) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            time.sleep(late)
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
