"""Runs side by side: every run a row, its own numbers in it."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.compare import compare, comparison_figure, find_runs, read_runs
from orchestrator.errors import UserError
from orchestrator.journal_file import read_journal
from orchestrator.recorders.style import LIGHT
from orchestrator.words import clock_text, loss_text

DATA = Path(__file__).parent.parent / "data"


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    """An outputs folder with a finished run of each policy."""
    for name in ("autolrs", "cosine"):
        folder = tmp_path / "outputs" / "2026-11-30" / name
        folder.mkdir(parents=True)
        (folder / "journal.jsonl").write_bytes((DATA / f"journal_{name}.jsonl").read_bytes())
        (folder / "result.json").write_text(json.dumps(read_journal(folder / "journal.jsonl")[-1].result))
    return tmp_path / "outputs"


def table(folders: list[Path], outputs: Path, width: int = 80) -> list[list[str]]:
    output = io.StringIO()
    compare(folders, outputs, Console(file=output, width=width, highlight=False))
    return [line.split() for line in output.getvalue().splitlines()]


def test_all_runs_found_with_their_numbers_in_80_columns(outputs: Path) -> None:
    header, autolrs, cosine, last = table([], outputs)
    assert header == ["run", "lr", "steps", "search", "time", "train", "val", "test", "perplexity"]
    assert autolrs[:2] == ["autolrs", "autolrs"]
    assert autolrs[2:4] == ["800", "517"]
    assert cosine[:4] == ["cosine", "cosine", "800", "0"]
    for row, name in ((autolrs, "autolrs"), (cosine, "cosine")):
        result = json.loads((outputs / "2026-11-30" / name / "result.json").read_text())
        expected = [
            result["train_loss"],
            result["validation_loss"],
            result["test"]["loss"],
            result["test"]["perplexity"],
        ]
        assert row[4:] == [clock_text(result["wall_seconds"]), *map(loss_text, expected)]
    assert last[0] == "figure:"
    assert (outputs / "compare.png").read_bytes().startswith(b"\x89PNG")


def test_what_differs_becomes_a_column(outputs: Path) -> None:
    unfinished = outputs / "2026-11-30" / "cosine"
    lines = (unfinished / "journal.jsonl").read_text().splitlines(keepends=True)
    (unfinished / "journal.jsonl").write_text("".join(lines[:30]).replace('"seed":0', '"seed":7'))
    (unfinished / "result.json").unlink()
    header, autolrs, cosine, _ = table([], outputs, width=100)
    assert "seed" in header
    assert "state" in header
    assert autolrs[header.index("state")] == "FINISHED"
    assert cosine[header.index("state")] == "UNFINISHED"
    assert cosine[header.index("seed")] == "7"
    assert cosine[header.index("time")] == "–"


def test_folders_as_named(outputs: Path) -> None:
    (_, row, _) = table([outputs / "2026-11-30" / "cosine"], outputs)
    assert row[0] == "cosine"
    assert find_runs(outputs) == [outputs / "2026-11-30" / name for name in ("autolrs", "cosine")]


def test_curves_run_over_all_steps_the_search_included(outputs: Path) -> None:
    figure = comparison_figure(read_runs(find_runs(outputs)), LIGHT)
    ends = {line.get_label().split(",")[0]: line.get_xdata()[-1] for line in figure.axes[1].get_lines()}
    assert ends == {"autolrs": 1317, "cosine": 800}


def test_wrong_folders_are_named(tmp_path: Path, outputs: Path) -> None:
    with pytest.raises(UserError, match=r"here is no run folder: it has no journal\.jsonl"):
        compare([tmp_path / "here"], outputs)
    with pytest.raises(UserError, match="holds no run yet"):
        compare([], tmp_path / "empty")
    assert not (outputs / "compare.png").exists()
