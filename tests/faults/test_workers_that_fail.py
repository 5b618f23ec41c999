"""Workers are killed, stopped and hung wherever a run can stand: it goes on by itself, to the same weights."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import CONSTANT, SEARCH, Run, StartRun, happened, probes_tried, same_outcome, trained

from orchestrator.events import ProbeRan, Recovered, RunEnded, SnapshotSaved, StepsTrained, Validated

TWO_STAGES = [*CONSTANT, "lr.stages=2"]


@pytest.mark.slow
def test_killed_while_it_searches_and_while_it_trains(run: StartRun, searched: Run) -> None:
    disturbed = run(*SEARCH, "snapshot_every_steps=50").start()
    disturbed.wait_for(happened(ProbeRan, 1))
    disturbed.signal_worker(0, signal.SIGKILL)
    disturbed.wait_for(happened(Recovered))
    disturbed.wait_for(trained(60))
    disturbed.signal_worker(1, signal.SIGKILL)
    assert disturbed.ended() == 0, disturbed.output()
    same_outcome(disturbed, searched)
    assert probes_tried(disturbed) == probes_tried(searched)  # none is tried again that the journal has
    first, second = disturbed.told(Recovered)
    assert (first.what, first.step) == ("died", 0)
    assert (second.what, second.snapshot) == ("died", f"step-{second.step:06d}-within")
    assert "its process died" in second.reason
    assert disturbed.result()["recoveries"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Validated, SnapshotSaved])
def test_killed_beside_a_validation_or_a_snapshot(run: StartRun, constant: Run, kind: type) -> None:
    disturbed = run(*TWO_STAGES, "lr.validate_every=10", "snapshot_every_steps=20").start()
    disturbed.wait_for(happened(kind, 3))
    disturbed.signal_worker(0, signal.SIGKILL)
    assert disturbed.ended() == 0, disturbed.output()
    same_outcome(disturbed, constant, but=["validation_loss"])
    assert len(disturbed.told(Recovered)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGABRT])
def test_told_to_end(run: StartRun, constant: Run, number: int) -> None:
    disturbed = run(*TWO_STAGES).start()
    disturbed.wait_for(trained(130))
    disturbed.signal_worker(1, number)
    assert disturbed.ended() == 0, disturbed.output()
    same_outcome(disturbed, constant)
    assert disturbed.told(Recovered)[0].step == 120


@pytest.mark.slow
def test_stopped(run: StartRun, constant: Run) -> None:
    disturbed = run(*TWO_STAGES, "cluster.hang_seconds=8").start()
    disturbed.wait_for(trained(20))
    disturbed.signal_worker(1, signal.SIGSTOP)
    assert disturbed.ended() == 0, disturbed.output()
    same_outcome(disturbed, constant)
    (recovered,) = disturbed.told(Recovered)
    assert recovered.what == "silent"
    assert "its process is stopped" in recovered.reason


@pytest.mark.slow
def test_hung_in_a_step(run: StartRun, constant: Run) -> None:
    disturbed = run(*TWO_STAGES, "cluster.hang_seconds=8").start()
    disturbed.wait_for(trained(20))
    disturbed.order(1, "hang")
    assert disturbed.ended() == 0, disturbed.output()
    same_outcome(disturbed, constant)
    (recovered,) = disturbed.told(Recovered)
    assert (recovered.what, recovered.rank) == ("silent", 1)
    assert "slow_task.py" in recovered.reason  # where it stood
    assert "_hang" in recovered.reason
    assert any("in loss" in line for line in recovered.log)  # and how it came there


@pytest.mark.slow
def test_crashed_in_native_code(run: StartRun, constant: Run) -> None:
    disturbed = run(*TWO_STAGES).start()
    disturbed.wait_for(trained(20))
    disturbed.order(0, "crash")
    assert disturbed.ended() == 0, disturbed.output()
    same_outcome(disturbed, constant)


@pytest.mark.slow
def test_workers_that_crash_again_and_again_end_the_run(run: StartRun) -> None:
    doomed = run(*TWO_STAGES, "cluster.max_failures=2", "snapshot_every_steps=20").start()
    doomed.wait_for(trained(30))
    for times in range(3):
        doomed.wait_for(happened(Recovered, times))
        doomed.order(1, "crash")
        doomed.wait_for(lambda run: not run.orders.exists())
    assert doomed.ended() == 1
    result = doomed.result()
    assert result["state"] == "FAILED"
    assert result["recoveries"] == 2
    assert "rank 1 failed: its process died" in result["reason"]
    assert "about to crash" in result["reason"]  # its last words


@pytest.mark.slow
def test_an_error_of_the_code_is_not_tried_again(run: StartRun) -> None:
    doomed = run(*TWO_STAGES).start()
    doomed.wait_for(trained(20))
    doomed.order(1, "raise")
    assert doomed.ended() == 1
    assert "ValueError: the batch is cursed" in doomed.result()["reason"]
    assert not doomed.told(Recovered)
    assert doomed.told(RunEnded)[0].state == "FAILED"


@pytest.mark.slow
@pytest.mark.parametrize("point", [happened(SnapshotSaved), happened(StepsTrained, 3)])
def test_a_driver_that_was_stopped_for_a_while_loses_nothing(
    run: StartRun, constant: Run, point: Callable[[Run], bool]
) -> None:
    disturbed = run(*TWO_STAGES, "cluster.hang_seconds=4").start()
    disturbed.wait_for(point)
    disturbed.pause(10.0)
    assert disturbed.ended() == 0, disturbed.output()
    same_outcome(disturbed, constant)
    assert not disturbed.told(Recovered)


@pytest.mark.slow
def test_workers_that_stood_by_take_over(tmp_path: Path, constant: Run) -> None:
    disturbed = Run(tmp_path, *TWO_STAGES, "cluster.standby=true", "+task.pause=0.1").start()
    try:
        disturbed.wait_for(trained(20))
        disturbed.signal_worker(0, signal.SIGKILL)
        disturbed.wait_for(happened(Recovered))
        disturbed.wait_for(lambda run: len(run.workers()) == 4)  # those at work, and those that stand by
        standing_by = disturbed.workers()[2:]
        disturbed.wait_for(trained(130))
        disturbed.signal_worker(1, signal.SIGKILL)
        disturbed.wait_for(happened(Recovered, 2))
        assert set(standing_by) <= set(disturbed.workers())
        assert disturbed.ended() == 0, disturbed.output()
    finally:
        disturbed.close()
    same_outcome(disturbed, constant)
