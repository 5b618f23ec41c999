"""Finished runs without a cluster, and MLflow servers, for tests of what MLflow keeps."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from orchestrator.config import CONF, build, config_from
from orchestrator.events import Event, RunEnded, RunStarted
from orchestrator.recorders.journal import Journal
from orchestrator.recorders.mlflow import MlflowRecorder
from orchestrator.training import job_spec
from trainers import Trainer, TrainerOptions

ENDED = RunEnded("FINISHED", None, {"train_loss": 2.0, "state": "FINISHED"})


def trained_run(folder: Path, *overrides: str, steps: int = 20) -> RunStarted:
    """A run folder with the journal's beginning and the weights of a short training; returns the first event."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        values: Any = OmegaConf.to_container(compose("config", [*overrides, "cluster.workers=1"]), resolve=True)
    config = config_from(values)
    started = RunStarted("tabular-autolrs-1", str(folder), config.to_json(), {}, 0.0)
    journal = Journal(folder / "journal.jsonl")
    journal.record(started)
    journal.close()
    trainer = Trainer(build(config.task), build(config.optimizer), TrainerOptions(**job_spec(config, "t").options))
    trainer.train([1e-2] * steps)
    trainer.save_weights(folder / "weights.safetensors")
    return started


def recorded(folder: Path, uri: str, *events: Event, **options: Any) -> str:
    """Let MLflow have a run from its first event to its end; returns its id there."""
    recorder = MlflowRecorder(folder, uri, "test", folder.parent, close_seconds=180, **options)
    for event in (*events, ENDED):
        recorder.record(event)
    recorder.close()
    assert recorder.notice is None
    run_id = recorder.run_id()
    assert run_id is not None
    return run_id


@contextmanager
def server(folder: Path, *arguments: str, **environment: str) -> Iterator[str]:
    """An MLflow server with its database and artifacts in `folder`; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    store = ["--backend-store-uri", f"sqlite:///{folder}/server.db", "--artifacts-destination", str(folder / "kept")]
    quiet = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", **environment}  # jobs would start eight processes more
    with (folder / "server.txt").open("w") as output:
        process = subprocess.Popen(
            [*command, *store, *arguments],
            cwd=folder,
            env={**os.environ, **quiet},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=30)


def _wait_for(address: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        assert process.poll() is None, "the MLflow server ended"
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.3)
    raise AssertionError("the MLflow server did not start")
