"""What people report of clusters elsewhere: waits without end, survivors that hang, zombies, dashboards that break."""

import os
import signal
import stat
import time
from importlib.metadata import metadata
from pathlib import Path

import pytest
from harness import Run as Training
from harness import StartRun, happened, same_outcome, trained

from orchestrator.cluster import connection
from orchestrator.cluster.connection import ClusterOptions, check_beforehand, check_capacity
from orchestrator.cluster.reaper import alive, descendants
from orchestrator.errors import UserError
from orchestrator.events import Recovered

CONSTANT = ["lr=constant", "lr.rate=0.01", "lr.stages=2"]


def test_what_the_cluster_cannot_hold_is_not_waited_for_ray_24259() -> None:
    begin = time.monotonic()
    with pytest.raises(UserError, match=r"99.*CPU"):
        check_capacity(99, 1.0, 0.0, {"CPU": 2.0})
    with pytest.raises(UserError, match=r"99.*CPU"):
        check_beforehand(ClusterOptions(workers=99))
    assert time.monotonic() - begin < 5


def test_a_dashboard_that_does_not_start_costs_one_warning_ray_61530(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(options: ClusterOptions, dashboard: bool) -> None:
        if dashboard:
            raise RuntimeError("Failed to start the dashboard\nand a hundred lines more")

    monkeypatch.setattr(connection, "_start_with", start)
    url, warnings = connection._start(ClusterOptions(workers=1, dashboard=True))
    assert url is None
    assert len(warnings) == 1
    assert "the run goes on without it" in warnings[0]
    assert "\n" not in warnings[0]


def test_the_token_that_ray_asks_for_is_the_owners_alone_ray_auth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o644)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
    connection._protect_token()
    assert stat.S_IMODE(token.stat().st_mode) == 0o600


def test_a_python_that_hydra_crashes_on_is_refused_by_the_installer_hydra_3121() -> None:
    from packaging.specifiers import SpecifierSet

    versions = SpecifierSet(metadata("training-orchestrator")["Requires-Python"])
    assert [minor for minor in range(9, 16) if versions.contains(f"3.{minor}.1")] == [11, 12, 13]


@pytest.mark.slow
def test_survivors_do_not_hang_until_a_time_out_when_a_rank_dies_openrlhf_621(
    run: StartRun, constant: Training
) -> None:
    disturbed = run(*CONSTANT).start()
    disturbed.wait_for(trained(140))
    disturbed.signal_worker(1, signal.SIGKILL)
    disturbed.wait_for(happened(Recovered))
    (recovered,) = disturbed.told(Recovered)
    assert (recovered.what, recovered.rank) == ("died", 1)
    assert recovered.seconds < 100  # ten times what it takes on an idle machine
    assert disturbed.ended() == 0, disturbed.output()
    same_outcome(disturbed, constant)


@pytest.mark.slow
def test_a_driver_that_is_stopped_for_a_while_ends_no_live_trial_optuna_4234(run: StartRun, constant: Training) -> None:
    disturbed = run(*CONSTANT, "cluster.hang_seconds=2").start()
    disturbed.wait_for(trained(40))
    disturbed.pause(6)
    assert disturbed.ended() == 0, disturbed.output()
    same_outcome(disturbed, constant)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_no_zombie_is_left_after_ctrl_c_ray_31451(number: int, tmp_path: Path) -> None:
    """With a Ray of its own, which goes as well."""
    training = Training(tmp_path, *CONSTANT).start()
    training.wait_for(trained(10))
    started = descendants(training.pid, spared=set())
    assert started
    os.kill(training.pid, number)
    assert training.ended() == 128 + number
    until = time.monotonic() + 30
    while started & set(alive()) and time.monotonic() < until:
        time.sleep(0.1)
    assert started & set(alive()) == set()
