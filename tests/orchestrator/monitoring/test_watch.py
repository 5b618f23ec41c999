"""The watch page: served to this machine alone, or one file; whatever a journal holds, it stays a page."""

import json
import os
import re
import threading
import urllib.error
import urllib.request
from pathlib import Path
from queue import Queue

import pytest

from orchestrator.errors import UserError
from orchestrator.events import RunStarted, StepsTrained
from orchestrator.monitoring.watch import newest_run, serve, watch_page, write_watch_page
from orchestrator.recorders.journal import Journal

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    (run / "journal.jsonl").write_bytes((DATA / "journal_autolrs.jsonl").read_bytes())
    return run


@pytest.fixture
def address(folder: Path) -> str:
    """A page that is being served."""
    addresses: Queue[str] = Queue()
    threading.Thread(target=serve, args=(folder, 0, addresses.put), daemon=True).start()
    return addresses.get(timeout=10)


def fetched(address: str) -> str:
    with urllib.request.urlopen(address, timeout=10) as answer:
        return str(answer.read().decode())


def data_of(page: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    values: dict[str, object] = json.loads(found[1])
    return values


def test_the_served_page_draws_what_the_data_address_gives(address: str) -> None:
    page, data = fetched(address), json.loads(fetched(f"{address}data.json"))
    assert address.startswith("http://127.0.0.1:")
    assert data_of(page) == data
    assert {panel["title"] for panel in data["panels"]} >= {"Losses", "Learning rate", "Steps", "Shares"}
    assert data["state"] == "FINISHED"


def test_a_name_that_a_stranger_gave_this_machine_is_not_served(address: str) -> None:
    fetched(address.replace("127.0.0.1", "localhost"))
    strange = urllib.request.Request(address, headers={"Host": "stranger.example:8080"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(strange, timeout=10)


def test_only_the_page_and_its_data_are_served(address: str) -> None:
    for path in ("journal.jsonl", "../run/journal.jsonl", "%2e%2e/journal.jsonl"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetched(address + path)


def test_the_page_follows_a_run_that_goes_on(folder: Path, address: str) -> None:
    before = json.loads(fetched(f"{address}data.json"))
    journal = Journal(folder / "journal.jsonl")
    journal.record(StepsTrained(9, 5000, [0.25], [1.5], 1.0))
    journal.close()
    after = json.loads(fetched(f"{address}data.json"))
    last = {each["name"]: each["points"][-1][1] for panel in after["panels"] for each in panel["series"]}
    assert after != before
    assert (last["rate"], last["steps taken"]) == (0.25, 5001)


def test_names_cannot_become_markup_and_no_number_breaks_the_page(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    journal = Journal(run / "journal.jsonl")
    journal.record(RunStarted("</script><script>alert(1)</script>", "f", {"task": {"_target_": "<b>x"}}, {}, 0.0))
    journal.record(StepsTrained(1, 0, [0.1, 0.1], [float("nan"), float("inf")], 0.0))
    journal.close()
    page = write_watch_page(run, tmp_path / "page.html").read_text()
    assert page.count("<script") == page.count("</script>") == 2
    assert "<b>" not in page
    assert data_of(page)["run"] == "</script><script>alert(1)</script>"
    assert "NaN" not in json.dumps(data_of(page))


def test_the_page_needs_no_network(folder: Path) -> None:
    page = write_watch_page(folder, folder / "watch.html").read_text()
    assert not re.search(r'(?:src|href)=|https?://(?!www\.w3\.org/2000/svg")', page)


def test_the_newest_run_is_watched_by_default(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no run yet"):
        newest_run(tmp_path)
    for at, name in enumerate(("a", "c", "b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "journal.jsonl").touch()
        os.utime(tmp_path / name / "journal.jsonl", (at, at))
    assert newest_run(tmp_path) == tmp_path / "b"


def test_wrong_places_are_sentences(folder: Path, address: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no run folder"):
        serve(tmp_path / "nowhere", 0, print)
    with pytest.raises(UserError, match=r"port \d+ cannot be had .*; name another by --port"):
        serve(folder, int(address.rstrip("/").rpartition(":")[2]), print)
    with pytest.raises(UserError, match="--port is 70000, and must be at most 65535"):
        serve(folder, 70000, print)
    with pytest.raises(UserError, match=r"watch\.html cannot be written"):
        write_watch_page(folder, tmp_path / "nowhere" / "watch.html")


def test_a_page_of_a_run_that_has_only_begun_is_empty_but_whole() -> None:
    page = watch_page({"title": "t", "run": "r", "state": "RUNNING", "seconds": 0.0, "panels": []}, live=True)
    assert "const LIVE = true" in page
