"""Ray, started for one run or joined where it runs already: bounded in time, and wrong addresses are sentences."""

import logging
import math
import os
import signal
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from orchestrator.cluster.guard import guarded
from orchestrator.cluster.lab import LAB, lab_address, lab_environment
from orchestrator.cluster.turn import turn
from orchestrator.errors import UserError
from orchestrator.stopping import Stopped

LOCAL_CPUS = 8  # small workers that fit on any machine, however few its cores
OBJECT_STORE_BYTES = 150 * 1024**2  # what travels through Ray here is small
ANSWER_SECONDS = 5.0  # a cluster that lives answers within this time
CLIENT_PORT = 10001


class NoRoomError(UserError):
    """The cluster cannot hold the workers as it is now."""


@dataclass(frozen=True)
class ClusterOptions:
    """Where the workers run, and what they need.

    address: "local", "auto", "lab", "host:port" or "ray://host:port". cpus and gpus are those of one worker, and each
    replica for probes has as many workers as the job. object_store_bytes: of a local Ray.
    """

    address: str = "local"
    workers: int = 2
    probe_replicas: int = 0
    cpus_per_worker: float = 1
    gpus_per_worker: float = 0
    dashboard: bool = False
    log_to_driver: bool = False
    object_store_bytes: int = OBJECT_STORE_BYTES


@dataclass(frozen=True)
class Cluster:
    """A Ray that this process is connected to. `resources` are the cluster's totals, such as {"CPU": 2.0}."""

    resources: dict[str, float]
    dashboard_url: str | None
    startup_seconds: float
    warnings: tuple[str, ...] = ()


@contextmanager
def connect(options: ClusterOptions) -> Iterator[Cluster]:
    """Be connected to Ray inside the block; what was started here is stopped at its end.

    A Ray that this process is connected to already is used and left as it is. Raises UserError, naming the key, when
    nothing answers at the address or the cluster is too small for the workers.
    """
    begin = monotonic()
    check_beforehand(options)
    if options.address == LAB:
        os.environ.update(lab_environment())  # read when Ray is imported
    import ray

    if ray.is_initialized():
        yield _connected(options, begin, None, ())
        return
    with guarded() if options.address == "local" else nullcontext():
        url, warnings = _initialise(options)
        try:
            yield _connected(options, begin, url, warnings)
        finally:
            ray.shutdown()


def _connected(options: ClusterOptions, begin: float, url: str | None, warnings: tuple[str, ...]) -> Cluster:
    import ray

    resources = {name: float(amount) for name, amount in ray.cluster_resources().items()}
    check_capacity(options.workers, options.cpus_per_worker, options.gpus_per_worker, resources, options.probe_replicas)
    return Cluster(resources, url, monotonic() - begin, warnings)


def check_capacity(workers: int, cpus: float, gpus: float, resources: dict[str, float], replicas: int = 0) -> None:
    """Raise UserError when the cluster's totals cannot hold the workers of a job and its replicas, busy or not."""
    total = workers * (1 + replicas)
    who = f"cluster.workers={workers}" + (f" with cluster.probe_replicas={replicas}" if replicas else "")
    for name, each in (("CPU", cpus), ("GPU", gpus)):
        have = resources.get(name, 0.0)
        if total * each > have:
            raise NoRoomError(
                f"{who} need {total} × {each:g} {name}, have {have:g}; ask for fewer "
                f"{'replicas' if replicas else 'workers'} or for less than cluster.{name.lower()}s_per_worker={each:g}"
            )


def check_beforehand(options: ClusterOptions) -> None:
    """What can be known before Ray starts: a machine of our own is too small, nothing answers. Raises UserError."""
    if options.address == "local":
        ours = {"CPU": float(max(LOCAL_CPUS, os.cpu_count() or 1))}
        check_capacity(options.workers, options.cpus_per_worker, 0, ours, options.probe_replicas)
    elif (address := _resolved(options.address)) != "auto":
        require_answer(address)  # Ray itself would wait for it for minutes


