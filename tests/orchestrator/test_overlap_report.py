"""What the terminal, result.json, MLflow and the report say of an overlapped step."""

from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from matplotlib.image import imread

from orchestrator.events import OverlapPlanned, RunStarted, event_from_json, event_json
from orchestrator.overlap_words import overlap_result, overlap_rows, overlap_sentence
from orchestrator.recorders.report import write_report_of
from orchestrator.recorders.style import LIGHT, png
from orchestrator.recorders.timeline_figure import timelines

ROWS = [["compute", "forward 0", 0.0, 0.1], ["compute", "backward 0", 0.1, 0.3], ["network", "reduce 0", 0.2, 0.4]]
PLANNED = OverlapPlanned(
    layout={"mode": "overlapped", "buckets": [], "order": [], "threads": 1},
    machine="one core",
    seconds={"serial": [0.6, 0.5, 0.7], "ddp": [0.5, 0.4, 0.6], "8 buckets": [0.3, 0.2, 0.4]},
    chosen="8 buckets",
    predicted_seconds=0.28,
    predicted_serial_seconds=0.61,
    timelines={"predicted, in turn": ROWS, "measured, overlapped": [*ROWS, ["memory", "optimizer 0", 0.4, 0.41]]},
    rejected=2,
)


def test_medians_and_the_ratio_to_no_overlap_are_said():
    assert overlap_sentence(PLANNED) == (
        "steps by a searched pipeline of 8 buckets: 300 ms (predicted 280 ms), "
        "2.00 × as fast as with nothing overlapped"
    )
    plain = replace(PLANNED, chosen="ddp", predicted_seconds=None)
    assert overlap_sentence(plain).startswith("steps by DistributedDataParallel: 500 ms, 1.20 × as fast")
    assert [row[2] for row in overlap_rows(PLANNED)] == ["1.00 ×", "1.20 ×", "2.00 ×"]


def test_the_result_has_what_was_predicted_and_measured():
    assert overlap_result(None) is None
    assert overlap_result(PLANNED) == {
        "chosen": "8 buckets",
        "predicted_seconds": 0.28,
        "measured_seconds": 0.3,
        "serial_seconds": 0.6,
        "ddp_seconds": 0.5,
        "machine": "one core",
    }


def test_the_report_draws_both_timelines(tmp_path: Path):
    assert event_from_json(event_json(PLANNED)) == PLANNED
    started = RunStarted("run", str(tmp_path), {"task": {"_target_": "tasks.Own"}}, {}, 0.0)
    page = write_report_of([started, PLANNED], tmp_path).read_text()
    assert "<h2>Overlap</h2>" in page
    assert "profiled on one core" in page
    assert "<h2>Overlap</h2>" not in write_report_of([started], tmp_path).read_text()
    assert (tmp_path / "figures" / "overlap.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("stream", ["compute", "memory", "network"])
def test_an_operation_more_is_seen_in_the_figure(stream: str):
    before = imread(BytesIO(png(timelines(PLANNED, LIGHT))))
    more = {**PLANNED.timelines, "predicted, in turn": [*ROWS, [stream, "reduce 1", 0.401, 0.409]]}
    after = imread(BytesIO(png(timelines(replace(PLANNED, timelines=more), LIGHT))))
    assert before.shape == after.shape
    assert (before != after).any()
