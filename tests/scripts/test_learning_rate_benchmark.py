"""The learning-rate benchmark's parts: trainings that nothing disturbs, runs that go on, figures worked out by hand."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from benchmark_parts.learning_rate import data, models
from benchmark_parts.learning_rate.arm import Arm
from benchmark_parts.learning_rate.arms import autolrs, base, fixed_rates, peers, tuned_at
from benchmark_parts.learning_rate.figure import draw
from benchmark_parts.learning_rate.runs import Run, carry_out
from benchmark_parts.learning_rate.summary import HARD, Results, summarise
from benchmark_parts.learning_rate.table import brief, markdown
from benchmark_parts.learning_rate.tasks import TASKS, Task, cross_entropy
from benchmark_parts.learning_rate.training import Training

STEPS = 40
DIGITS = Task(
    name="digits with batch norm",
    kind="images",
    steps=STEPS,
    batch=16,
    data=data.digits,
    model=lambda: models.convnet(8, [4, 8], norm=True, dropout=0.25),
    loss=cross_entropy,
)
ARMS = (*peers(), *fixed_rates())


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """As in the benchmark; threads that wait for each other make small steps slow on a busy machine.

    Arms take subnormal numbers for zero, which must not outlast them.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    torch.set_flush_denormal(False)


def test_training_from_a_seed_repeats_to_the_bit() -> None:
    first, second = (taught(Training(DIGITS, STEPS, seed=3, make_optimizer=base)) for _ in range(2))
    assert first == second
    assert first != taught(Training(DIGITS, STEPS, seed=4, make_optimizer=base))


def test_evaluation_disturbs_nothing() -> None:
    alone = taught(Training(DIGITS, STEPS, 0, base))
    watched = Training(DIGITS, STEPS, 0, base)
    assert taught(watched, before_each=lambda: watched.evaluate("test")) == alone


def test_rewound_steps_repeat_with_batches_and_dropout() -> None:
    training = Training(DIGITS, STEPS, 0, lambda parameters, steps: torch.optim.SGD(parameters, lr=0.1))
    stream, dropout = training.states[1].state_dict(), training.states[2].state_dict()
    model = {name: values.clone() for name, values in training.model.state_dict().items()}
    first = [training.step() for _ in range(5)]
    for part, state in zip(training.states, (model, stream, dropout), strict=True):
        part.load_state_dict(state)
    assert [training.step() for _ in range(5)] == first
    assert training.taken == 10


@pytest.mark.parametrize("arm", ARMS, ids=[arm.name for arm in ARMS])
def test_every_arm_trains(arm: Arm) -> None:
    row = arm.train(DIGITS, STEPS, seed=0)
    assert row["test_loss"] == row["test_loss_at_budget"] < 10
    assert row["total_steps"] == STEPS
    assert row["curve_steps"] == list(range(2, STEPS + 1, 2))


def test_search_is_counted_and_left_out_of_the_curve() -> None:
    row = autolrs().train(DIGITS, 240, seed=0)
    assert 240 < row["total_steps"] <= 1.2 * 240
    assert row["curve_steps"][0] > row["total_steps"] - 240
    assert math.isfinite(row["test_loss_at_budget"])
    assert row["test_loss_at_budget"] != row["test_loss"]
    assert 0 < row["controller_cpu_seconds"] < row["cpu_seconds"]


def test_a_stopped_benchmark_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "runs.jsonl"
    monkeypatch.setenv("BENCH_CACHE", str(kept))
    runs = [Run(DIGITS, arm, STEPS, seed) for seed in range(2) for arm in tuned_at((1e-2,))]
    first = carry_out(runs[:3])
    with kept.open("a") as lines:
        lines.write('[["digits", "cut sho')
    capsys.readouterr()
    assert carry_out(runs)[:3] == first
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said] == ["4/4"]


def test_text_windows_go_on_by_one_symbol_and_splits_are_apart() -> None:
    splits = data.text("kjv", 32)
    inputs, targets = splits["test"]
    assert torch.equal(inputs[:, 1:].long(), targets[:, :-1])
    assert [len(splits[split][0]) for split in ("validation", "test")] == [2000, 4000]
    held_out = {bytes(window.tolist()) for window in inputs}
    shared = sum(bytes(window.tolist()) in held_out for window in splits["train"][0])
    assert shared < 0.001 * len(splits["train"][0])  # verses that repeat


