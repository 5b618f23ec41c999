"""The Grafana dashboard that ships is the one that the list of metrics gives."""

import json

import pytest
from grafana_dashboard import DASHBOARD, text

from orchestrator.monitoring.grafana import dashboard
from orchestrator.monitoring.panels import OF_RANKS, PANELS


def test_the_file_is_up_to_date() -> None:
    assert DASHBOARD.read_text() == text(), "run python scripts/grafana_dashboard.py"


@pytest.mark.parametrize("panel", [*PANELS, *OF_RANKS], ids=lambda panel: panel.title)
def test_each_panel_asks_for_its_metrics_by_job(panel) -> None:  # type: ignore[no-untyped-def]
    [drawn] = [each for each in json.loads(text())["panels"] if each["title"] == panel.title]
    queries = [target["expr"] for target in drawn["targets"]]
    assert len(queries) == len(panel.metrics)
    for metric, query in zip(panel.metrics, queries, strict=True):
        assert f'ray_orchestrator_{metric.name}{{job_name=~"$job"}}' in query


def test_no_two_panels_overlap() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard()["panels"]]
    assert len(set(places)) == len(places)
