"""The only file that talks to MLflow. Everything in it may block or raise; it runs in a background thread."""

import fcntl
import json
import logging
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orchestrator.errors import UserError
from orchestrator.names import short_name
from orchestrator.processes import lives, this_process
from orchestrator.recorders.mlflow.model import MODEL, save_model
from orchestrator.recorders.mlflow.spool import Operation, Spool

_SQLITE = "sqlite:///"
_METRICS_A_BATCH = 1000  # MLflow's limits
_ENTRIES_A_BATCH = 100
_STALE_SECONDS = 600

_ENVIRONMENT = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",  # a dead server costs 0.1 s instead of 45
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "3",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
_FINAL_REFUSALS = {"INVALID_PARAMETER_VALUE", "RESOURCE_DOES_NOT_EXIST", "RESOURCE_ALREADY_EXISTS", "BAD_REQUEST"}


def checked_uri(uri: str) -> str:
    """The tracking URI with a relative SQLite path made absolute. UserError for the folder stores MLflow gave up."""
    if uri.startswith(_SQLITE):
        return _SQLITE + str(Path(uri.removeprefix(_SQLITE)).absolute())
    if uri.startswith("file:") or ("://" not in uri and not uri.startswith("databricks")):
        source = uri.removeprefix("file://")
        raise UserError(
            f"tracking.uri={uri} is a folder, which MLflow no longer writes to: use tracking.uri=sqlite:///mlflow.db; "
            f"`mlflow migrate-filestore --source {source} --target sqlite:///mlflow.db` takes old runs along"
        )
    return uri


