"""What a run reads after each event, against figures worked out by hand and against the summary of a whole run."""

from pathlib import Path

import pytest

from orchestrator.events import (
    CommunicationMeasured,
    Event,
    ProbeRan,
    RunResumed,
    RunStarted,
    StepsTrained,
)
from orchestrator.journal_file import read_entries
from orchestrator.monitoring.panels import PANELS
from orchestrator.monitoring.readings import Readings
from orchestrator.monitoring.series import series_of, thinned
from orchestrator.summary import summarise

JOURNAL = Path(__file__).parents[2] / "data" / "journal_autolrs.jsonl"
STARTED = RunStarted(
    "job", "folder", {"batch_size": 8, "accumulate": 2, "cluster": {"workers": 3}}, {"train_steps": 100}, 0
)


def read(events: list[tuple[Event, float]]) -> dict[str, float]:
    """The last value of every series, by metric and tags."""
    readings = Readings()
    found = {}
    for event, at in events:
        for metric, tags, value in readings.note(event, at):
            found[" ".join((metric.name, *tags.values()))] = value
    return found


def test_a_run_reads_as_worked_out_by_hand() -> None:
    probe = ProbeRan(1, "search", 0, [0.1] * 10, [1.0] * 10, [], 1.0, 0.0, 0.0)
    found = read([(STARTED, 0.0), (probe, 1.0), (StepsTrained(1, 0, [0.5] * 20, [3.0] * 10 + [2.0] * 10, 4.0), 8.0)])
    assert found["learning_rate"] == 0.5
    assert found["train_loss"] == 2.0
    assert found["step"] == 20
    assert found["steps_left"] == 80
    assert found["steps_per_second"] == 5.0
    assert found["samples_per_second"] == 5.0 * 8 * 2 * 3
    assert found["goodput"] == 0.5
    assert found["probe_share"] == pytest.approx(1 / 3)


def test_steps_that_were_taken_back_are_no_goodput() -> None:
    trained = [(StepsTrained(1, first, [0.1] * 10, [1.0] * 10, 1.0), first / 10 + 1) for first in (0, 10, 20)]
    found = read([(STARTED, 0.0), *trained, (RunResumed(10, "step-000010"), 10.0)])
    assert found["goodput"] == pytest.approx(0.1)
    assert found["recoveries"] == 1


def test_collectives_are_told_apart_by_name_and_way() -> None:
    row = {"measured_seconds": 4.0, "predicted_seconds": 3.0, "planned_bytes": 100.0, "other_bytes": 7.0}
    found = read([(CommunicationMeasured(5, "rule", {"all_reduce": row}), 9.0)])
    assert found["collective_seconds all_reduce"] == 4.0
    assert found["collective_bytes all_reduce plan"] == 100.0
    assert found["collective_bytes all_reduce other"] == 7.0
    assert found["plan_ratio"] == 0.75


def test_series_of_a_whole_run_end_as_its_summary_does() -> None:
    entries = read_entries(JOURNAL)
    summary = summarise([entry.event for entry in entries])
    last = {metric.name: next(iter(series.values()))[-1][1] for metric, series in series_of(entries).items()}
    assert last["step"] == summary["train_steps"]
    assert last["validation_loss"] == summary["validation_loss"]
    assert last["probe_share"] == pytest.approx(
        summary["probe_steps"] / (summary["probe_steps"] + summary["train_steps"])
    )


def test_there_are_a_dozen_metrics_and_each_has_a_meaning() -> None:
    metrics = [metric for panel in PANELS for metric in panel.metrics]
    assert len(metrics) == len({metric.name for metric in metrics}) >= 12
    assert all(metric.meaning for metric in metrics)


@pytest.mark.parametrize("count", [1, 499, 500, 501, 100_000])
def test_a_thinned_series_keeps_its_ends(count: int) -> None:
    points = [(float(at), float(at)) for at in range(count)]
    thin = thinned(points)
    assert len(thin) == min(count, 500)
    assert (thin[0], thin[-1]) == (points[0], points[-1])
    assert thin == sorted(thin)
