"""A real Prometheus scrapes a run under way, and every panel of the Grafana dashboard finds data in it."""

import json
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import LiveRun, eventually
from grafana_dashboard import DASHBOARD

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="no Prometheus is here: apt-get install prometheus"),
]

CONFIGURATION = DASHBOARD.parent / "prometheus.yml"


@pytest.fixture(scope="module")
def prometheus(live_run: LiveRun, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """With the configuration that ships, but for the place of the nodes' list and the pace."""
    place = tmp_path_factory.mktemp("prometheus")
    values = yaml.safe_load(CONFIGURATION.read_text())
    values["global"]["scrape_interval"] = "2s"
    [job] = values["scrape_configs"]
    job["file_sd_configs"] = [{"files": [str(live_run.nodes)], "refresh_interval": "2s"}]
    (place / "prometheus.yml").write_text(yaml.safe_dump(values))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        "prometheus", f"--config.file={place}/prometheus.yml", f"--storage.tsdb.path={place}/data",
        f"--web.listen-address={address}",
    ]  # fmt: skip
    with (place / "output.txt").open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    eventually(lambda: asked(f"http://{address}", "up"))
    yield f"http://{address}"
    process.terminate()
    process.wait(timeout=30)


def asked(prometheus: str, query: str) -> list[Any]:
    """The series that a query gives now."""
    address = f"{prometheus}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    with urllib.request.urlopen(address, timeout=10) as answer:
        found: list[Any] = json.load(answer)["data"]["result"]
    return found


def test_prometheus_takes_the_configuration_that_ships() -> None:
    subprocess.run(["promtool", "check", "config", str(CONFIGURATION)], check=True, capture_output=True)


def test_every_panel_finds_data(prometheus: str) -> None:
    queries = [
        (panel["title"], target["expr"].replace("$job", "language_model-.*"))
        for panel in json.loads(Path(DASHBOARD).read_text())["panels"]
        for target in panel["targets"]
    ]
    assert len(queries) >= 12
    until = time.monotonic() + 120
    while (missing := [title for title, query in queries if not asked(prometheus, query)]) and time.monotonic() < until:
        time.sleep(1)
    assert missing == []
    ranks = {series["metric"]["rank"] for series in asked(prometheus, "ray_orchestrator_rank_train_loss")}
    assert ranks == {"0", "1"}
