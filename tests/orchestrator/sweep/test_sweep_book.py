"""A sweep's folder: what is written is read back, a torn line is no harm, and two processes never share it."""

import json
from pathlib import Path

import pytest

from orchestrator.errors import UserError
from orchestrator.sweep.book import SWEEP, TRIALS, Book, Trial, best_of, old_book, trial_name

IDENTITY = {"format": 1, "id": "0", "words": ["seed=[1,2]"], "place": "/"}


def book(folder: Path) -> Book:
    (folder / SWEEP).write_text(json.dumps(IDENTITY))
    return old_book(folder)


def filled(folder: Path) -> None:
    with book(folder) as opened:
        first = opened.begin({"lr.rate": 0.1})
        opened.begin({"lr.rate": 0.2})
        opened.end(first.finished({"validation_loss": 0.5, "train_steps": 20, "wall_seconds": 3.0}))


def test_trials_are_read_back(tmp_path: Path) -> None:
    filled(tmp_path)
    with book(tmp_path) as again:
        assert [trial.state for trial in again.trials] == ["FINISHED", "RUNNING"]
        assert again.trials[0] == Trial(0, {"lr.rate": 0.1}, "000-rate=0.1", "FINISHED", 0.5, 20, 3.0)
        assert best_of(again.trials) == again.trials[0]
        assert again.folder_of(again.trials[1]) == tmp_path / "trials" / "001-rate=0.2"


def test_a_torn_line_is_cut_off(tmp_path: Path) -> None:
    filled(tmp_path)
    whole = (tmp_path / TRIALS).read_bytes()
    for length in range(0, len(whole), 7):
        (tmp_path / TRIALS).write_bytes(whole[:length])
        with book(tmp_path) as again:
            again.begin({"lr.rate": 0.3})
        kept = whole[:length].rpartition(b"\n")[0].splitlines()
        lines = (tmp_path / TRIALS).read_bytes().splitlines()
        assert lines[: len(kept)] == kept
        assert json.loads(lines[-1])["values"] == {"lr.rate": 0.3}


@pytest.mark.parametrize(
    "wrong",
    [
        "{",
        "[]",
        '{"at":0,"trial":5,"values":{}}',
        '{"at":0,"trial":1,"values":{},"name":"../x"}',
        '{"at":0,"trial":1,"values":[],"name":"001-x"}',
        '{"at":0,"trial":9,"state":"KILLED"}',
        '{"at":0,"trial":0,"state":"BEST"}',
        '{"at":0,"trial":0,"loss":"1"}',
        '{"at":0,"trial":0,"x":1}',
        "[" * 9999,
    ],
)
def test_a_damaged_line_is_told(wrong: str, tmp_path: Path) -> None:
    filled(tmp_path)
    lines = (tmp_path / TRIALS).read_text().splitlines(keepends=True)
    (tmp_path / TRIALS).write_text("".join([*lines[:2], wrong + "\n", *lines[2:]]))
    with pytest.raises(UserError, match="damaged at line 3"), book(tmp_path):
        pass


def test_trials_of_another_sweep_are_told(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / SWEEP).write_text(json.dumps(IDENTITY | {"id": "1"}))
    with pytest.raises(UserError, match=r"is of another sweep than sweep.json beside it"), old_book(tmp_path):
        pass


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with book(tmp_path), pytest.raises(UserError, match="is being worked on by another process"), old_book(tmp_path):
        pass


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"format": 1, "words": [1], "place": "/"}', '{"format": 2, "words": [], "place": "/"}'],
)
def test_what_is_no_sweep_is_told(text: str, tmp_path: Path) -> None:
    (tmp_path / SWEEP).write_text(text)
    with pytest.raises(UserError, match=r"sweep.json (cannot be read|is of another version)"):
        old_book(tmp_path)


def test_names_of_folders_are_short_and_harmless() -> None:
    name = trial_name(7, {"task.data": "../../etc/passwd", "lr": "x" * 100})
    assert "/" not in name
    assert len(name) <= 64
    assert name.startswith("007-data=.._.._etc_passwd,lr=x")
