"""`task=finetune_smollm2` from the command line: it learns, resumes to the bit, and says what it cannot read."""

import json
from pathlib import Path
from typing import Any

import gguf_files
import pytest
from commands import killed_when, orchestrate, run_folder
from safetensors import safe_open

from orchestrator.events import Scored, Validated
from orchestrator.journal_file import read_journal
from trainers.data.text import read_text

TUNE = ["task=finetune_smollm2", "tracking=none"]
TINY = [*TUNE, "model.path=tiny.gguf", "task.data=text.txt", "task.context=32", "steps=60", "lr.validate_every=20"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    gguf_files.write(tmp_path / "tiny.gguf", gguf_files.tensors())
    (tmp_path / "text.txt").write_bytes(read_text("kjv").tobytes()[:60_000])
    return tmp_path


def result_of(folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return result


def saved(folder: Path) -> int:
    journal = folder / "journal.jsonl"
    return sum(type(event).__name__ == "SnapshotSaved" for event in read_journal(journal)) if journal.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize("more", [["lr=autolrs", "steps=200"], ["task.lora=null"]], ids=["adapters", "full"])
def test_a_killed_run_resumes_to_the_bit(more: list[str], place: Path) -> None:
    whole = orchestrate(place, "run", *TINY, *more, run_folder(place, "whole"))
    assert whole.returncode == 0, whole.stderr
    killed_when(place, ["run", *TINY, *more, run_folder(place, "killed")], lambda: saved(place / "killed") >= 1)
    resumed = orchestrate(place, "resume", str(place / "killed"))
    assert resumed.returncode == 0, resumed.stderr
    results = [result_of(place / name) for name in ("whole", "killed")]
    for key in ("weights_sha256", "lr_by_step", "train_loss", "validation_loss", "test"):
        assert results[0][key] == results[1][key], key
    scored = [event.metrics for event in read_journal(place / "whole" / "journal.jsonl") if isinstance(event, Scored)]
    assert scored[-1]["bits_per_byte"] < scored[-1]["bits_per_byte_before"]
    again = orchestrate(place, "run", f"evaluate={place / 'whole'}", run_folder(place, "again"))
    assert again.returncode == 0, again.stderr
    assert json.loads((place / "again" / "evaluation.json").read_text())["scores"]["test"] == results[0]["test"]


@pytest.mark.slow
def test_a_run_over_another_base_is_not_resumed(place: Path) -> None:
    killed_when(place, ["run", *TINY, run_folder(place, "run")], lambda: saved(place / "run") >= 1)
    gguf_files.write(place / "tiny.gguf", gguf_files.tensors(seed=1))
    resumed = orchestrate(place, "resume", str(place / "run"))
    assert resumed.returncode == 2, resumed.stderr
    assert "build the model from the same file" in " ".join(resumed.stdout.split())


@pytest.mark.slow
def test_smollm2_learns_and_its_own_weights_are_not_written(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(read_text("kjv").tobytes()[:300_000])
    few = ["task.data=text.txt", "task.context=64", "steps=8", "lr.stages=2", "lr.validate_every=4"]
    ended = orchestrate(tmp_path, "run", *TUNE, *few, run_folder(tmp_path, "run"), timeout=900)
    assert ended.returncode == 0, ended.stderr
    events = read_journal(tmp_path / "run" / "journal.jsonl")
    losses = [event.metrics["loss"] for event in events if isinstance(event, Validated) and event.split == "validation"]
    assert losses[-1] < losses[0]
    scored = [event.metrics for event in events if isinstance(event, Scored)]
    assert scored[-1]["bits_per_byte"] < scored[-1]["bits_per_byte_before"] < 2
    with safe_open(tmp_path / "run" / "weights.safetensors", framework="pt") as file:
        assert len(list(file.keys())) == 30 * 2 * 2
    sizes = [path.stat().st_size for path in (tmp_path / "run").rglob("*.safetensors")]
    assert max(sizes) < 10e6  # of 540 MB


@pytest.mark.parametrize(
    ("override", "named"),
    [("model.path=text.txt", "does not begin with GGUF"), ("task.lora.rank=0", "task.lora.rank is 0")],
)
def test_one_sentence_and_exit_code_2(override: str, named: str, place: Path) -> None:
    before = sorted(place.rglob("*"))
    ended = orchestrate(place, "run", *TINY, override)
    assert (ended.returncode, len(ended.stderr.strip().splitlines())) == (2, 1), ended.stderr
    assert named in ended.stderr
    assert sorted(place.rglob("*")) == before
