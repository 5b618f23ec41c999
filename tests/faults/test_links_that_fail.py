"""A cable becomes slow, or is pulled, under a training whose gradients go by plan: real TCP on a shaped network."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import CONSTANT, Run, same_outcome, trained
from lab import faults
from lab.life import down, up

from comm_plans.lab_state import VARIABLE, LabState

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="network namespaces need Linux and root"),
]
TRIANGLE = "{name: triangle, ranks: [a, b, c], cables: [[a, b, 0.05], [b, c, 0.05], [c, a, 0.05]]}"
PAIR = "{name: pair, ranks: [a, b], cables: [[a, b, 0.05]]}"


@pytest.fixture
def lab(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LabState]:
    """A lab with Ray on each of its hosts."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "lab.json"))
    file = tmp_path / "network.yaml"
    file.write_text(request.param)
    try:
        yield up(file, ray=True)
    finally:
        down()


def _run(lab: LabState, place: Path, *overrides: str) -> Run:
    place.mkdir()
    where = ["cluster=lab", f"cluster.workers={len(lab.ranks)}", "communication=planned", "communication.strict=true"]
    large = ["+task.size=20000", "steps=40", "cluster.hang_seconds=10"]  # 1.2 MB of gradients
    return Run(place, *CONSTANT, *large, *where, *overrides)


@pytest.mark.parametrize("lab", [TRIANGLE], indirect=True, ids=["triangle"])
def test_a_link_with_a_way_around_costs_time_and_nothing_else(lab: LabState, tmp_path: Path) -> None:
    undisturbed = _run(lab, tmp_path / "undisturbed").start()
    assert undisturbed.ended() == 0, undisturbed.output()
    disturbed = _run(lab, tmp_path / "disturbed").start()
    disturbed.wait_for(trained(10))
    lab = faults.degrade(lab, "a-b", 20_000_000)
    disturbed.wait_for(trained(20))
    faults.cut(lab, "a-b")
    assert disturbed.ended() == 0, disturbed.output()
    same_outcome(disturbed, undisturbed)


@pytest.mark.parametrize("lab", [PAIR], indirect=True, ids=["pair"])
def test_the_only_link_ends_the_run_in_a_sentence(lab: LabState, tmp_path: Path) -> None:
    disturbed = _run(lab, tmp_path / "disturbed", "cluster.max_failures=1").start()
    disturbed.wait_for(trained(10))
    faults.cut(lab, "a-b")
    assert disturbed.ended() == 1, disturbed.output()
    assert disturbed.result()["state"] == "FAILED"
    assert disturbed.result()["reason"].startswith("rank ")
    assert " failed: " in disturbed.result()["reason"].splitlines()[0]
