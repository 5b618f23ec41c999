"""MLflow gets everything, and nothing it does can end or stall a run."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.errors import UserError
from orchestrator.events import (
    ForecastMade,
    JobReady,
    ProbeRan,
    RateChosen,
    RunEnded,
    RunResumed,
    RunStarted,
    StepsTrained,
    Validated,
)
from orchestrator.learning_rate.policy import Choice, Forecast
from orchestrator.processes import this_process
from orchestrator.recorders.mlflow import MlflowRecorder
from orchestrator.recorders.mlflow.operations import Operations
from orchestrator.recorders.mlflow.parameters import flat, legal
from orchestrator.recorders.mlflow.replay import replay
from orchestrator.recorders.mlflow.spool import SPOOL, Spool
from orchestrator.recorders.mlflow.store import Store, checked_uri

mlflow = pytest.importorskip("mlflow")

EVENTS = [
    RunStarted(
        "r1", "outputs/r1", {"lr": {"name": "autolrs"}, "seed": 0, "tracking": {"uri": "http://a:pw@h"}}, {}, 0.0
    ),
    JobReady(2, "cpu", 1000, 1.0),
    ProbeRan(1, "search", 0, [0.1, 0.1], [3.0, 2.9], [], 0.1, 0.0, 0.01),
    ForecastMade(Forecast(1, 0.1, 2.0, 100, 0.9, False)),
    RateChosen(Choice(1, 0.1, "lowest forecast", 3)),
    StepsTrained(1, 0, [0.1, 0.1, 0.2], [3.0, float("nan"), float("inf")], 0.3),
    Validated(3, "validation", {"loss": 2.5, "accuracy": 0.5}, 0.1),
]
JOURNAL = Path(__file__).parent.parent / "data" / "journal_autolrs.jsonl"
ONE_RUN = """
import sys
from pathlib import Path
from orchestrator.journal_file import read_journal
from orchestrator.recorders.mlflow import MlflowRecorder

journal, folder, uri = sys.argv[1:]
recorder = MlflowRecorder(Path(folder), uri, "t", Path(folder).parent, close_seconds=180)
for event in read_journal(Path(journal)):
    recorder.record(event)