def _initialise(options: ClusterOptions) -> tuple[str | None, tuple[str, ...]]:
    """Start or join; returns the dashboard's address and warnings. SIGTERM means afterwards what it meant before."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # echoes of a failure that is told already
    handler = signal.getsignal(signal.SIGTERM)
    try:
        return _start(options) if options.address == "local" else (_join(options), ())
    except SystemExit:
        raise Stopped(signal.SIGTERM) from None  # Ray's answer to SIGTERM while it starts
    finally:
        signal.signal(signal.SIGTERM, handler)


def _start(options: ClusterOptions) -> tuple[str | None, tuple[str, ...]]:
    """Start a Ray of our own, on a busy machine at the second try; without a dashboard at need, with a warning."""
    failures: list[Exception] = []
    for dashboard in [True, False, False] if options.dashboard else [False, False]:
        try:
            with turn():
                url = _start_with(options, dashboard)
        except Exception as error:
            failures.append(error)
            continue
        _protect_token()
        return url, () if dashboard == options.dashboard else (_without_dashboard(failures[0]),)
    raise UserError(
        f"Ray does not start on this machine ({_first_line(failures[-1])}); see {_ray_folder()}/session_latest/logs"
    ) from failures[-1]


def _without_dashboard(error: Exception) -> str:
    return f"Ray's dashboard did not start ({_first_line(error)}); the run goes on without it."


def _start_with(options: ClusterOptions, dashboard: bool) -> str | None:
    import ray

    needed = math.ceil(options.workers * (1 + options.probe_replicas) * options.cpus_per_worker)
    try:
        # The address is always given: without it Ray would try a cluster that was here once, and fail.
        context = ray.init(
            address="local",
            num_cpus=max(needed, os.cpu_count() or 1),
            include_dashboard=dashboard,
            dashboard_host="127.0.0.1",
            object_store_memory=options.object_store_bytes,
            **_quietly(options),
        )
    except BaseException:
        ray.shutdown()
        raise
    return _dashboard_url(context)


def _join(options: ClusterOptions) -> str | None:
    """Join a running cluster."""
    import ray

    try:
        return _dashboard_url(ray.init(address=_resolved(options.address), **_quietly(options)))
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UserError(
            f"cluster.address={options.address}: no Ray cluster can be joined there ({_first_line(error)}); "
            "start one with 'ray start --head', or use cluster=local"
        ) from error


def _resolved(address: str) -> str:
    """What "lab" stands for, and "auto", where an environment variable or the file of the last 'ray start' says so."""
    if address == LAB:
        return lab_address()
    if address != "auto":
        return address
    noted = _ray_folder() / "ray_current_cluster"
    return os.environ.get("RAY_ADDRESS") or (noted.read_text().strip() if noted.is_file() else "auto")


def _ray_folder() -> Path:
    """Where Ray keeps its sessions."""
    return Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray"


def require_answer(address: str) -> None:
    """Raise UserError unless something that speaks gRPC, as Ray does, answers at host:port or ray://host[:port]."""
    import grpc  # type: ignore[import-untyped]

    host_and_port = address.removeprefix("ray://")
    host, colon, port = host_and_port.rpartition(":")
    if not colon and address.startswith("ray://"):
        host, port = host_and_port, str(CLIENT_PORT)
    if not host or not port.isdigit():
        raise UserError(f"cluster.address={address} must be local, auto, lab, host:port or ray://host:port")
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()
        with grpc.insecure_channel(f"{host}:{port}") as channel:
            grpc.channel_ready_future(channel).result(timeout=ANSWER_SECONDS)
    except (OSError, grpc.FutureTimeoutError) as error:
        raise UserError(
            f"cluster.address={address} does not answer as Ray within {ANSWER_SECONDS:g} s; "
            "check host, port and firewall, or use cluster=local"
        ) from error


def _quietly(options: ClusterOptions) -> dict[str, Any]:
    logging.getLogger("ray").setLevel(logging.ERROR)
    return {
        "namespace": f"orchestrator-{uuid.uuid4().hex[:8]}",
        "log_to_driver": options.log_to_driver,
        "configure_logging": False,
    }


def _dashboard_url(context: Any) -> str | None:
    return f"http://{context.dashboard_url}" if context.dashboard_url else None


def _protect_token() -> None:
    """Ray's sign-in token comes world-readable; whoever has it can run code here."""
    token = Path(os.environ.get("RAY_AUTH_TOKEN_PATH", "~/.ray/auth_token")).expanduser()
    if token.is_file():
        token.chmod(0o600)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
