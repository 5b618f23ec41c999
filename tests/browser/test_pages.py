"""What people look at, opened in a real browser; pictures of it are kept in screenshots/."""

import re
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from commands import ORCHESTRATE
from conftest import SCREENSHOTS, LiveRun, eventually

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]  # one run under way serves all


WITHOUT_ASSISTANT = """const named = button => button.getAttribute("aria-label") || "";
    document.querySelectorAll("button").forEach(button => /close/i.test(named(button)) && button.click())"""


def text_of(browser: Any) -> str:
    return str(browser.find_element("tag name", "body").text)


def keep(browser: Any, name: str) -> None:
    """A picture of the page as it is."""
    SCREENSHOTS.mkdir(exist_ok=True)
    assert browser.save_screenshot(str(SCREENSHOTS / f"{name}.png"))


def severe(browser: Any) -> list[str]:
    """What the page's own code complained of."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_the_watch_page_shows_the_run_and_follows_it(browser: Any, live_run: LiveRun) -> None:
    watch = subprocess.Popen([ORCHESTRATE, "watch", str(live_run.folder)], stdout=subprocess.PIPE, text=True)
    try:
        assert watch.stdout is not None
        watch.stdout.readline()
        browser.get(watch.stdout.readline().split()[0])
        assert eventually(lambda: "RUNNING" in text_of(browser))
        charts = [figure.text.splitlines()[0] for figure in browser.find_elements("css selector", "figure h2")]
        assert {"Losses", "Learning rate", "Steps", "Shares"} <= set(charts)
        assert len(browser.find_elements("css selector", "figure svg path")) >= len(charts)
        before = text_of(browser)
        assert eventually(lambda: text_of(browser) != before)
        assert [message for message in severe(browser) if "favicon" not in message] == []
        keep(browser, "watch")
    finally:
        watch.terminate()
        watch.wait(timeout=20)
    assert eventually(lambda: "the command that served this page has ended" in text_of(browser))


def test_rays_dashboard_names_the_actors_by_job_and_rank(browser: Any, live_run: LiveRun) -> None:
    token = Path("~/.ray/auth_token").expanduser()
    assert token.stat().st_mode & 0o077 == 0
    browser.get(live_run.dashboard)
    signed_in = """const headers = {Authorization: "Bearer " + arguments[0]};
                   return fetch("/api/authenticate", {method: "POST", headers}).then(answer => answer.status)"""
    assert browser.execute_script(signed_in, token.read_text().strip()) == 200
    browser.get(f"{live_run.dashboard}/#/actors")
    browser.refresh()
    for rank in (0, 1):
        assert eventually(lambda rank=rank: re.search(rf"language_model-autolrs-\w+/rank-{rank}", text_of(browser)))
    keep(browser, "ray-dashboard")


def test_mlflow_compares_three_policies(browser: Any, finished_runs: Path, mlflow_address: str) -> None:
    with sqlite3.connect(finished_runs / "outputs" / "mlflow.db") as database:
        children = "select run_uuid from tags where key = 'mlflow.parentRunId'"
        runs = database.execute(f"select run_uuid, experiment_id from runs where run_uuid in ({children})").fetchall()
    assert len(runs) == 3
    names = ",".join(f'"{run}"' for run, _ in runs)
    page = f'{mlflow_address}/#/compare-runs?runs=[{names}]&experiments=["{runs[0][1]}"]'

    def opened() -> bool:
        browser.get(page)
        time.sleep(5)
        return "validation" in text_of(browser)

    assert eventually(opened)
    shown = eventually(lambda: text_of(browser) if "Parallel Coordinates" in text_of(browser) else None)
    for policy in ("autolrs", "cosine", "constant"):
        assert policy in shown
    assert re.search(r"Parameters:\s+lr_policy", shown)  # what its plot shows unasked
    browser.execute_script(WITHOUT_ASSISTANT)
    time.sleep(3)  # the plot takes the room
    keep(browser, "mlflow-compare")


def test_the_report_opens_whole(browser: Any, finished_runs: Path) -> None:
    report = sorted(finished_runs.rglob("report.html"))[0]
    browser.get(report.as_uri())
    assert "FINISHED" in text_of(browser)
    for title in ("Decisions", "Cost", "Configuration"):
        assert title in text_of(browser)
    broken = "return [...document.images].filter(image => !image.complete || !image.naturalWidth).length"
    assert browser.execute_script(broken) == 0
    assert severe(browser) == []
    keep(browser, "report")
