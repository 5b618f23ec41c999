"""Ray is started or joined within bounded time, and what cannot work is a sentence that names the key."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.cluster.connection import Cluster, ClusterOptions, check_capacity, connect, require_answer
from orchestrator.cluster.reaper import Process, alive, descendants, read
from orchestrator.errors import UserError
from orchestrator.stopping import Stopped, stopping_on_signals

JOIN = """
import json, sys
from orchestrator.cluster.connection import ClusterOptions, connect
from orchestrator.errors import UserError
try:
    with connect(ClusterOptions(address=sys.argv[1], workers=int(sys.argv[2]))) as cluster:
        print(json.dumps(cluster.resources))
except UserError as error:
    sys.exit(str(error))
"""


def join(address: str, workers: int = 1) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", JOIN, address, str(workers)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
def test_a_local_ray_holds_the_workers_on_any_machine(cluster: Cluster) -> None:
    assert cluster.resources["CPU"] >= 4
    assert cluster.warnings == ()
    assert cluster.startup_seconds > 0


def test_a_connection_that_is_there_is_used_and_left(cluster: Cluster) -> None:
    import ray

    with connect(ClusterOptions(workers=1)) as again:
        assert again.resources["CPU"] == cluster.resources["CPU"]
    assert ray.is_initialized()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_wait_for_ray_at_once(number: signal.Signals, cluster: Cluster) -> None:
    import ray

    @ray.remote(num_cpus=1000)
    def never() -> None: ...

    pending = [never.remote()]
    begin = time.monotonic()
    threading.Timer(0.5, os.kill, (os.getpid(), number)).start()
    with pytest.raises(Stopped) as stopped, stopping_on_signals():
        ray.wait(pending, timeout=10)
    assert stopped.value.number == number
    assert time.monotonic() - begin < 5


def test_only_the_owner_reads_the_token_of_ray(cluster: Cluster) -> None:
    token = Path(os.environ.get("RAY_AUTH_TOKEN_PATH", "~/.ray/auth_token")).expanduser()
    assert stat.S_IMODE(token.stat().st_mode) == 0o600


def test_a_running_cluster_is_joined_by_its_address(cluster: Cluster) -> None:
    import ray

    address = ray.get_runtime_context().gcs_address
    joined = join(address)
    assert json.loads(joined.stdout)["CPU"] == cluster.resources["CPU"]
    assert ray.cluster_resources()["CPU"] == cluster.resources["CPU"]  # the guest's end has not ended its host


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9", "ray://127.0.0.1", "nonsense"])
def test_an_address_where_nothing_answers_is_named_soon(address: str) -> None:
    begin = time.monotonic()
    with pytest.raises(UserError, match=f"cluster.address={address}"):
        require_answer(address)
    assert time.monotonic() - begin < 10


@pytest.mark.slow
def test_what_answers_but_is_no_ray_is_found_out_soon() -> None:
    begin = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as deaf, pytest.raises(UserError, match="does not answer as Ray"):
        require_answer(f"127.0.0.1:{deaf.getsockname()[1]}")
    assert time.monotonic() - begin < 10


def test_too_many_local_workers_are_refused_before_ray_starts() -> None:
    begin = time.monotonic()
    with (
        pytest.raises(UserError, match=r"cluster\.workers=999 need 999 × 1 CPU, have \d+"),
        connect(ClusterOptions(workers=999)),
    ):
        pass
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize(
    ("need", "sentence"),
    [((4, 1, 0), "need 4 × 1 CPU, have 2"), ((2, 0.5, 1), "need 2 × 1 GPU, have 0"), ((3, 1.5, 0), "need 3 × 1.5 CPU")],
)
def test_what_is_needed_and_what_is_there_are_told(need: tuple[int, float, float], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        check_capacity(*need, resources={"CPU": 2.0})
    check_capacity(2, 1, 0, resources={"CPU": 2.0})


TRAIN_FOR_EVER = """
import sys
from orchestrator.cluster.connection import ClusterOptions, connect
from orchestrator.cluster.job import Job, JobSpec
spec = JobSpec(
    "endless",
    {"_target_": "trainers.tasks.tabular.Tabular"},
    {"_target_": "torch.optim.SGD", "_partial_": True},
    {"batch_size": 8},
    world_size=2,
)
with connect(ClusterOptions(workers=2)), Job(spec) as job:
    job.start()
    print("started", flush=True)
    job.train([0.001] * 10**7)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_a_driver_that_was_told_to_end(number: signal.Signals) -> None:
    driver = subprocess.Popen([sys.executable, "-c", TRAIN_FOR_EVER], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    assert driver.stdout.readline() == "started\n"
    time.sleep(1)
    started = descendants(driver.pid, spared=set())
    assert sum(read(number, "cmdline").startswith(b"ray::") for number, _ in started) >= 4  # workers, Ray's agents
    driver.send_signal(number)
    driver.wait(timeout=30)
    assert left_after(20, lambda: started & set(alive())) == set()


LEAVE_AN_ORPHAN = """
import os, subprocess, sys, time
from orchestrator.cluster.guard import guarded
START = "import subprocess, time; print(subprocess.Popen(['sleep', '60'], env={}).pid, flush=True); time.sleep(60)"
with guarded():
    parent = subprocess.Popen([sys.executable, "-c", START], stdout=subprocess.PIPE, text=True)
    orphan = int(parent.stdout.readline())
    time.sleep(5)
    parent.kill()
    parent.wait()
print(os.path.exists(f"/proc/{orphan}/exe"))
"""


@pytest.mark.slow
def test_a_process_without_parent_and_environment_is_ended_too() -> None:
    command = [sys.executable, "-c", LEAVE_AN_ORPHAN]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert shown.stdout == "False\n"


@pytest.mark.slow
def test_the_dashboard_answers_on_this_machine_only() -> None:
    script = """
from orchestrator.cluster.connection import ClusterOptions, connect
with connect(ClusterOptions(workers=1, dashboard=True)) as cluster:
    print(cluster.dashboard_url, cluster.warnings)
"""
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert shown.stdout.startswith("http://127.0.0.1:")
    assert shown.stdout.endswith("()\n")


def left_after(seconds: float, left: Callable[[], set[Process]]) -> set[Process]:
    until = time.monotonic() + seconds
    while (those := left()) and time.monotonic() < until:
        time.sleep(0.1)
    return those
