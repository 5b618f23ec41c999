"""The closed-loop benchmark's parts: curves, targets and ratios by hand, both sides' equal models, a figure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from benchmark_parts.closed_loop import plain_ddp, schedule
from benchmark_parts.closed_loop.cases import ALL, CASES, NONE, SAMPLES, WITHOUT
from benchmark_parts.closed_loop.curves import Curve, curve_of_journal, curve_of_lines
from benchmark_parts.closed_loop.rows import row
from benchmark_parts.closed_loop.schedule import FULL, QUICK, Extent, measured
from benchmark_parts.closed_loop.summary import summarise
from closed_loop_figure import main as draw

from orchestrator.cli import quoted
from orchestrator.config import CONF, build, config_from
from orchestrator.events import RunStarted, StepsTrained, Validated
from orchestrator.journal_file import Entry

CASE = "two_boxes, language_model"


def test_the_target_is_reached_by_the_first_loss_at_or_under_it() -> None:
    curve = Curve([10.0, 20.0, 30.0, 40.0], [3.0, 2.0, 2.5, 1.0])
    assert [curve.reached(target) for target in (3.5, 2.0, 1.5, 0.9)] == [10.0, 20.0, 40.0, None]


def test_a_journals_clock_is_set_to_the_launch() -> None:
    entries = [
        Entry(0, 0.5, RunStarted("run", "folder", {}, {}, started_at=1004.5)),
        Entry(1, 8.0, StepsTrained(1, 0, [0.1], [3.0], 1.0)),
        Entry(2, 10.0, Validated(1, "validation", {"loss": 2.0}, 0.1)),
        Entry(3, 11.0, Validated(1, "test", {"loss": 9.0}, 0.1)),
    ]
    assert curve_of_journal(entries, launched=1000.0) == Curve([14.0], [2.0])
    assert curve_of_lines([(1014.0, 2.0)], launched=1000.0) == Curve([14.0], [2.0])


def at(arm: str, seed: int, seconds: Sequence[float], losses: Sequence[float], part: str = "lab", **more: Any) -> dict:
    case = CASE if part == "lab" else "tabular"
    return row(part, case, arm, seed, Curve(seconds, losses), load=1.0, seconds=seconds[-1] + 1, **more)


@pytest.fixture
def rows() -> list[dict]:
    """The best peak ends at 2.0 (seed 0) and 2.2 (seed 1) after 100 s, the other at 1.9 and 3.0."""
    lab = [
        at("plain 0.001", 0, [50, 100], [3.0, 2.0]),
        at("plain 0.001", 1, [50, 100], [3.0, 2.2]),
        at("plain 0.01", 0, [49, 99], [3.0, 1.9]),
        at("plain 0.01", 1, [49, 99], [3.0, 3.0]),
        at(ALL.name, 0, [20, 50, 80], [4.0, 1.5, 1.4], cluster_seconds=50.0),
        at(ALL.name, 1, [20, 25, 30], [4.0, 2.2, 2.0], cluster_seconds=75.0),
        at(WITHOUT["batch"].name, 0, [100], [1.0]),
        at(WITHOUT["batch"].name, 1, [100], [1.0]),
        at(WITHOUT["rate"].name, 0, [100], [1.0]),
        at(WITHOUT["rate"].name, 1, [100], [2.3]),
    ]
    local = [
        at(NONE.name, 0, [10, 20], [1.0, 0.5], part="local"),
        at(ALL.name, 0, [12, 24], [0.9, 0.51], part="local"),
        at(NONE.name, 1, [10, 20], [1.0, 0.5], part="local"),
        at(ALL.name, 1, [12, 24], [0.5, 0.4], part="local"),
    ]
    return lab + local


def test_the_summary_has_medians_over_seeds_of_ratios(rows: list[dict]) -> None:
    summary = summarise(rows)
    assert summary["best_peak_by_case"] == {CASE: "plain 0.001"}
    assert summary["time_to_target_speedup_by_case"] == {CASE: (100 / 50 + 100 / 25) / 2}
    assert summary["time_to_target_speedup_with_cluster_start_by_case"] == {CASE: 1.0}
    assert summary["speedup_over_grid_by_case"] == {CASE: (201 / 50 + 201 / 25) / 2}
    assert summary["gain_by_decision"] == {CASE: {"batch": 3.0, "rate": None}}
    assert summary["missed"] == {f"{CASE}: rate": "all but rate, seed 1, was at 2.3 at best, the target is 2.2"}
    assert summary["decide_all_worst_slowdown"] == pytest.approx((24 / 20 + 12 / 20) / 2)


def test_no_figure_is_made_up_where_a_run_fails(rows: list[dict]) -> None:
    broken = [
        replaced | {"curve_losses": [], "curve_seconds": [], "loss": None, "failed": "no room"}
        if replaced["arm"] == ALL.name and replaced["seed"] == 1
        else replaced
        for replaced in rows
    ]
    summary = summarise(broken)
    assert summary["time_to_target_speedup_by_case"] == {CASE: None}
    assert summary["decide_all_worst_slowdown"] is None
    assert summary["missed"][f"{CASE}: speedup"] == "all, seed 1, failed: no room"


def test_where_the_default_is_at_its_last_loss_early_both_are_held_to_that(rows: list[dict]) -> None:
    for each in rows:
        if each["part"] == "local":
            early = 5 if each["arm"] == NONE.name else 6
            each.update(curve_seconds=[early, 50], curve_losses=[0.4, 0.5])
    assert summarise(rows)["decide_all_worst_slowdown"] == pytest.approx(6 / 5)


def test_a_launch_that_ends_above_the_default_in_the_mean_has_no_slowdown(rows: list[dict]) -> None:
    rows[-1]["curve_losses"] = [0.9, 0.51]
    summary = summarise(rows)
    assert summary["decide_all_worst_slowdown"] is None
    assert summary["missed"]["tabular"] == "all ended at 0.51 in the mean, the default at 0.5"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_both_sides_train_one_model_on_the_same_samples(case: Any) -> None:
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(str(CONF), version_base="1.3"):
        composed = compose("config", [*map(quoted, case.workload.overrides), "hydra.run.dir=."])
    values: Any = OmegaConf.to_container(composed, resolve=True)
    config = config_from(values)
    own = {"peak": 0.1, "seed": 0, "samples": SAMPLES, "curve": "", "validate_every": 1}
    plain = plain_ddp.make_task(plain_ddp.Options(**case.workload.to_json(), **own))
    task = build(config.task)
    lengths = [[len(part) for part in (splits.train, splits.validation)] for splits in map(data_of, (plain, task))]
    assert lengths[0] == lengths[1]
    assert shapes(plain) == shapes(task)
    assert config.clip == plain_ddp.CLIP
    assert (config.steps, config.batch_size) == (case.workload.steps, case.workload.batch)


def data_of(task: Any) -> Any:
    return task.build_data()


def shapes(task: Any) -> dict[str, Any]:
    return {name: value.shape for name, value in task.build_model().state_dict().items()}


def test_the_cosine_rises_and_falls() -> None:
    shares = [plain_ddp.cosine(step, 100) for step in range(101)]
    assert shares[0] == pytest.approx(0.2)
    assert shares[4] == shares[5] == 1
    assert shares[100] == pytest.approx(0)


def test_what_is_kept_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[dict]) -> None:
    """No lab can be built here by anybody: what is missing would raise."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "rows.jsonl"))
    made = iter(range(100))

    def todos(*_: Any) -> list[schedule.Todo]:
        return [schedule.Todo(["local", seed], partial(counted, seed)) for seed in (0, 1)]

    def counted(seed: int, _: None) -> dict:
        next(made)
        return rows[-4 + seed]

    nothing = Extent((), (), (), (), seeds=1, shipped_seeds=1)
    monkeypatch.setattr(schedule, "_on_this_machine", todos)
    first = measured(nothing)
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('[["local", 7], {"torn')
    assert measured(nothing) == first == [rows[-4], rows[-3]]
    assert next(made) == 2


def test_both_forms_measure_all_that_the_figures_need() -> None:
    for extent in (QUICK, FULL):
        names = {arm.name for arm in extent.arms}
        assert ALL.name in names
        assert names & {arm.name for arm in WITHOUT.values()}
        assert len(extent.peaks) >= 2
        assert extent.shipped


def test_the_figure_is_drawn(rows: list[dict], tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(json.dumps({"rows": rows}))
    draw(tmp_path / "rows.json", tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