class Store:
    """An MLflow tracking store at a URI, connected at first use. Work on SQLite is done by one process at a time."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._client: Any = None
        self._database = Path(uri.removeprefix(_SQLITE)) if uri.startswith(_SQLITE) else None

    def attach(self, spool: Spool, experiment: str) -> None:
        """Give a run folder its MLflow run, made if need be, set to RUNNING; its id is noted in the spool."""
        with self._alone():
            run_id = spool.run_id or self._run_of(spool.folder, experiment, spool.noted("parent"))
            spool.keep(run_id=run_id)
            self._log_tags(run_id, _process_tags())
            self._client.update_run(run_id, status="RUNNING")

    def beat(self, run_id: str) -> None:
        """Say that the run's process lives."""
        with self._alone():
            self._client.set_tag(run_id, "orchestrator.heartbeat", str(int(time.time())))

    def deliver(self, spool: Spool) -> None:
        """Send everything that is pending. Raises at the first failure that may pass; the rest stays pending."""
        assert spool.run_id is not None
        while True:
            operations, position = spool.pending()
            if not operations:
                return
            with self._alone():
                for kind, group in groupby(operations, key=lambda each: str(each["op"])):
                    self._send(spool.run_id, kind, list(group), spool.folder)
            spool.delivered(position)

    def reap(self) -> list[str]:
        """End the runs of this machine that are RUNNING without a process, as KILLED. Returns their ids."""
        with self._alone():
            experiments = [each.experiment_id for each in self._client.search_experiments()]
            running = f"attributes.status = 'RUNNING' and tags.`orchestrator.host` = '{socket.gethostname()}'"
            runs = self._client.search_runs(experiments, running)
            orphans = [run.info.run_id for run in runs if _is_orphan(run.data.tags)]
            for run_id in orphans:
                self._client.set_terminated(run_id, "KILLED")
        return orphans

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """MLflow's own schema creation and SQLite's locking do not survive several processes at once."""
        _import_mlflow()
        if self._database is None:
            self._connect()
            yield
            return
        self._database.parent.mkdir(parents=True, exist_ok=True)
        with self._database.with_name(f"{self._database.name}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._connect()
            yield

    def _connect(self) -> None:
        if self._client is not None:
            return
        from mlflow import MlflowClient

        client = MlflowClient(tracking_uri=self.uri)
        client.search_experiments(max_results=1)  # makes the schema of a new database, or finds nobody there
        self._client = client

    def _run_of(self, folder: Path, experiment: str, parent: str | None = None) -> str:
        """The run made for this folder earlier, though its id got lost, or a new one, below that of a parent folder."""
        experiment_id = self._experiment(experiment)
        tag = str(folder).replace("'", "_")  # a filter has no way to quote it
        runs = self._client.search_runs([experiment_id], f"tags.`orchestrator.folder` = '{tag}'")
        if runs:
            return str(runs[0].info.run_id)
        tags = {"orchestrator.folder": tag, **_process_tags()}  # from the first moment on: it may be killed at any
        if parent is not None:
            tags["mlflow.parentRunId"] = self._run_of(Path(parent), experiment)
        return str(self._client.create_run(experiment_id, run_name=_run_name(folder), tags=tags).info.run_id)

    def _experiment(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        if found is not None:
            return str(found.experiment_id)
        # Without a server MLflow would put files under ./mlruns, wherever that happens to be.
        beside = (self._database.parent / "mlflow-artifacts").as_uri() if self._database else None
        return str(self._client.create_experiment(name, artifact_location=beside))

    def _send(self, run_id: str, kind: str, operations: Sequence[Operation], folder: Path) -> None:
        """Send operations of one kind. What MLflow will never accept is dropped, lest it hold up all the rest."""
        from mlflow.exceptions import MlflowException

        try:
            getattr(self, f"_send_{kind}")(run_id, operations, folder)
        except MlflowException as error:
            if error.error_code not in _FINAL_REFUSALS:
                raise

    def _send_metrics(self, run_id: str, operations: Sequence[Operation], _: Path) -> None:
        from mlflow.entities import Metric

        metrics = [Metric(*point) for operation in operations for point in operation["values"]]
        for first in range(0, len(metrics), _METRICS_A_BATCH):
            self._client.log_batch(run_id, metrics=metrics[first : first + _METRICS_A_BATCH])

    def _send_params(self, run_id: str, operations: Sequence[Operation], _: Path) -> None:
        from mlflow.entities import Param

        params = [Param(*pair) for operation in operations for pair in operation["values"].items()]
        for first in range(0, len(params), _ENTRIES_A_BATCH):
            self._client.log_batch(run_id, params=params[first : first + _ENTRIES_A_BATCH])

    def _send_tags(self, run_id: str, operations: Sequence[Operation], _: Path) -> None:
        for operation in operations:
            self._log_tags(run_id, {f"orchestrator.{name}": value for name, value in operation["values"].items()})

    def _send_text(self, run_id: str, operations: Sequence[Operation], _: Path) -> None:
        for operation in operations:
            self._client.log_text(run_id, operation["text"], operation["file"])

    def _send_artifact(self, run_id: str, operations: Sequence[Operation], folder: Path) -> None:
        for operation in operations:
            path = folder / operation["file"]
            if path.is_file():
                parent = Path(operation["file"]).parent
                self._client.log_artifact(run_id, str(path), None if parent == Path() else str(parent))

    def _send_name(self, run_id: str, operations: Sequence[Operation], _: Path) -> None:
        self._client.update_run(run_id, name=operations[-1]["name"])

    def _send_environment(self, run_id: str, operations: Sequence[Operation], _: Path) -> None:
        found = operations[-1]["found"]
        self._client.log_text(run_id, json.dumps(found, indent=2), "environment.json")
        if isinstance(found["git"], dict):
            self._client.set_tag(run_id, "mlflow.source.git.commit", found["git"]["commit"])

    def _send_model(self, run_id: str, operations: Sequence[Operation], folder: Path) -> None:
        with TemporaryDirectory() as place:
            try:
                save_model(folder, Path(place) / MODEL)
            except Exception as error:  # of a folder that was changed: nothing that passes, so the end goes on
                self._log_tags(run_id, {"orchestrator.model": f"not kept: {error}"})
                return
            self._client.log_artifacts(run_id, str(Path(place) / MODEL), MODEL)
            self._log_tags(run_id, {"orchestrator.model": "of the last step"})

    def _send_status(self, run_id: str, operations: Sequence[Operation], _: Path) -> None:
        self._client.set_terminated(run_id, operations[-1]["state"])

    def _log_tags(self, run_id: str, tags: dict[str, str]) -> None:
        from mlflow.entities import RunTag

        self._client.log_batch(run_id, tags=[RunTag(name, value) for name, value in tags.items()])


def _import_mlflow() -> None:
    """Takes seconds, so it happens here and outside any lock. Its own progress messages would spoil the terminal."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import mlflow  # noqa: F401

    for name in ("mlflow", "alembic", "urllib3.connectionpool"):
        logging.getLogger(name).setLevel(logging.ERROR)


def _process_tags() -> dict[str, str]:
    return {
        "orchestrator.process": this_process(),
        "orchestrator.host": socket.gethostname(),
        "orchestrator.heartbeat": str(int(time.time())),
    }


def _is_orphan(tags: dict[str, str]) -> bool:
    """A process that cannot be seen, of before a restart or of another container, counts by its heartbeat."""
    alive = lives(tags.get("orchestrator.process", "unknown 0 0"))
    if alive is not None:
        return not alive
    return time.time() - float(tags.get("orchestrator.heartbeat", "0")) > _STALE_SECONDS


def _run_name(folder: Path) -> str:
    """Until it is known by its own: the last two parts of Hydra's folder, a day and a time or a sweep and a number."""
    return short_name("/".join(folder.parts[-2:]))
