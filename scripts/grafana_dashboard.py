"""Write conf/monitoring/grafana-dashboard.json anew: python scripts/grafana_dashboard.py"""

import json
from pathlib import Path

from orchestrator.monitoring.grafana import dashboard

DASHBOARD = Path(__file__).parent.parent / "conf" / "monitoring" / "grafana-dashboard.json"


def text() -> str:
    """The file's content."""
    return json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    DASHBOARD.write_text(text())
