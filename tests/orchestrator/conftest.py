"""What takes seconds to start and is shared by the tests of this folder: a real Ray, and a database of MLflow's."""

from collections.abc import Iterator

import pytest

from orchestrator.cluster.connection import Cluster, ClusterOptions, connect


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with connect(ClusterOptions(workers=4)) as connected:
        yield connected


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URI of one database, its schema made."""
    from mlflow import MlflowClient

    uri = f"sqlite:///{tmp_path_factory.mktemp('store')}/mlflow.db"
    MlflowClient(tracking_uri=uri).search_experiments()
    return uri
