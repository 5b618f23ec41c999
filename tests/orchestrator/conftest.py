"""One real Ray for all tests of this folder that ask for it: starting it takes seconds."""

from collections.abc import Iterator

import pytest

from orchestrator.cluster.connection import Cluster, ClusterOptions, connect


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with connect(ClusterOptions(workers=4)) as connected:
        yield connected