recorder.close()
assert recorder.notice is None, recorder.notice
"""
ENDED = RunEnded("FINISHED", None, {"train_loss": 2.0, "state": "FINISHED"})


def record(folder: Path, uri: str, events: list, experiment: str = "test", close_seconds: float = 30) -> MlflowRecorder:
    recorder = MlflowRecorder(folder, uri, experiment, folder.parent, close_seconds)
    for event in events:
        recorder.record(event)
    recorder.close()
    return recorder


def test_a_run_is_in_mlflow_whole(tmp_path: Path, database: str) -> None:
    folder = tmp_path / "run"
    (folder / "figures").mkdir(parents=True)
    (folder / "result.json").write_text("{}")
    (folder / "figures" / "seconds.png").write_bytes(b"png")
    recorder = record(folder, database, [*EVENTS, ENDED])
    assert recorder.notice is None
    assert not (folder / SPOOL).exists()

    client = mlflow.MlflowClient(tracking_uri=database)
    run = client.get_run(recorder.run_id())
    assert run.info.status == "FINISHED"
    whole = {"yaml.lr.name": "autolrs", "yaml.seed": "0", "yaml.tracking.uri": "http://a:***@h"}
    assert run.data.params.items() >= (whole | {"lr_policy": "autolrs", "seed": "0"}).items()
    assert run.data.metrics["validation/accuracy"] == 0.5
    assert run.data.metrics["probe/forecast"] == 2.0
    assert run.data.metrics["result/train_loss"] == 2.0
    losses = client.get_metric_history(run.info.run_id, "train/loss")
    assert [each.step for each in losses] == [0, 1]  # the infinite one is left out
    assert [(each.step, each.value) for each in client.get_metric_history(run.info.run_id, "lr")] == [
        (0, 0.1),
        (2, 0.2),
    ]
    assert {each.path for each in client.list_artifacts(run.info.run_id)} >= {"configuration.json", "result.json"}
    assert [each.path for each in client.list_artifacts(run.info.run_id, "figures")] == ["figures/seconds.png"]


def test_a_resumed_run_goes_on_under_the_same_id(tmp_path: Path, database: str) -> None:
    first = record(tmp_path / "run", database, EVENTS)
    client = mlflow.MlflowClient(tracking_uri=database)
    assert client.get_run(first.run_id()).info.status == "FAILED"  # closed without a word
    second = record(tmp_path / "run", database, [RunResumed(3, None), StepsTrained(1, 3, [0.2], [1.0], 0.1), ENDED])
    assert second.run_id() == first.run_id()
    assert client.get_run(first.run_id()).info.status == "FINISHED"
    assert [m.step for m in client.get_metric_history(first.run_id(), "train/loss")] == [0, 1, 3]


def test_a_dead_server_costs_nothing_and_the_run_is_kept(tmp_path: Path) -> None:
    recorder = MlflowRecorder(tmp_path / "run", f"http://user:secret@127.0.0.1:{_free_port()}", "test", tmp_path)
    began = time.monotonic()
    for event in [*EVENTS, ENDED]:
        recorder.record(event)
    assert time.monotonic() - began < 0.5
    recorder.close()
    assert time.monotonic() - began < 15
    assert recorder.run_id() is None
    assert recorder.notice is not None
    assert SPOOL in recorder.notice
    assert "secret" not in recorder.notice
    for path in (tmp_path / "run").iterdir():
        assert b"secret" not in path.read_bytes()


def test_what_was_left_over_is_delivered_by_the_next_run(tmp_path: Path, database: str) -> None:
    left = Spool(tmp_path / "left")
    left.keep(uri=database, experiment="test")
    for event in EVENTS:
        for operation in Operations().of(event):
            left.append(operation)
    left.close()  # its process died: nothing delivered, no end
    record(tmp_path / "next", database, [*EVENTS, ENDED])

    assert not (tmp_path / "left" / SPOOL).exists()
    runs = _runs(database, "test", tmp_path / "left")
    assert [run.info.status for run in runs] == ["KILLED"]
    assert runs[0].data.metrics["validation/loss"] == 2.5


def test_replay_leaves_living_runs_and_other_stores_alone(tmp_path: Path, database: str) -> None:
    living, foreign = Spool(tmp_path / "living"), Spool(tmp_path / "foreign")
    living.keep(uri=database, experiment="test")
    foreign.keep(uri="http://elsewhere", experiment="test")
    foreign.append({"op": "tags", "values": {}})
    foreign.close()
    assert replay(tmp_path, Store(database)) == []
    assert (tmp_path / "foreign" / SPOOL).exists()


def test_orphans_of_this_machine_end_as_killed_whatever_their_experiment(tmp_path: Path, database: str) -> None:
    client = mlflow.MlflowClient(tracking_uri=database)
    experiments = [client.create_experiment(name, artifact_location=tmp_path.as_uri()) for name in ("these", "those")]
    now, ours, foreign = str(int(time.time())), this_process(), f"another-boot pid:[1] {os.getpid()} 77"
    dead = subprocess.run(
        [sys.executable, "-c", "from orchestrator.processes import this_process; print(this_process())"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip

    def running(process: str, heartbeat: str, host: str = socket.gethostname()) -> str:
        tags = {"orchestrator.process": process, "orchestrator.host": host, "orchestrator.heartbeat": heartbeat}
        run_id: str = client.create_run(experiments[len(process) % 2], tags=tags).info.run_id
        return run_id

    orphans = {
        running(dead, now): "its process is gone",
        running(f"{ours.rpartition(' ')[0]} 1", now): "its number was given away again",
        running(foreign, "1000"): "the machine has restarted, or its container is silent for long",
    }
    others = {
        running(ours, "1000"): "it lives, however long it was stopped",
        running(foreign, now): "it lives in another container",
        running(dead, now, "another-host"): "another machine sees to it",
    }
    assert set(Store(database).reap()) == set(orphans)
    for run_id, why in (orphans | others).items():
        assert client.get_run(run_id).info.status == ("KILLED" if run_id in orphans else "RUNNING"), why


@pytest.mark.slow
def test_a_database_that_another_process_has_locked_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    mlflow.MlflowClient(tracking_uri=f"sqlite:///{path}").search_experiments()
    locked = sqlite3.connect(path, isolation_level=None)
    locked.execute("BEGIN EXCLUSIVE")
    recorder = MlflowRecorder(tmp_path / "run", f"sqlite:///{path}", "locked", tmp_path, close_seconds=90)
    begin = time.monotonic()
    for event in [*EVENTS, ENDED]:
        recorder.record(event)
    assert time.monotonic() - begin < 1  # training is not kept waiting
    time.sleep(8)  # longer than SQLite itself waits
    locked.execute("ROLLBACK")
    recorder.close()
    assert recorder.notice is None
    (run,) = _runs(f"sqlite:///{path}", "locked", tmp_path / "run")
    assert run.info.status == "FINISHED"


def test_what_mlflow_refuses_for_good_does_not_hold_up_the_rest(tmp_path: Path, database: str) -> None:
    store, spool = Store(database), Spool(tmp_path)
    store.attach(spool, "test")
    for value in ("1", "2"):  # a parameter cannot change
        spool.append({"op": "params", "values": {"seed": value}})
        store.deliver(spool)
    spool.append({"op": "tags", "values": {"reached": "yes"}})
    store.deliver(spool)
    run = mlflow.MlflowClient(tracking_uri=database).get_run(spool.run_id)
    assert (run.data.params["seed"], run.data.tags["orchestrator.reached"]) == ("1", "yes")


def test_a_spool_survives_a_torn_line_and_goes_on_where_it_was(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append({"op": "tags", "values": {"a": "1"}})
    _, position = spool.pending()
    spool.delivered(position)
    spool.append({"op": "tags", "values": {"b": "2"}})
    spool.close()
    with (tmp_path / SPOOL).open("ab") as file:
        file.write(b'{"op":"ta')
    again = Spool(tmp_path)
    again.append({"op": "status", "state": "KILLED"})
    assert [each["op"] for each in again.pending()[0]] == ["tags", "status"]


@pytest.mark.parametrize("uri", ["./mlruns", "mlruns", "file:///tmp/mlruns"])
def test_folder_stores_are_refused_with_the_way_out(uri: str) -> None:
    with pytest.raises(UserError, match=r"sqlite:///mlflow\.db.*migrate-filestore"):
        checked_uri(uri)


def test_parameters_are_flat_legal_and_short() -> None:
    parameters = flat({"a": {"b@c": [1, 2]}, "long": "x" * 9000, "empty": {}, "../up": None})
    assert parameters["a.b_c"] == "[1, 2]"
    assert len(parameters["long"]) == 6000
    assert parameters["long"].endswith("(9000 characters)")
    assert parameters["empty"] == "{}"
    assert legal("../up") == "___up"


@pytest.mark.slow
def test_six_processes_at_once_on_a_fresh_database(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/store/mlflow.db"
    folders = [tmp_path / f"run{index}" for index in range(6)]
    processes = [
        subprocess.Popen([sys.executable, "-c", ONE_RUN, str(JOURNAL), str(folder), uri], stderr=subprocess.PIPE)
        for folder in folders
    ]
    assert [process.communicate()[1] for process in processes] == [b""] * 6
    for folder in folders:
        (run,) = _runs(uri, "t", folder)
        assert run.info.status == "FINISHED"
        assert run.data.metrics["validation/loss"] == 1.399


@pytest.mark.slow
def test_a_server_that_is_stopped_for_a_while_gets_everything_later(tmp_path: Path, database: str) -> None:
    port = _free_port()
    server = _server(port, database, tmp_path)
    recorder = MlflowRecorder(tmp_path / "run", f"http://127.0.0.1:{port}", "stopped", tmp_path, close_seconds=180)
    assert recorder.run_id(timeout=180) is not None
    os.killpg(server.pid, signal.SIGSTOP)
    begin = time.monotonic()
    for event in [*EVENTS, ENDED]:
        recorder.record(event)
    assert time.monotonic() - begin < 1
    time.sleep(8)  # two deliveries fail meanwhile
    os.killpg(server.pid, signal.SIGCONT)
    recorder.close()
    os.killpg(server.pid, signal.SIGKILL)
    assert recorder.notice is None
    (run,) = _runs(database, "stopped", tmp_path / "run")
    assert run.info.status == "FINISHED"
    assert run.data.metrics["validation/loss"] == 2.5


@pytest.mark.slow
def test_a_server_killed_in_mid_run_and_back_later(tmp_path: Path, database: str) -> None:
    port = _free_port()
    uri = f"http://127.0.0.1:{port}"
    server = _server(port, database, tmp_path)
    recorder = MlflowRecorder(tmp_path / "run", uri, "killed", tmp_path)
    for event in EVENTS[:4]:
        recorder.record(event)
    assert recorder.run_id(timeout=180) is not None
    os.killpg(server.pid, 9)
    for event in [*EVENTS[4:], ENDED]:
        recorder.record(event)
    began = time.monotonic()
    recorder.close()
    assert time.monotonic() - began < 21
    assert recorder.notice is not None

    server = _server(port, database, tmp_path)
    try:
        following = MlflowRecorder(tmp_path / "next", uri, "killed", tmp_path)
        assert following.run_id(timeout=180) is not None  # a server just started is slow to answer
        for _ in range(600):
            if (tmp_path / "run" / SPOOL).exists():
                time.sleep(0.2)
        following.record(ENDED)
        following.close()
    finally:
        os.killpg(server.pid, 9)
    (run,) = _runs(database, "killed", tmp_path / "run")
    assert run.info.run_id == recorder.run_id()
    assert run.info.status == "FINISHED"
    assert run.data.metrics["validation/loss"] == 2.5


def _runs(uri: str, experiment: str, folder: Path) -> list:
    client = mlflow.MlflowClient(tracking_uri=uri)
    found = client.get_experiment_by_name(experiment)
    return client.search_runs([found.experiment_id], f"tags.`orchestrator.folder` = '{folder}'")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _server(port: int, database: str, folder: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    process = subprocess.Popen(
        [*command, "--backend-store-uri", database],
        cwd=folder,  # where the server keeps artifacts
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
        time.sleep(0.3)
    raise AssertionError("the MLflow server did not start")
