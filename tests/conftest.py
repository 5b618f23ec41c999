"""How tests run side by side: those of one file share a process, and so do all that use the one Ray cluster."""

import os

import pytest
from hypothesis import settings

os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's workers would starve beside the other process's tests


settings.register_profile("side by side", deadline=None)  # how long an example takes says most of what runs beside it
settings.load_profile("side by side")


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group the tests that name no group themselves; those on the cluster take longest and come first."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("cluster" if _on_cluster(item) else str(item.path)))
    items.sort(key=lambda item: not _on_cluster(item))


def _on_cluster(item: pytest.Item) -> bool:
    return "cluster" in getattr(item, "fixturenames", ())
