"""The figure of the live-plans benchmark: how much of the exact bound each way reaches, one panel a network.

python scripts/live_plans_figure.py live-plans.json docs/images/live-plans.png
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib import pyplot
from matplotlib.axes import Axes

Row = dict[str, Any]
NETWORKS = {"star": "four unequal hosts", "two_boxes": "two boxes, slow uplink", "torus": "3×3 torus"}
GROUPS = {"all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter", "ddp": "DDP step"}
COLOURS = {"gloo": "0.6", "streams ring": "tab:orange", "p2p": "tab:cyan", "streams": "tab:blue"}
LABELS = {"gloo": "gloo", "streams ring": "a ring without shared links", "p2p": "plan, P2P", "streams": "plan, streams"}
WIDTH = 0.2


def main(source: Path, target: Path) -> None:
    """Draw the rows of the smallest size that the benchmark's file holds."""
    rows = json.loads(source.read_text())["rows"]
    figure, panels = pyplot.subplots(1, len(NETWORKS), figsize=(11, 3.4), sharey=True)
    for panel, (case, title) in zip(panels, NETWORKS.items(), strict=True):
        _panel(panel, [row for row in rows if row["case"] == case])
        panel.set_title(title)
    panels[0].set_ylabel("part of the exact bound")
    handles = {
        label: handle for panel in panels for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=len(LABELS), frameon=False)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(target, dpi=110)


def _panel(panel: Axes, rows: list[Row]) -> None:
    for place, way in enumerate(COLOURS):
        bars = {row["what"]: row["bound_seconds"] / median(row["seconds"]) for row in _smallest(rows, way)}
        xs = [list(GROUPS).index(what) + (place - 1.5) * WIDTH for what in bars]
        if bars:
            panel.bar(xs, list(bars.values()), WIDTH, color=COLOURS[way], label=LABELS[way])
    panel.axhline(1, color="black", lw=1, ls=":")
    panel.set_xticks(range(len(GROUPS)), list(GROUPS.values()), fontsize=8)
    panel.set_ylim(0, 1.08)


def _smallest(rows: list[Row], way: str) -> list[Row]:
    """The rows of a way at the least size of each collective, which come first."""
    found: dict[str, Row] = {}
    for row in rows:
        if row["way"] == way:
            found.setdefault(row["what"], row)
    return list(found.values())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
