"""Labs of the tests' own, beside any that is up: their state lies elsewhere, so their names differ too."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lab.life import down

from comm_plans.lab_state import VARIABLE

ROOT = Path(__file__).parent.parent.parent
TOPOLOGIES = ROOT / "conf/topologies"
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the state of the test's lab lies."""
    path = tmp_path / "state.json"
    monkeypatch.setenv(VARIABLE, str(path))
    return path


@pytest.fixture
def root(own_state: Path) -> Iterator[None]:
    """Skips where no lab can be built; takes down whatever the test leaves."""
    if sys.platform != "linux" or os.geteuid() != 0 or not (shutil.which("ip") and shutil.which("tc")):
        pytest.skip("the network lab needs Linux, root and iproute2")
    yield
    down()


def network_lab(*arguments: str | Path, **more: object) -> subprocess.CompletedProcess[str]:
    """Run the command as a person does."""
    command = [sys.executable, str(ROOT / "scripts/network_lab.py"), *map(str, arguments)]
    options = {"capture_output": True, "text": True, "timeout": 100} | more
    return subprocess.run(command, check=False, **options)  # type: ignore[call-overload, no-any-return]


@pytest.fixture(name="network_lab")
def network_lab_fixture() -> Command:
    return network_lab


@pytest.fixture(params=["star", "two_boxes", "torus3x3", "rail_boxes"])
def shipped(request: pytest.FixtureRequest) -> Path:
    """Each topology that is shipped."""
    return TOPOLOGIES / f"{request.param}.yaml"


@pytest.fixture
def star() -> Path:
    return TOPOLOGIES / "star.yaml"


@pytest.fixture
def torus() -> Path:
    return TOPOLOGIES / "torus3x3.yaml"
