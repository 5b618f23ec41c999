"""Losses that are not finite, or huge, on one rank alone: all go back to the start of the stage, at half the rate."""

import pytest
from harness import CONSTANT, SEARCH, StartRun, happened, trained

from orchestrator.events import ForecastMade, JobReady, RateLowered, Recovered

TWO_STAGES = [*CONSTANT, "lr.stages=2"]


@pytest.mark.slow
@pytest.mark.parametrize("word", ["nan", "inf", "huge"])
def test_one_rank_diverges_in_training(run: StartRun, word: str) -> None:
    disturbed = run(*TWO_STAGES, "snapshot_every_steps=20").start()
    disturbed.wait_for(trained(150))
    disturbed.order(1, word)
    assert disturbed.ended() == 0, disturbed.output()
    (lowered,) = disturbed.told(RateLowered)
    assert (lowered.stage, lowered.first_step, lowered.factor) == (2, 120, 0.5)
    assert lowered.step >= 150
    (recovered,) = disturbed.told(Recovered)
    assert (recovered.what, recovered.step) == ("diverged", 120)
    result = disturbed.result()
    assert result["lr_by_step"] == [[0, 0.01], [120, 0.005]]
    assert result["train_steps"] == 240
    assert len(result["weights_sha256"]) == 64  # equal on all ranks, else the run fails


@pytest.mark.slow
def test_the_lower_rate_outlives_a_kill(run: StartRun) -> None:
    disturbed = run(*TWO_STAGES, "snapshot_every_steps=20").start()
    disturbed.wait_for(trained(20))
    disturbed.order(0, "nan")
    disturbed.wait_for(happened(Recovered))
    disturbed.wait_for(lambda run: "step-000020-within" in run.snapshots())
    disturbed.close()
    disturbed.resume()
    assert disturbed.ended() == 0, disturbed.output()
    assert disturbed.result()["lr_by_step"] == [[0, 0.005], [120, 0.01]]


@pytest.mark.slow
def test_a_training_that_diverges_whatever_its_rate_fails(run: StartRun) -> None:
    doomed = run(*TWO_STAGES, "+task.explodes_after=30").start()
    assert doomed.ended() == 1
    assert [each.factor for each in doomed.told(RateLowered)] == [0.5, 0.25, 0.125]
    assert "the training loss is nan at step" in doomed.result()["reason"]


@pytest.mark.slow
def test_one_rank_diverges_in_a_probe(run: StartRun) -> None:
    disturbed = run(*SEARCH).start()
    disturbed.wait_for(happened(JobReady))  # its first pass, for nothing, is behind it
    disturbed.order(1, "nan")
    assert disturbed.ended() == 0, disturbed.output()
    assert [each.forecast.diverged for each in disturbed.told(ForecastMade)].count(True) >= 1
    assert not disturbed.told(Recovered)
