"""One real Ray for all runs of this folder, and what they come to when nobody disturbs them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import CONSTANT, SEARCH, Run, StartRun

from orchestrator.cluster.connection import Cluster, ClusterOptions, connect


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with connect(ClusterOptions(workers=4)) as connected:
        yield connected


@pytest.fixture(scope="session")
def address(cluster: Cluster) -> str:
    import ray

    found: str = ray.get_runtime_context().gcs_address
    return f"cluster.address={found}"


@pytest.fixture
def run(address: str, tmp_path: Path) -> Iterator[StartRun]:
    """Makes runs on the one Ray, and ends what a test leaves."""
    made: list[Run] = []

    def make(*overrides: str, place: Path = tmp_path, **options: Any) -> Run:
        place = place / str(len(made))
        place.mkdir()
        made.append(Run(place, address, *overrides, ray=os.getpid(), **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def _undisturbed(factory: pytest.TempPathFactory, *overrides: str) -> Run:
    run = Run(factory.mktemp("undisturbed"), *overrides).start()
    assert run.ended() == 0, run.output()
    return run


@pytest.fixture(scope="session")
def searched(address: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that searches its rate and trains with it."""
    return _undisturbed(tmp_path_factory, address, *SEARCH)


@pytest.fixture(scope="session")
def constant(address: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run at one rate, with two stages."""
    return _undisturbed(tmp_path_factory, address, *CONSTANT, "lr.stages=2")