def test_counted_tasks_have_test_splits_that_can_tell() -> None:
    assert sum(task.counted for task in TASKS) >= 9
    assert len({task.kind for task in TASKS if task.counted}) >= 4
    for task in present(TASKS):
        many = len(task.data()["test"][0]) >= 2000
        assert task.counted == many or (many and task.development), task.name


def test_the_best_peer_is_tuned_on_validation_and_compared_in_hindsight() -> None:
    results = Results(hand_made())
    assert results.losses("a", "tuned") == [2.0, 1.0]  # by validation, though another peak has a lower test loss
    assert results.best("a", results.peers) == "tuned"
    comparison = results.comparison("a")
    assert comparison.excess == pytest.approx(-0.1)
    assert comparison.at_or_below
    hard = results.comparison("a", HARD)  # differences 0.5 and 0.1: mean 0.3, standard error 0.2
    assert hard.excess == pytest.approx(0.2)
    assert not hard.at_or_below
    assert results.mean_rank("AutoLRS") == 1
    assert results.mean_rank("untuned") == 3


def test_summary_of_hand_made_rows() -> None:
    results = Results(hand_made())
    summary = summarise(results, results, [row for row in hand_made() if row["role"] == "method"])
    assert summary["tasks_at_or_below_best_peer"] == 1
    assert summary["tasks_at_or_below_best_peer_hard_budget"] == 0
    assert summary["long_horizon_excess_by_task"] == {"a": pytest.approx(-0.1)}
    assert summary["worst_regret_to_fixed_rate"] == pytest.approx(1.35 / 1.5 - 1)
    assert summary["controller_cpu_share"] == pytest.approx(0.05)
    assert summary["total_steps_ratio"] == pytest.approx(1.15)


def test_table_and_figure_show_every_family(tmp_path: Path) -> None:
    results = Results(hand_made())
    lines = markdown(results).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    for cell in ("**1.5 ± 0.7**", "-10.0%", "+20.0% (above)"):
        assert cell in lines[2]
    (line,) = brief(results).splitlines()[2:]
    assert line.endswith("| tuned 1.5 ± 0.7 | -10.0% | +20.0% (above) |")
    draw(results, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


@pytest.mark.slow
def test_quick_benchmark_fills_its_summary() -> None:
    from benchmarks.learning_rate import run

    rows, summary = run(quick=True)
    assert summary["tasks"] == 3
    assert len(rows) == 3 * 2 * 23 + 2 * 7 + 3 + 2
    assert summary["population_total_steps_ratio"]["PBT"] == 5 * 288 / 300  # whole rounds
    assert set(json.loads(json.dumps(summary))) == set(summary)
    assert 1 < summary["total_steps_ratio"] <= 1.2


def taught(training: Training, before_each: Callable[[], object] = lambda: None) -> list[float]:
    """The losses of all steps."""
    training.optimizer.train()
    losses = []
    for _ in range(STEPS):
        before_each()
        losses.append(training.step())
    return losses


def present(tasks: Sequence[Task]) -> Iterator[Task]:
    """The tasks whose data are there."""
    for task in tasks:
        with suppress(data.MissingDataError):
            task.data()
            yield task


def hand_made() -> list[dict[str, object]]:
    """One task, two seeds: a tuned peer of two peaks, an untuned one, one fixed rate, and the method."""
    return [
        row
        for seed, (tuned, untuned, fixed, ours, within) in enumerate(((2, 3, 2, 1.8, 2.5), (1, 2, 1, 0.9, 1.1)))
        for row in (
            made(seed, "tuned", "peer", tuned, validation=1),
            made(seed, "tuned", "peer", tuned - 0.9, validation=2),
            made(seed, "untuned", "peer", untuned),
            made(seed, "fixed 0.01", "fixed rate", fixed),
            made(seed, "AutoLRS", "method", ours, within, total=1150),
        )
    ]


def made(
    seed: int,
    family: str,
    role: str,
    loss: float,
    within: float | None = None,
    validation: float = 1,
    total: int = 1000,
) -> dict[str, object]:
    return {
        "task": "a",
        "seed": seed,
        "family": family,
        "role": role,
        "steps": 1000,
        "total_steps": total,
        "rate": 0.01,
        "validation_loss": validation,
        "test_loss": loss,
        "test_loss_at_budget": loss if within is None else within,
        "cpu_seconds": 100.0,
        "controller_cpu_seconds": 5.0,
        "curve_steps": [500, 1000],
        "test_curve": [loss + 1, loss],
    }
