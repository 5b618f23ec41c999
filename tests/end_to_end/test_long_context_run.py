"""Long context from the command line: a tiny run scored, in MLflow; its folder compared and scored again; bad input."""

import json
from pathlib import Path

import gguf_files
import pytest
from commands import killed_when, orchestrate, run_folder

from orchestrator.events import Scored
from orchestrator.journal_file import read_journal
from trainers.data.text import read_text

TINY = ["task=language_model", "evaluation=long_context", "lr=constant", "lr.stages=2", "steps=40", "cluster.workers=1"]
FEW = ["evaluation.long_context.context=256", "evaluation.long_context.needles=1"]
EXPECTED = {
    "perplexity", "perplexity_full", "needle_retrieved", "needle_retrieved_full", "needle_rank", "needle_rank_full",
    "mass_mean", "mass_p5", "kept_share", "tokens_per_second", "tokens_per_second_full", "context", "trained_context",
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("long_context")
    ended = orchestrate(place, "run", *TINY, *FEW, run_folder(place, "run"))
    assert ended.returncode == 0, ended.stderr
    return place / "run"


@pytest.mark.slow
def test_scores_are_in_mlflow_journal_result_and_report(finished: Path) -> None:
    from mlflow import MlflowClient

    result = json.loads((finished / "result.json").read_text())
    metrics = {name: value for name, value in result["scores"].items() if name.startswith("long_context/")}
    assert metrics.keys() == {f"long_context/{name}" for name in EXPECTED}
    client = MlflowClient(f"sqlite:///{finished.parent}/outputs/mlflow.db")
    logged = client.get_run(result["mlflow_run_id"]).data.metrics
    assert {name: logged[name] for name in metrics} == metrics
    assert len(client.get_metric_history(result["mlflow_run_id"], "long_context/perplexity")) == 2
    scored = [event for event in read_journal(finished / "journal.jsonl") if isinstance(event, Scored)]
    assert scored[-1].metrics["long_context/perplexity"] < scored[0].metrics["long_context/perplexity"] < 256
    page = (finished / "report.html").read_text()
    assert "long_context/mass_p5" in page
    assert "extrapolated from 64" in page


@pytest.mark.slow
def test_two_workers_score_a_finished_run_as_one_does(finished: Path) -> None:
    """A finished run is scored as it was while it trained, and by other options if they are given."""
    scores = []
    for workers in (1, 2):
        folder = finished.parent / f"again{workers}"
        ended = orchestrate(
            finished.parent, "run", f"evaluate={finished}", f"cluster.workers={workers}", f"hydra.run.dir={folder}"
        )
        assert ended.returncode == 0, ended.stderr
        scores.append(json.loads((folder / "evaluation.json").read_text())["scores"]["task"])
    before = json.loads((finished / "result.json").read_text())["scores"]
    for again in scores:
        assert {name: value for name, value in again.items() if "second" not in name} == pytest.approx(
            {name: value for name, value in before.items() if "second" not in name}
        )


@pytest.mark.slow
def test_a_run_that_was_killed_while_it_scored_scores_when_it_is_resumed(tmp_path: Path) -> None:
    one = [*TINY, "lr.stages=1", "steps=20", "evaluation.long_context.prompts=60", "tracking=none"]
    journal = tmp_path / "run" / "journal.jsonl"
    killed_when(
        tmp_path,
        ["run", *one, run_folder(tmp_path, "run")],
        lambda: journal.is_file() and "SnapshotSaved" in journal.read_text(),
    )
    assert not any(isinstance(event, Scored) for event in read_journal(journal))
    ended = orchestrate(tmp_path, "resume", str(tmp_path / "run"))
    assert ended.returncode == 0, ended.stderr
    assert {
        name.removeprefix("long_context/")
        for name in json.loads((tmp_path / "run" / "result.json").read_text())["scores"]
    } >= EXPECTED


@pytest.mark.slow
def test_ways_to_attend_are_compared_on_a_run_folder(finished: Path) -> None:
    few = ["--context", "256", "--steps", "4", "--target", "0.8", "0.8", "--figure", "mass.png", "--json"]
    ended = orchestrate(finished.parent, "attention", str(finished), *few, "--methods", "oracle_top_p,snapkv")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    by_name = {row["name"]: row for row in found["rows"]}
    assert [row["name"] for row in found["rows"]] == ["full", "Tactic", "oracle top-p", "SnapKV"]
    assert by_name["full"]["kl"] == 0
    assert by_name["oracle top-p"]["mass_mean"] >= 0.8
    assert (finished.parent / "mass.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_ways_to_attend_are_compared_on_a_file(tmp_path: Path) -> None:
    gguf_files.write(tmp_path / "tiny.gguf", gguf_files.tensors())
    (tmp_path / "text.txt").write_bytes(read_text("kjv").tobytes()[:2000])
    few = ["--context", "200", "--steps", "4", "--methods", "quest", "--texts", "text.txt"]
    ended = orchestrate(tmp_path, "attention", "tiny.gguf", *few)
    assert ended.returncode == 0, ended.stderr
    assert "Quest" in ended.stdout
    assert "KV cache" in ended.stderr
    ended = orchestrate(tmp_path, "attention", "tiny.gguf", *few, "--figure", ".")
    assert ended.returncode == 2
    assert "Quest" in ended.stdout
    assert "--figure . cannot be written (Is a directory)" in ended.stderr.splitlines()[-1]
    ended = orchestrate(tmp_path, "attention", "tiny.gguf", *few, "--methods", "full", "--json")
    assert [row["name"] for row in json.loads(ended.stdout)["rows"]] == ["full"]


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("evaluation.long_context.target_mass=1.2", "target mass is 1.2"),
        ("evaluation.long_context.method=magic", "tactic or oracle_top_p or full"),
        ("evaluation.long_context.context=900000", "the validation split has"),
        ("task=tabular", "no text"),
    ],
)
def test_a_run_that_cannot_be_scored_is_not_started(override: str, named: str, tmp_path: Path) -> None:
    ended = orchestrate(tmp_path, "run", "task=language_model", "evaluation=long_context", override)
    assert (ended.returncode, len(ended.stderr.strip().splitlines())) == (2, 1), ended.stderr
    assert named in ended.stderr
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["smollm2", "--target", "0"], "target mass is 0"),
        (["smollm2", "--methods", "magic"], "oracle_top_k"),
        (["smollm2", "--context", "9000"], "looks back on 8192"),
        (["smollm2", "--texts", "nowhere.txt"], "--texts: nowhere.txt cannot be read"),
        (["nowhere.gguf"], "nowhere.gguf"),
        (["."], "no run folder"),
    ],
)
def test_a_comparison_that_cannot_be_made_is_one_sentence(arguments: list[str], named: str, tmp_path: Path) -> None:
    ended = orchestrate(tmp_path, "attention", *arguments)
    assert (ended.returncode, len(ended.stderr.strip().splitlines())) == (2, 1), ended.stderr
    assert named in ended.stderr
