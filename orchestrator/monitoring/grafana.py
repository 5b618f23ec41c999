"""The Grafana dashboard of all runs on a Ray cluster, as JSON that Grafana imports."""

from typing import Any

from orchestrator.monitoring.panels import OF_RANKS, PANELS, PREFIX, Metric, Panel

Json = dict[str, Any]

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_COLUMNS, _WIDTH, _HEIGHT = 2, 12, 8  # Grafana's grid is 24 wide


def query(metric: Metric) -> str:
    """The PromQL of a metric's series. Workers that are gone linger for a while; the newest value counts."""
    by = ", ".join(("job_name", "rank", *metric.tags))
    return f'max by ({by}) (ray_{PREFIX}{metric.name}{{job_name=~"$job"}})'


def dashboard() -> Json:
    """A panel a chart, and a choice of jobs at the top."""
    shown = (*PANELS, *OF_RANKS)
    return {
        "title": "Training orchestrator",
        "uid": "training-orchestrator",
        "tags": ["ray", "training"],
        "editable": True,
        "refresh": "10s",
        "schemaVersion": 39,
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_data_source(), _jobs()]},
        "panels": [_panel(number, panel) for number, panel in enumerate(shown)],
    }


def _panel(number: int, panel: Panel) -> Json:
    row, column = divmod(number, _COLUMNS)
    first = panel.metrics[0]
    scale = {"type": "log", "log": 10} if first.logarithmic else {"type": "linear"}
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": "; ".join(f"{metric.title}: {metric.meaning}" for metric in panel.metrics),
        "datasource": _SOURCE,
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": column * _WIDTH, "y": row * _HEIGHT},
        "fieldConfig": {
            "defaults": {"unit": first.unit or "short", "custom": {"scaleDistribution": scale, "lineWidth": 2}},
            "overrides": [],
        },
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [_target(letter, metric) for letter, metric in zip("ABCD", panel.metrics, strict=False)],
    }


def _target(letter: str, metric: Metric) -> Json:
    rank = (" rank {{rank}}",) if metric.name.startswith("rank_") else ()
    tags = (f" {{{{{tag}}}}}" for tag in metric.tags)
    legend = "".join((f"{{{{job_name}}}} {metric.title}", *tags, *rank))
    return {"refId": letter, "expr": query(metric), "legendFormat": legend, "datasource": _SOURCE}


def _data_source() -> Json:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}


def _jobs() -> Json:
    return {
        "name": "job",
        "label": "job",
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": f"label_values(ray_{PREFIX}step, job_name)", "refId": "job"},
        "refresh": 2,
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
    }
