"""A real browser, a run under way with Ray's dashboard, and three finished runs in MLflow; each is started once."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from commands import ORCHESTRATE, orchestrate

SCREENSHOTS = Path(__file__).parents[2] / "screenshots"
_DRIVER = "/usr/bin/chromedriver"
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--window-size=1400,1500", "--lang=en",
)  # fmt: skip

Found = TypeVar("Found")


@dataclass(frozen=True)
class LiveRun:
    """A run under way: its folder, what it has printed, and where its Ray keeps the list of nodes to scrape."""

    folder: Path
    output: Path
    nodes: Path

    @property
    def dashboard(self) -> str:
        line = next(line for line in self.output.read_text().splitlines() if line.startswith("Ray's dashboard: "))
        return line.split()[2]


def eventually(look: Callable[[], Found | None], seconds: float = 90.0) -> Found:
    """What `look` finds, as soon as it finds something; errors on the way count as nothing."""
    deadline = time.monotonic() + seconds
    trouble: Exception | None = None
    while time.monotonic() < deadline:
        try:
            if found := look():
                return found
        except Exception as error:
            trouble = error
        time.sleep(0.5)
    raise AssertionError(f"nothing was found within {seconds:g} s") from trouble


@pytest.fixture
def browser(chromium: Any) -> Any:
    """An empty page, with no complaint of an earlier one left."""
    chromium.get("about:blank")
    chromium.get_log("browser")
    return chromium


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    if not Path(_DRIVER).is_file():
        pytest.skip("no browser is here: apt-get install chromium chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for flag in _FLAGS:
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(_DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="package")
def live_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRun]:
    """Goes on until the tests are done, its gradients along a plan."""
    place = tmp_path_factory.mktemp("live")
    ray = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # a socket's path may not be long
    arguments = [
        "run", "steps=6000", "snapshot_every_steps=200", "communication=planned", "topology=ring:ranks=2",
        "communication.threshold_bytes=0", "cluster.dashboard=true", "tracking=none", f"hydra.run.dir={place}/run",
    ]  # fmt: skip
    environment = {**os.environ, "RAY_TMPDIR": str(ray)}
    with (place / "output.txt").open("w") as output:
        process = subprocess.Popen([ORCHESTRATE, *arguments], cwd=place, env=environment, stdout=output, stderr=output)
    run = LiveRun(place / "run", place / "output.txt", ray / "ray" / "prom_metrics_service_discovery.json")
    try:
        eventually(lambda: "Validated" in (run.folder / "journal.jsonl").read_text(), seconds=180)
        yield run
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
        shutil.rmtree(ray, ignore_errors=True)


@pytest.fixture(scope="session")
def finished_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which three policies were tried; returns it."""
    place = tmp_path_factory.mktemp("finished")
    done = orchestrate(place, "run", "-m", "task=tabular", "steps=600", "lr=autolrs,cosine,constant", "outputs=outputs")
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture(scope="session")
def mlflow_address(finished_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """MLflow's own pages over the database of the finished runs."""
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mlflow = str(Path(sys.executable).with_name("mlflow"))
    store = f"sqlite:///{finished_runs}/outputs/mlflow.db"
    command = [mlflow, "ui", "--workers", "1", "--port", str(port), "--backend-store-uri", store]
    with (tmp_path_factory.mktemp("mlflow") / "output.txt").open("w") as output:
        quiet = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}  # it would start eight processes more
        process = subprocess.Popen(command, env=quiet, stdout=output, stderr=output, start_new_session=True)
    yield f"http://127.0.0.1:{port}"
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(timeout=30)
