"""A run learns the rate of earlier finished runs of the same work, and of nothing else."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from rich.console import Console

from orchestrator.config import CONF, Config, config_from, recorded_config
from orchestrator.dry_run import print_dry_run
from orchestrator.events import RateChosen, RunStarted
from orchestrator.learning_rate import make_policy
from orchestrator.learning_rate.policy import Choice
from orchestrator.past import taught
from orchestrator.recorders import messages
from orchestrator.recorders.journal import Journal
from orchestrator.words import rate_text

ON = ("past=true", "task=tabular", "steps=800")


@pytest.fixture(autouse=True)
def _configuration_tree() -> Iterator[None]:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield


def configure(outputs: Path, *overrides: str) -> Config:
    composed = compose("config", [*ON, *overrides, f"outputs={outputs}"])
    values: Any = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    return config_from(values)


def earlier(config: Config, name: str, rate: float | None, at: float = 0.0, state: str = "FINISHED") -> Path:
    """The folder of a run that chose that rate."""
    folder = Path(config.outputs) / "day" / name
    folder.mkdir(parents=True)
    journal = Journal(folder / "journal.jsonl")
    journal.record(RunStarted(name, str(folder), config.to_json(), {}, at))
    if rate is not None:
        journal.record(RateChosen(Choice(1, rate, "it was the best", 800)))
    journal.close()
    (folder / "result.json").write_text(json.dumps({"state": state}))
    return folder


def test_the_newest_finished_run_of_the_same_work_teaches(tmp_path: Path) -> None:
    config = configure(tmp_path)
    earlier(config, "old", 0.001, at=1.0)
    newest = earlier(replace(config, seed=7, steps=400), "new", 0.02, at=3.0)
    earlier(config, "older", 0.002, at=2.0)
    earlier(config, "failed", 0.5, at=4.0, state="FAILED")
    earlier(config, "without a search", None, at=5.0)
    found, past = taught(config)
    assert (found.lr["near"], past) == (0.02, str(newest))
    assert replace(found, lr=config.lr) == config


def test_it_searches_less_and_a_resume_searches_the_same(tmp_path: Path) -> None:
    config = configure(tmp_path)
    earlier(config, "run", 0.02)
    found, _ = taught(config)
    costs = [make_policy(each.lr, each.steps).cost().probe_steps for each in (config, found)]
    assert costs == [100, 60]
    again = recorded_config(json.loads(json.dumps(found.to_json())))
    assert make_policy(again.lr, again.steps).ask() == make_policy(found.lr, found.steps).ask()


OTHERS = (
    "task=image_classification", "task.data=wine", "model.width=32", "optimizer=adamw", "optimizer.weight_decay=0.1",
    "precision=bfloat16", "clip=null", "batch_size=8", "accumulate=2", "cluster.workers=3", "lr=autolrs_hold",
)  # fmt: skip
NOT_WANTED = (
    "past=false", "past=null", "lr.min_lr=0.001", "lr.known_lr=0.01", "lr=cosine", "lr=autolrs_paper",
    "steps=100 lr.strict=false",
)  # fmt: skip


@pytest.mark.parametrize("other", OTHERS)
def test_other_work_teaches_nothing(tmp_path: Path, other: str) -> None:
    earlier(configure(tmp_path, other), "run", 0.02)
    config = configure(tmp_path)
    assert taught(config) == (config, None)


@pytest.mark.parametrize("said", NOT_WANTED)
def test_whoever_wants_to_know_nothing_is_told_nothing(tmp_path: Path, said: str) -> None:
    config = configure(tmp_path, *said.split())
    earlier(config, "run", 0.02)
    assert taught(config) == (config, None)


def test_launches_that_decide_learn_unless_told_not_to(tmp_path: Path) -> None:
    deciding = configure(tmp_path, "past=null", "decide=all")
    earlier(deciding, "run", 0.02)
    assert taught(deciding)[1] is not None
    for said in (["past=false", "decide=all"], ["past=null", "decide=all", "decide.rate=given"]):
        assert taught(configure(tmp_path, *said))[1] is None
    assert taught(replace(deciding, parent=str(tmp_path)))[1] is None
    assert taught(replace(deciding, parent=str(tmp_path), past=True))[1] is not None


@pytest.mark.parametrize("damage", [b"", b"{", b"[]\n", b'{"n": 0}\n', b"\xff\xfe\n"])
def test_a_damaged_folder_teaches_nothing(tmp_path: Path, damage: bytes) -> None:
    config = configure(tmp_path)
    folder = earlier(config, "run", 0.02)
    whole = (folder / "journal.jsonl").read_bytes()
    (folder / "journal.jsonl").write_bytes(damage)
    assert taught(config)[1] is None
    (folder / "journal.jsonl").write_bytes(whole.splitlines(keepends=True)[0] + damage + b"\nmore\n")
    assert taught(config)[1] is None
    (folder / "journal.jsonl").write_bytes(whole)
    (folder / "result.json").write_bytes(damage)
    assert taught(config)[1] is None


def test_where_nothing_ran_yet_there_is_nothing_to_learn(tmp_path: Path) -> None:
    config = configure(tmp_path / "none")
    assert taught(config) == (config, None)


def test_a_person_is_told_before_and_at_the_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = configure(tmp_path)
    folder = earlier(config, "run", 0.02)
    print_dry_run(config, tmp_path / "next")
    assert f"searched around {rate_text(0.02)}, as " in " ".join(capsys.readouterr().out.split())
    found, past = taught(config)
    console = Console(width=1000, record=True, file=io.StringIO())
    console.print(messages.start(RunStarted("next", "folder", found.to_json(), {}, 0.0, past)))
    assert (
        f"searched around {rate_text(0.02)}, as {folder} chose for the same work; past=false: anew"
        in console.export_text()
    )
    console.print(messages.start(RunStarted("next", "folder", config.to_json(), {}, 0.0)))
    assert "past=false" not in console.export_text()
